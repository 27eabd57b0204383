package views

import (
	"fmt"
	"time"

	"gatehouse/orchestrator/origin"
)

// ChannelsPath is the page of the channels; forms are below it: /retry takes letter,
// channel or all; /test and /link take channel; /unlink takes channel and account.
const ChannelsPath = "/settings/channels"

// ChannelsPage is `/settings/channels`: how each channel does, what was given up, and
// the reader's linked accounts.
type ChannelsPage struct {
	Chrome
	Channels []ChannelRow
	Admin    bool // may try again and send test cards
	MaySee   bool // may see what was given up
	Dead     int  // how much was given up in all
	Letters  []LetterRow
	Later    bool   // this is not the first page of them
	Older    string // address of the next page; empty on the last
}

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

// AccountRow is a linked account of the reader.
type AccountRow struct {
	ID   string
	Name string
	At   time.Time
}

// LetterRow is a delivery that was given up.
type LetterRow struct {
	Key       string
	Kind      string
	Channel   origin.Channel
	Address   string
	RequestID string
	Title     string
	State     string
	Error     string
	Attempts  int
}

// live says whether the page may replace itself: not while it shows a code.
func (p ChannelsPage) live() bool {
	for _, c := range p.Channels {
		if c.Code != "" {
			return false
		}
	}
	return true
}

// channelWord is how a state is called, its role and its icon.
func (c ChannelRow) channelWord() (word, role, icon string) {
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
	return fmt.Sprintf("%s given up: people may not know what waits for them.", plural(n, "message was", "messages were"))
}

// waits says how much is on its way.
func waits(n int) string {
	if n == 0 {
		return "nothing waits"
	}
	return plural(n, "delivery waits", "deliveries wait")
}

// letterWord is what was not delivered.
func letterWord(kind string) string {
	switch kind {
	case "notice":
		return "reminder"
	case "digest":
		return "list of requests"
	}
	return kind
}
