package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// Name is what configuration and cards call this channel.
const Name = origin.Telegram

// Accounts says whose account a number is: ErrNotFound of orchestrator when nobody's.
type Accounts interface {
	UserByAccount(ctx context.Context, channel origin.Channel, id int64) (people.User, error)
}

// ChannelOptions is what a Channel is made of. Sender, Buttons and Diff are needed.
type ChannelOptions struct {
	Sender   Sender
	Buttons  ButtonStore
	Accounts Accounts // nil: private chats do not say "you"
	// Diff renders the unified diff of a request's current revision.
	Diff func(ctx context.Context, r approval.Request) (string, error)
	Now  func() time.Time // time.Now when nil
	Log  *slog.Logger     // slog.Default when nil
}

// Settings are what may change while a Channel runs; they are replaced as a whole.
type Settings struct {
	Chats     []Place        // where cards go; none: the private chat of each voter who is linked
	PublicURL string         // where people open Gatehouse
	Zone      *time.Location // of times in private chats; nil is UTC, as in groups
}

// Channel shows requests in Telegram: one message for each revision, edited in place
// as that goes on, and the diff below it. It takes no verdicts; Desk does.
//
// A group gets at most one new message in 3 s, and the outbox is told to come again;
// edits are never held up.
type Channel struct {
	sender   Sender
	buttons  ButtonStore
	accounts Accounts
	diff     func(ctx context.Context, r approval.Request) (string, error)
	now      func() time.Time
	log      *slog.Logger
	settings atomic.Pointer[Settings]
	pace     pace
}

var (
	_ approval.Channel   = (*Channel)(nil)
	_ approval.Addresser = (*Channel)(nil)
	_ approval.Noticer   = (*Channel)(nil)
	_ approval.Digester  = (*Channel)(nil)
	_ approval.Reporter  = (*Channel)(nil)
)

// NewChannel makes a channel. It asks nobody.
func NewChannel(o ChannelOptions, s Settings) *Channel {
	c := &Channel{sender: o.Sender, buttons: o.Buttons, accounts: o.Accounts, diff: o.Diff, now: o.Now, log: o.Log}
	if c.now == nil {
		c.now = time.Now
	}
	c.log = cmp.Or(c.log, slog.Default())
	c.SetSettings(s)
	return c
}

// SetSettings replaces the settings. Cards that were sent stay where they are.
func (c *Channel) SetSettings(s Settings) {
	s.Zone = cmp.Or(s.Zone, time.UTC)
	s.PublicURL = strings.TrimRight(s.PublicURL, "/")
	c.settings.Store(&s)
}

func (*Channel) Name() origin.Channel { return Name }

// Addresses implements approval.Addresser. An account's number is that of its private
// chat. Who asked for a task is asked there what its agents want to know, also where all
// else goes to the chats of the configuration.
func (c *Channel) Addresses(r approval.Request, voters []people.User) []string {
	seen := map[Place]bool{}
	var to []string
	add := func(p Place) {
		if !seen[p] {
			seen[p] = true
			to = append(to, p.String())
		}
	}
	chats := c.settings.Load().Chats
	for _, p := range chats {
		add(p)
	}
	for _, u := range voters {
		if len(chats) > 0 && !(r.IsQuestion() && u.ID == r.RequesterID) {
			continue
		}
		for _, a := range u.Accounts {
			if a.Channel == Name && a.ID > 0 {
				add(Place{Chat: a.ID})
			}
		}
	}
	return to
}

func (c *Channel) Deliver(ctx context.Context, card approval.Card, r approval.Request, view approval.CardView) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	to, err := ParsePlace(card.Address)
	if err != nil {
		return "", approval.Gone(err)
	}
	f := c.face(ctx, to, r, view)
	if r.State == approval.Pending {
		if f.diff, err = c.read(ctx, r); err != nil && card.Attempts < diffAttempts {
			return "", err
		}
	}
	was := parseSent(card.ExternalID)
	if was.message == 0 || was.newer(r) { // something new would be shown
		if may, err := c.mayRead(ctx, to, r); err != nil || !may {
			return card.ExternalID, err
		}
	}
	if was.newer(r) {
		// The new question is a message of its own, so that people see it come.
		if err := c.sender.Edit(ctx, to.Chat, was.message, f.retired(was.revision).message(c.openRow(f, "Open revision "+strconv.Itoa(r.Revision.N))...)); err != nil && !errors.Is(err, ErrMessageGone) {
			return "", moved(err)
		}
		was = sent{}
	}
	now, err := c.show(ctx, to, was, f)
	if err == nil {
		err = c.takeReplies(ctx, to, now, r)
	}
	return now.String(), moved(err)
}

// mayRead reports whether a question may be shown in a chat that it was to be shown in
// once: whose private chat it is may have lost the right since, or the account.
func (c *Channel) mayRead(ctx context.Context, to Place, r approval.Request) (bool, error) {
	if to.Chat < 0 || c.accounts == nil || r.State != approval.Pending {
		return true, nil
	}
	u, err := c.accounts.UserByAccount(ctx, Name, to.Chat)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading whose chat this is: %w", err)
	}
	return people.As(u, nil).Has(people.ApprovalsRead) || r.IsQuestion() && u.ID == r.RequesterID, nil
}

// diffAttempts is how often a delivery is tried again because the diff cannot be read.
// After that the card goes out without: it can be rejected, and opened.
const diffAttempts = 3

// show sends or edits the card, and sends the diff's file once. A card whose diff goes into
// a file offers no Approve before Telegram has taken that: it gets it by an edit. What show
// returns is what is there, with an error too.
func (c *Channel) show(ctx context.Context, to Place, was sent, f face) (sent, error) {
	if was.revision != f.r.Revision.N {
		was.document = noDocument // what is there is another revision's
	}
	now, lacks, err := c.place(ctx, to, was, f)
	if err != nil || !lacks {
		return now, err
	}
	if now.document, err = c.file(ctx, to, now.message, f); err != nil {
		return now, err
	}
	if now, lacks, err = c.place(ctx, to, now, f); err == nil && lacks {
		err = errors.New("the card was deleted while its file was sent")
	}
	return now, err
}

// place edits the card, or sends one where there is none or it was deleted, and reports
// whether its file is still to be sent.
func (c *Channel) place(ctx context.Context, to Place, was sent, f face) (now sent, lacks bool, err error) {
	m, at, lacks, err := c.card(ctx, to, was, f)
	if err != nil {
		return was, false, err
	}
	if was.message != 0 {
		err = c.sender.Edit(ctx, to.Chat, was.message, m)
		switch {
		case err == nil:
			return sent{was.message, f.r.Revision.N, at}, lacks, nil
		case !errors.Is(err, ErrMessageGone):
			return was, false, err
		}
		// The file that answered it may be as gone, and is sent again before an Approve.
		if m, at, lacks, err = c.card(ctx, to, sent{}, f); err != nil {
			return was, false, err
		}
	}
	id, err := c.put(ctx, to, 0, m)
	if err != nil {
		return was, false, err
	}
	c.under(ctx, m, id)
	return sent{id, f.r.Revision.N, at}, lacks, nil
}

// put edits the message, or sends one where there is none or it was deleted.
func (c *Channel) put(ctx context.Context, to Place, message int, m Message) (int, error) {
	if message != 0 {
		if err := c.sender.Edit(ctx, to.Chat, message, m); !errors.Is(err, ErrMessageGone) {
			return message, err
		}
	}
	if err := c.pace.take(to, c.now()); err != nil {
		return 0, err
	}
	return c.sender.Send(ctx, to, m)
}

// file sends the diff as an answer to its card.
func (c *Channel) file(ctx context.Context, to Place, card int, f face) (document, error) {
	if err := c.pace.take(to, c.now()); err != nil {
		return noDocument, err
	}
	id, err := c.sender.Document(ctx, to, f.diff.name, f.diff.file, caption(f.r), card)
	var refusal *Error
	if err == nil {
		return document(id), nil
	}
	if errors.As(err, &refusal) && refusal.Code >= 400 && refusal.Code < 500 && refusal.RetryAfter == 0 && !approval.IsGone(err) && !errors.Is(err, ErrToken) {
		c.log.Warn("Telegram did not take the file of a diff; the card links to it", "request", f.r.ID, "bytes", len(f.diff.file), "err", err)
		return refusedDocument, nil
	}
	return noDocument, err
}

// card is the message of f, in place of what was there, with where all of the change is then
// and whether its file is still to be sent. The buttons are stored before anybody can press
// them, and Approve only where all of the change is there.
func (c *Channel) card(ctx context.Context, to Place, was sent, f face) (m Message, at document, lacks bool, err error) {
	if was.document == refusedDocument {
		f.diff = f.diff.refused()
	}
	if f.filed = was.document; f.filed == inCard {
		f.filed = noDocument // that was the text of before
	}
	s, inline := f.fit()
	if at = f.at(inline); f.filed.whole() {
		at = f.filed // also where it is in the card by now: it need not be sent again
	}
	if f.r.State != approval.Pending {
		return s.message(c.openRow(f, "Open")...), was.document, false, nil
	}
	rows, err := c.bind(ctx, to, was.message, f.r, f.offers(inline))
	if err != nil {
		return Message{}, noDocument, false, err
	}
	rows = append(rows, c.openRow(f, "Open the "+f.thing())...)
	return s.message(rows...), at, at == noDocument && f.diff.file != nil, nil
}

// openRow is the button that opens the request's page, where it can be opened.
func (c *Channel) openRow(f face, words string) [][]Button {
	if f.link == "" {
		return nil
	}
	return [][]Button{{{Text: words, URL: f.link}}}
}

// face is how r looks from a place.
func (c *Channel) face(ctx context.Context, to Place, r approval.Request, view approval.CardView) face {
	set := c.settings.Load()
	f := face{r: r, view: view, clock: c.clock(to)}
	if openable(set.PublicURL) {
		f.link = set.PublicURL + "/approvals/" + r.ID
	}
	if to.Chat > 0 && c.accounts != nil && r.State == approval.Pending {
		u, err := c.accounts.UserByAccount(ctx, Name, to.Chat)
		if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			c.log.Warn("whose chat this is could not be read", "err", err)
		}
		f.me, f.only = u.Name, r.IsQuestion() && !approval.Approves(u)
	}
	return f
}

// clock is the time in a place: groups have readers in many zones.
func (c *Channel) clock(to Place) clock {
	if to.Chat < 0 {
		return clock{zone: time.UTC, now: c.now()}
	}
	return clock{zone: c.settings.Load().Zone, now: c.now()}
}

// moved adds to the error of a group that has become another what to do about it.
func moved(err error) error {
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.MigrateTo != 0 {
		return fmt.Errorf("the group is now %d: change it under channels.telegram.chats (%w)", refusal.MigrateTo, err)
	}
	return err
}
