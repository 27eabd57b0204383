package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// Beside the cards there are notices, which say something of a request once, and reports,
// which tell how a task goes on.

// NoticePrefix begins the ids of notices.
const NoticePrefix = "ntc_"

// notify adds a notice of r for the addresses that people still have to act at.
func notify(ctx context.Context, tx Tx, c Config, e Electorate, r *Request, kind NoticeKind, to []string) error {
	cards, err := tx.Cards(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("reading where %s is shown: %w", r.ID, err)
	}
	for _, ch := range c.Channels {
		if _, ok := ch.(Noticer); !ok {
			continue
		}
		for _, address := range toldAt(*r, ch, cards, e) {
			n := Notice{ID: orchestrator.NewID(NoticePrefix, tx.Now()), RequestID: r.ID, Revision: r.Revision.N, Channel: ch.Name(),
				Address: address, Kind: kind, To: to, DueAt: tx.Now()}
			if err := tx.InsertNotice(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// toldAt are the addresses of ch with a card of r, without those of people who have
// said yes already; all of them when nobody is left who could.
func toldAt(r Request, ch Channel, cards []Card, e Electorate) []string {
	var all, open []string
	for _, c := range cards {
		if c.Channel == ch.Name() {
			all = append(all, c.Address)
		}
	}
	a, ok := ch.(Addresser)
	if !ok {
		return all
	}
	now := a.Addresses(r, e.voters(r))
	for _, address := range all {
		if slices.Contains(now, address) {
			open = append(open, address)
		}
	}
	if len(open) == 0 {
		return all
	}
	return open
}

// deliverNotices sends what a channel should say once, and reports how many notices
// there were. One whose question was answered meanwhile is dropped.
func (g *Gateway) deliverNotices(ctx context.Context, ch Channel) (int, error) {
	to, ok := ch.(Noticer)
	if !ok {
		return 0, nil
	}
	now := g.now()
	due, err := g.store.DueNotices(ctx, ch.Name(), now, now.Add(cardLease), newBatch)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	e, err := g.Electorate(ctx)
	if err != nil {
		return 0, err
	}
	for i, n := range due {
		if ctx.Err() != nil || g.now().Sub(now) > cardLease-2*deliverTime {
			return i, g.releaseNotices(ctx, due[i:])
		}
		if err := g.deliverNotice(ctx, to, e, n); err != nil {
			return i, err
		}
	}
	return len(due), nil
}

func (g *Gateway) deliverNotice(ctx context.Context, to Noticer, e Electorate, n Notice) error {
	r, err := g.store.Request(ctx, n.RequestID)
	if err != nil {
		return fmt.Errorf("reading request %s of a notice: %w", n.RequestID, err)
	}
	if r.State == Pending && r.Revision.N == n.Revision && !r.overdue(g.now()) {
		within, cancel := context.WithTimeout(ctx, deliverTime)
		err = to.Notify(within, n, r, e.view(r, n.Channel))
		cancel()
		if err != nil && ctx.Err() != nil {
			return g.releaseNotices(ctx, []Notice{n})
		}
	}
	if err == nil {
		n.SentAt, n.Attempts, n.Error, n.Dead = new(g.now()), 0, "", false
	} else {
		n.Attempts, n.DueAt, n.Dead = g.later(ctx, n.Channel, n.Attempts, err)
		n.Error = plain(err.Error())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	if err := g.store.SaveNotice(ctx, n); err != nil {
		return fmt.Errorf("saving the notice %s: %w", n.ID, err)
	}
	return nil
}

// releaseNotices makes leased notices that were not sent due again.
func (g *Gateway) releaseNotices(ctx context.Context, all []Notice) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	for _, n := range all {
		n.DueAt = g.now()
		if err := g.store.SaveNotice(ctx, n); err != nil {
			return fmt.Errorf("giving back the notice %s: %w", n.ID, err)
		}
	}
	return nil
}

// ReportKind is when a report is delivered.
type ReportKind string

// The kinds of reports.
const (
	LiveReport ReportKind = "live" // from the beginning on; it is brought up to date until the end
	EndReport  ReportKind = "end"  // once the task has ended
)

// ReportPause is the least time between two edits of one report: a person reads no faster,
// and services take so many messages a minute.
const ReportPause = 3 * time.Second

// reportRequests is how many of a task's requests a report is given, newest first.
const reportRequests = 20

// Report is what an address of a channel is told of a task. The engine's transactions make
// the rows of EndReport, and open those of both kinds again when a task is run again.
type Report struct {
	TaskID     string
	Channel    origin.Channel
	Address    string
	Kind       ReportKind
	Answers    int64  // the message that it is an answer to, 0 for none
	ExternalID string // the channel's name for the message, once sent
	Shown      int64  // number of the task's event that it shows, 0 before
	DueAt      time.Time
	Attempts   int
	Error      string
	Dead       bool
	SentAt     *time.Time // first delivery; nil before
}

// Told is one address that is told how tasks end, whoever asked for them.
type Told struct {
	Channel origin.Channel
	Address string
}

// Progress is how a task stands.
type Progress struct {
	Task     orchestrator.Task
	Root     orchestrator.Delegation
	Live     []Work       // what has not ended of it, oldest first
	Requests []Request    // newest first, at most reportRequests
	Asker    *people.User // who asked for it, with their accounts; nil where nobody has that id
}

// Work is one delegation of a task that has not ended.
type Work struct {
	Agent string
	State orchestrator.State
}

// Ended reports whether nothing more happens to the task unless it is run again.
func (p Progress) Ended() bool { return p.Task.EndedAt != nil }

// Reporter is a Channel that tells how tasks go on.
type Reporter interface {
	// Report sends the message, or edits it in place when r.ExternalID is set, so that it
	// shows p; like Deliver it is at-least-once, with the same errors and the same id.
	Report(ctx context.Context, r Report, p Progress) (externalID string, err error)
}

// Teller is a Reporter some of whose addresses hear of the ends of all tasks.
type Teller interface {
	Reporter
	// Told lists these addresses.
	Told() []string
}

// told lists the addresses that are told how tasks end.
func (c Config) told() []Told {
	var all []Told
	for _, ch := range c.Channels {
		if t, ok := ch.(Teller); ok {
			for _, to := range t.Told() {
				all = append(all, Told{Channel: ch.Name(), Address: to})
			}
		}
	}
	return all
}

// Follow has an address told how a task goes on, and looks at once. The same address of
// the same task again is the same report.
func (g *Gateway) Follow(ctx context.Context, r Report) error {
	if err := g.store.Follow(ctx, r); err != nil {
		return fmt.Errorf("following %s in %s: %w", r.TaskID, r.Channel, err)
	}
	g.look()
	return nil
}

// Reported is the task that a message at an address of a channel is about; with "" the newest
// that is told of there.
func (g *Gateway) Reported(ctx context.Context, channel origin.Channel, address, message string) (taskID string, err error) {
	return g.store.Reported(ctx, channel, address, message)
}

// deliverReports makes one round of the reports of a channel that were sent before, or that
// were not, and reports how many there were.
func (g *Gateway) deliverReports(ctx context.Context, ch Channel, sent bool) (int, error) {
	to, ok := ch.(Reporter)
	if !ok {
		return 0, nil
	}
	now := g.now()
	due, err := g.store.DueReports(ctx, ch.Name(), sent, now, now.Add(cardLease), newBatch)
	if err != nil {
		return 0, fmt.Errorf("reading due reports of %s: %w", ch.Name(), err)
	}
	for i, r := range due {
		if ctx.Err() != nil || g.now().Sub(now) > cardLease-2*deliverTime {
			return i, g.releaseReports(ctx, due[i:])
		}
		if err := g.deliverReport(ctx, to, r); err != nil {
			return i, err
		}
	}
	return len(due), nil
}

// deliverReport makes one delivery of a report and records how it went.
func (g *Gateway) deliverReport(ctx context.Context, to Reporter, r Report) error {
	p, err := g.progress(ctx, r.TaskID)
	if err != nil {
		return err
	}
	wanted := p.Ended()
	if r.Kind == LiveReport {
		wanted = r.SentAt == nil || p.Asker == nil || !p.Asker.Muted
	}
	if wanted {
		within, cancel := context.WithTimeout(ctx, deliverTime)
		id, failed := to.Report(within, r, p)
		cancel()
		if failed != nil && ctx.Err() != nil {
			return g.releaseReports(ctx, []Report{r})
		}
		r.ExternalID, err = cmp.Or(id, r.ExternalID), failed
	}
	if err == nil {
		r.SentAt = cmp.Or(r.SentAt, new(g.now()))
		r.Shown, r.Attempts, r.Error, r.Dead, r.DueAt = p.Task.LastN, 0, "", false, g.now().Add(ReportPause)
	} else {
		r.Attempts, r.DueAt, r.Dead = g.later(ctx, r.Channel, r.Attempts, err)
		r.Error = plain(err.Error())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	if err := g.store.SaveReport(ctx, r, r.Error == "" && p.Ended()); err != nil {
		return fmt.Errorf("saving the report of %s in %s: %w", r.TaskID, r.Channel, err)
	}
	return nil
}

// progress reads how a task stands. Its row comes first, so that what is shown is never
// older than the event that is kept as shown.
func (g *Gateway) progress(ctx context.Context, taskID string) (Progress, error) {
	var p Progress
	read := func() (err error) {
		if p.Task, err = g.store.Task(ctx, taskID); err != nil {
			return err
		}
		if p.Root, err = g.store.Delegation(ctx, p.Task.RootID); err != nil {
			return err
		}
		if p.Live, err = g.store.LiveWork(ctx, taskID); err != nil {
			return err
		}
		page, err := g.store.Requests(ctx, Filter{TaskID: taskID, Limit: reportRequests})
		p.Requests = page.Items
		return err
	}
	if err := read(); err != nil {
		return p, fmt.Errorf("reading how %s stands: %w", taskID, err)
	}
	users, err := g.users.Users(ctx)
	if err != nil {
		return p, fmt.Errorf("reading who asked for %s: %w", taskID, err)
	}
	if i := slices.IndexFunc(users, func(u people.User) bool { return u.ID == p.Task.RequesterID }); i >= 0 {
		p.Asker = &users[i]
	}
	return p, nil
}

// releaseReports makes leased reports that were not delivered due again.
func (g *Gateway) releaseReports(ctx context.Context, all []Report) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTime)
	defer cancel()
	var failed error
	for _, r := range all {
		r.DueAt = g.now()
		if err := g.store.SaveReport(ctx, r, false); err != nil {
			failed = errors.Join(failed, fmt.Errorf("giving back the report of %s in %s: %w", r.TaskID, r.Channel, err))
		}
	}
	return failed
}
