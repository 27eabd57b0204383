// Package telegram shows requests in Telegram and takes verdicts from there.
//
// Its wire side knows nothing of requests. [Client] speaks the Bot API and sorts its
// errors into what the outbox asks of a channel. [Receiver] takes what people send, by
// long poll or by webhook:
//
//	Telegram ──▶ stored ──▶ acknowledged        what is not stored comes again
//	               └──▶ leased ──▶ Handler ──▶ done, or again later, or given up
//
// So an update is handled at least once, whichever program dies when, and a handler has
// to bear the second time. One node polls a bot, kept by a lease; every node handles.
//
// Above it, [Channel] shows requests: one message for each revision and chat, edited in
// place as the request goes on, with the diff in it or below it. [Desk] acts on what
// people do, and decides through the gateway alone:
//
//	button ──▶ its hash is stored, with request, revision, digest, chat ──▶ Decide
//	question ──▶ stored for one account ──▶ that account's reply ──▶ Decide
//	card of an agent's question ──▶ stored for everybody who may answer ──▶ a reply to it ──▶ Decide
//
// What a person may is told by the number of their account, looked up at each act. Text
// of agents and repositories stands in code entities, where Telegram makes no links,
// mentions or commands of it. Sizes are counted in UTF-16 units, as Telegram does.
//
// The bot's token is part of every address of the Bot API. It stands in no error, log
// line or printed value of this package.
//
// The room imports approval, the engine's leaves and telegram-bot-api. Tests have a Bot
// API of their own in bottest.
package telegram
