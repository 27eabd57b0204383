package views

import (
	"fmt"
	"time"

	"gatehouse/orchestrator/origin"
)

// ChannelRow is one channel.
type ChannelRow struct {
	Name     origin.Channel
	State    string // connected, waiting, conflict, token, unreachable; "" unknown or none
	Detail   string
	Node     string
	Since    time.Time
	Due      int
	Dead     int
	Links    bool // people link their accounts
	Tests    bool // a test card can be sent
	Accounts []AccountRow
	Code     string // a new code to link with; shown once
	Bot      string // name of the bot that takes it, without @; may be empty
}

// ChannelWord is how a state is called, its role and its icon.
func (c ChannelRow) ChannelWord() (word, role, icon string) {
	switch c.State {
	case "connected":
		return "connected", "ok", "tick"
	case "waiting":
		return "waiting", "wait", "waiting"
	case "conflict":
		return "conflict", "bad", "cross"
	case "token":
		return "token refused", "bad", "cross"
	case "unreachable":
		return "unreachable", "bad", "cross"
	}
	if c.Links {
		return "not heard of yet", "neutral", "queued"
	}
	return "always on", "ok", "tick"
}

// ChannelTrouble is what is wrong with the other side of a channel, in a sentence.
func ChannelTrouble(name origin.Channel, state, detail string) string {
	if detail == "" {
		switch state {
		case "conflict":
			detail = "Another program takes the updates of this bot. Cards wait and will be sent; stop the other one, or make a new token."
		case "token":
			detail = "The token is not accepted. Put a new one into the configuration and restart."
		default:
			detail = "The other side does not answer. What waits is sent when it does."
		}
	}
	return name.Title() + ": " + detail
}

// GivenUp says how many deliveries were given up.
func GivenUp(n int) string {
	return fmt.Sprintf("%s given up: people may not know what waits for them.", Plural(n, "message was", "messages were"))
}

// AccountRow is a linked account of the reader.
type AccountRow struct {
	ID   string
	Name string
}
