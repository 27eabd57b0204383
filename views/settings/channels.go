package settings

import (
	"gatehouse/approval"
	"gatehouse/views"
)

// ChannelsPage is `/settings/channels`: how each channel does, what was given up, and
// the reader's linked accounts.
type ChannelsPage struct {
	views.Chrome
	Channels []views.ChannelRow
	Admin    bool // may try again and send test cards
	MaySee   bool // may see what was given up
	Dead     int  // how much was given up in all
	Letters  []approval.DeadLetter
	Later    bool   // this is not the first page of them
	Older    string // address of the next page; empty on the last
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

// waits says how much is on its way.
func waits(n int) string {
	if n == 0 {
		return "nothing waits"
	}
	return views.Plural(n, "delivery waits", "deliveries wait")
}

// letterWord is what was not delivered.
func letterWord(kind string) string {
	switch kind {
	case "notice":
		return "reminder"
	case "digest":
		return "list of requests"
	case "report":
		return "message about a task"
	}
	return kind
}
