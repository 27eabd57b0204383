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
// The bot's token is part of every address of the Bot API. It stands in no error, log
// line or printed value of this package.
//
// The room imports approval, the engine's leaves and telegram-bot-api. Tests have a Bot
// API of their own in bottest.
package telegram
