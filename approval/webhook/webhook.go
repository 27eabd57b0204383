package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// Name is how cards call the channel.
const Name = "webhook"

// maxTold is how many (target, request) pairs are remembered; about 100 bytes each.
const maxTold = 10_000

// Options is what a channel is made of.
type Options struct {
	Targets   []Target
	PublicURL string // what links begin with
	Now       func() time.Time
	Log       *slog.Logger
}

// Channel tells the targets of every change. It edits nothing: a change is a message
// of its own, and what happened while a target was away comes as one message about
// how the request stands then. It keeps no goroutine and no connection.
type Channel struct {
	targets   []Target
	receivers map[string]*receiver
	public    string
	now       func() time.Time
	log       *slog.Logger
	told      told
}

var (
	_ approval.Channel   = (*Channel)(nil)
	_ approval.Addresser = (*Channel)(nil)
	_ approval.Teller    = (*Channel)(nil)
)

// New makes the channel. What is wrong with a target is an error for people.
func New(o Options) (*Channel, error) {
	return build(o, wire{check: func(r reach, a netip.Addr) error { return r.check(a) }})
}

func build(o Options, w wire) (*Channel, error) {
	public, err := url.Parse(o.PublicURL)
	if err != nil || public.Host == "" || public.User != nil || (public.Scheme != "http" && public.Scheme != "https") {
		return nil, errors.New("webhooks need the address of this server for their links. Set server.public_url, such as https://gatehouse.example.com")
	}
	public.RawQuery, public.Fragment = "", ""
	c := &Channel{receivers: map[string]*receiver{}, public: strings.TrimSuffix(public.String(), "/"), now: o.Now, log: o.Log}
	if c.now == nil {
		c.now = time.Now
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	for _, t := range o.Targets {
		if err := t.Check(); err != nil {
			return nil, err
		}
		if c.receivers[t.Name] != nil {
			return nil, fmt.Errorf("two webhooks have the name %s. Give each its own", t.Name)
		}
		to, err := t.address()
		if err != nil {
			return nil, err
		}
		v := &receiver{name: t.Name, target: t, url: to, client: w.client(t.reach()), now: c.now}
		if t.format() == Standard {
			if v.key, err = t.key(); err != nil {
				return nil, err
			}
		}
		c.targets, c.receivers[t.Name] = append(c.targets, t), v
	}
	return c, nil
}

func (c *Channel) Name() origin.Channel { return Name }

// Addresses are the names of the targets that hear of requests, whoever votes.
func (c *Channel) Addresses(approval.Request, []people.User) []string {
	var names []string
	for _, t := range c.targets {
		if t.hearsRequests() {
			names = append(names, t.Name)
		}
	}
	return names
}

// Deliver tells the card's target what is new about r, unless it was the last thing
// that it was told. The external id is that of the first message.
func (c *Channel) Deliver(ctx context.Context, card approval.Card, r approval.Request, view approval.CardView) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	v := c.receivers[card.Address]
	if v == nil {
		return "", approval.Gone(fmt.Errorf("there is no webhook %q in the configuration any more", card.Address))
	}
	n := newsOf(r, c.now())
	external := cmp.Or(card.ExternalID, n.id)
	if !v.target.hearsRequests() { // any more
		return card.ExternalID, nil
	}
	if c.told.last(card.Address, r.ID) == n.id {
		return external, nil
	}
	format := standard
	if v.key == nil {
		format = slack
	}
	body, err := format(n, r, view, c.public+"/approvals/"+url.PathEscape(r.ID))
	if err != nil {
		return "", err
	}
	if err := v.post(ctx, message{id: n.id, body: body}); err != nil {
		return "", err
	}
	c.told.set(card.Address, r.ID, n.id)
	c.log.Debug("a webhook was told of a request", "webhook", v.name, "request", r.ID, "type", n.kind, "message", n.id)
	return external, nil
}

// told remembers the last message about each request to each target, so that a
// version without news is not sent again. It forgets the oldest, and everything at a
// restart; then receivers see a message twice, with the same id.
type told struct {
	mu    sync.Mutex
	ids   map[[2]string]string
	order [][2]string
}

func (t *told) last(target, request string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[[2]string{target, request}]
}

func (t *told) set(target, request, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := [2]string{target, request}
	if t.ids == nil {
		t.ids = map[[2]string]string{}
	}
	if _, known := t.ids[key]; !known {
		t.order = append(t.order, key)
	}
	t.ids[key] = id
	if len(t.order) > maxTold {
		delete(t.ids, t.order[0])
		t.order = t.order[1:]
	}
}
