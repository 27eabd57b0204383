package telegram

import (
	"context"
	"fmt"

	"gatehouse/approval"
)

// What Telegram takes in one message.
const (
	messageLimit = 4096 // UTF-16 units
	entityLimit  = 100
)

// Digest implements approval.Digester. Each line has the command that shows the
// request's card.
func (c *Channel) Digest(ctx context.Context, address, externalID string, items []approval.DigestItem) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	to, err := ParsePlace(address)
	if err != nil {
		return "", approval.Gone(err)
	}
	var rows [][]Button
	set := c.settings.Load()
	if openable(set.PublicURL) {
		rows = [][]Button{{{Text: "Open the list", URL: set.PublicURL + "/approvals"}}}
	}
	s := list(items, len(rows) > 0)
	was := parseSent(externalID)
	was.message, err = c.put(ctx, to, was.message, s.message(rows...))
	if err != nil {
		return "", moved(err)
	}
	was.revision, was.document = 0, noDocument
	return was.String(), nil
}

// list is the text of a digest.
func list(items []approval.DigestItem, link bool) *sheet {
	open := 0
	for _, it := range items {
		if it.Request.State == approval.Pending {
			open++
		}
	}
	s := &sheet{}
	if open == 0 {
		s.as(asBold, "✓ "+plural(len(items), "request is", "requests are")+" decided")
	} else {
		s.as(asBold, needYou(open))
	}
	if !link {
		s.line("Open on the computer that runs Gatehouse")
	}
	s.line()
	for i, it := range items {
		next := &sheet{}
		headline(next, it.Request)
		if it.Request.State == approval.Pending {
			next.put(" · /status_", shortID(it.Request.ID))
		}
		const rest = 24 // room for the last line
		if s.n+1+next.n > messageLimit-rest || len(s.entities)+len(next.entities) > entityLimit {
			s.line(fmt.Sprintf("and %d more", len(items)-i))
			break
		}
		s.line()
		s.add(next)
	}
	return s
}

// needYou is the first line of a list.
func needYou(n int) string { return "◆ " + plural(n, "request needs you", "requests need you") }

// add puts another sheet at the end of this one.
func (s *sheet) add(o *sheet) {
	for _, e := range o.entities {
		e.Offset += s.n
		s.entities = append(s.entities, e)
	}
	s.put(o.text.String())
}
