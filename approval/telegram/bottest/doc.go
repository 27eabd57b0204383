// Package bottest is a Bot API for tests: it speaks Telegram's wire format over HTTP,
// refuses what Telegram refuses in Telegram's words, and misbehaves on demand.
//
//	tg := bottest.New(t)                       // tg.URL, tg.Token
//	tg.AddChat(-1001, "supergroup", "Core")
//	ann := bottest.Account{ID: 7, Name: "Ann"}
//	… the program sends a card …
//	tg.Until(t, "a card", func() bool { return len(tg.Messages(-1001)) == 1 })
//	query, err := tg.Press(-1001, tg.Last(-1001).ID, "Approve", ann)
//	tg.Until(t, "an answer", func() bool { return len(tg.Answers(query)) == 1 })
//
// It keeps what each chat shows now, so that a test asks that instead of counting calls.
// Only tests import it. It imports nothing of Gatehouse and no Telegram library: whoever
// writes the format wrongly shall not find the same mistake here.
package bottest
