package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/textcut"
)

// MessagePrefix begins the ids of messages.
const MessagePrefix = "msg_"

// The limits of what is said to one delegation. It stands in its row.
const (
	MaxMessage   = 8 << 10 // bytes of one message
	maxUnread    = 20
	maxRead      = 200 // of what was told, the newest are told again to a run that begins anew
	maxReadBytes = 64 << 10
)

// Message is what a person said to a delegation's agent.
type Message struct {
	agent.PersonMessage
	ByID   string        `json:"by"` // usr_…
	Via    origin.Origin `json:"via,omitzero"`
	Key    string        `json:"key,omitempty"`     // the sender's idempotency key
	ReadAt *time.Time    `json:"read_at,omitempty"` // when the agent was told; nil where it was not
}

// Words is what Tell is asked to tell.
type Words struct {
	Text string
	Key  string // the same key of the same person is the same message; "" for none
	By   people.User
	Via  origin.Origin
}

// Tell leaves a message for the agent of a delegation, or of a task's root, which is told it
// before its next turn. It is refused where the agent has ended, waits for its change to be
// approved, or cannot hear. A key that was used before answers with its message.
func (e *Engine) Tell(ctx context.Context, id string, w Words) (Message, Delegation, error) {
	text := strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(w.Text, "\r\n", "\n"), "\uFFFD")) // forms send CRLF
	switch {
	case text == "" || strings.ContainsRune(text, 0):
		return Message{}, Delegation{}, Errorf(CodeBadRequest, "The message has no text that can be told. Write what the agent should know.")
	case len(text) > MaxMessage:
		return Message{}, Delegation{}, Errorf(CodeBadRequest, "The message has %d bytes; %d is the limit. Say it shorter, or put it into a file of the repository.", len(text), MaxMessage)
	case utf8.RuneCountInString(w.Key) > 200:
		return Message{}, Delegation{}, Errorf(CodeBadRequest, "The key has more than 200 characters. Use a shorter one.")
	}
	d, err := e.lookUp(ctx, id)
	if err != nil {
		return Message{}, Delegation{}, err
	}
	said := Message{PersonMessage: agent.PersonMessage{From: w.By.Name, Text: mask.Text(text)}, ByID: w.By.ID, Via: w.Via, Key: w.Key}
	err = e.inRow(ctx, d.TaskID, d.ID, func(tx Tx, row *Delegation) error {
		d = *row
		if was := row.Work.Messages.keyed(said); was != nil {
			if was.Text != said.Text {
				return Errorf(CodeKeyReused, "The key %q was used for another message, %s. Use a new key for a new message.", w.Key, was.ID)
			}
			said = *was
			return nil
		}
		if err := e.Hearing(row); err != nil {
			return err
		}
		said.ID, said.At = NewID(MessagePrefix, tx.Now()), tx.Now()
		row.Work.Unread = append(row.Work.Unread, said)
		if err := save(ctx, tx, row); err != nil {
			return err
		}
		return tx.Append(ctx, event.Of(row.ID, w.By.Name, event.MessageSentData{ID: said.ID, Agent: row.To, Via: w.Via.String(), Text: cut(said.Text)}))
	})
	return said, d, err
}

// Said is all that is kept of what people said, oldest first.
func (m *Messages) Said() []Message { return slices.Concat(m.Read, m.Unread) }

// keyed finds what the same person said under the same key; nil where that is nothing.
func (m *Messages) keyed(said Message) *Message {
	for _, o := range m.Said() {
		if said.Key != "" && o.Key == said.Key && o.ByID == said.ByID {
			return &o
		}
	}
	return nil
}

// shownUnread is how much of a message a note repeats, in characters.
const shownUnread = 300

// tooLate is the note on a change whose agent had ended before it read all that people said;
// nil where it did. A run after "request changes" is told it.
func (d *Delegation) tooLate() *patch.Note {
	if len(d.Work.Unread) == 0 {
		return nil
	}
	said := each.Of(d.Work.Unread, func(m Message) string {
		return fmt.Sprintf("%s: %q", m.From, textcut.Characters(m.Text, shownUnread))
	})
	return &patch.Note{Code: "unread", Text: d.To + " had ended before it read this; if you request changes, it is told it, too. " + strings.Join(said, " · ")}
}

// Hearing says why nothing can be said to d's agent now; nil where it can.
func (e *Engine) Hearing(d *Delegation) error {
	switch {
	case d.State.Ended():
		return Errorf(CodeEnded, "This has ended already, as %s, so %s hears nothing any more. Send a new task.", stateWords(d.State), d.To)
	case d.State == AwaitingApproval && d.StartedAt == nil:
		return Errorf(CodeConflict, "People are asked before this is handed to %s, which has not begun. Say it when they have decided.", d.To)
	case d.State == AwaitingApproval:
		return Errorf(CodeConflict, "%s is done, and its change waits for approval. Request changes instead: it reads what you write there.", d.To)
	case d.State == Checking || d.State == Landing:
		return Errorf(CodeConflict, "%s is done, and its change is %s. Request changes when it waits for approval, or send a new task.", d.To, stateWords(d.State))
	case d.Work.HandedTo != "":
		return Errorf(CodeCannotHear, "%s handed its work over and hears nothing any more. Say it to the agent that works on it now.", d.To)
	}
	spec, known := e.Config().Agents.Get(d.To)
	if hears := e.traits(spec).Hears; !known || d.Work.Reverts != "" || hears == nil || !hears(spec) {
		return Errorf(CodeCannotHear, "%s cannot hear while it works: it was given its task at the start. Cancel it and send a new task, or wait for its end and request changes.", d.To)
	}
	if n := len(d.Work.Unread); n >= maxUnread {
		return Errorf(CodeConflict, "%s has %d messages that it has not read, which is the limit. Wait until it reads them, or cancel it.", d.To, n)
	}
	return nil
}

// hears notes that d's agent is told these messages, by a turn or, where that is 0, at once.
func hears(ctx context.Context, tx Tx, d *Delegation, ids []string, turn int) error {
	if len(ids) == 0 {
		return nil
	}
	m := &d.Work.Messages
	var now []Message
	m.Unread = slices.DeleteFunc(slices.Clone(m.Unread), func(o Message) bool {
		if !slices.Contains(ids, o.ID) {
			return false
		}
		o.ReadAt = new(tx.Now())
		now = append(now, o)
		return true
	})
	if len(now) != len(ids) {
		return Errorf(CodeConflict, "Of %d messages %d were told before.", len(ids), len(ids)-len(now))
	}
	m.Read = newest(append(slices.Clip(m.Read), now...))
	d.steeredBy(tx.Task(), now)
	if err := hearsay(ctx, tx, d, now); err != nil {
		return err
	}
	return tx.Append(ctx, event.Of(d.ID, d.To, event.MessageDeliveredData{IDs: ids, Turn: turn}))
}

// hearsay notes who said these things to d's agent with all others that work on the task: what
// it repeats on the board they read there, long before it ends.
func hearsay(ctx context.Context, tx Tx, d *Delegation, said []Message) error {
	if !slices.ContainsFunc(said, func(m Message) bool { return m.ByID != tx.Task().RequesterID }) {
		return nil
	}
	tree, err := tx.Tree(ctx)
	for _, o := range tree {
		if err != nil || o.ID == d.ID || o.State.Ended() {
			continue
		}
		o.steeredBy(tx.Task(), said)
		err = save(ctx, tx, o)
	}
	return err
}

// newest are the last messages that a row has room for.
func newest(all []Message) []Message {
	from, size := len(all), 0
	for from > 0 && len(all)-from < maxRead && size+len(all[from-1].Text) <= maxReadBytes {
		from--
		size += len(all[from].Text)
	}
	return all[from:]
}

// asTold are messages as agents are given them.
func asTold(all []Message) []agent.PersonMessage {
	return each.Of(all, func(m Message) agent.PersonMessage { return m.PersonMessage })
}

// Unread is what people said that no turn has carried; see agent.Host.
func (r *run) Unread(context.Context) ([]agent.PersonMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unread, nil
}

func (r *run) nowUnread(all []agent.PersonMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread = all
}

// Hear takes what people said; see agent.Host.
func (r *run) Hear(ctx context.Context, wait bool) ([]agent.PersonMessage, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if err := r.live(); err != nil {
			return nil, err
		}
		poked := r.pokes() // before the row is looked at, so that no poke is missed
		said, err := r.hearNow(ctx)
		if err != nil && !transient(err) || len(said) > 0 || !wait {
			return said, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.ctx.Done():
			return nil, agent.ErrStopped
		case <-poked:
		case <-tick.C:
		}
	}
}

// hearNow takes what is unread. It looks without a lock first: mostly there is nothing.
func (r *run) hearNow(ctx context.Context) ([]agent.PersonMessage, error) {
	d, err := r.e.Store.Delegation(ctx, r.id)
	if err != nil || len(d.Work.Unread) == 0 {
		return nil, err
	}
	var now, maybe []Message // maybe were taken by a try before, if that was committed after all
	err = r.write(ctx, func(tx Tx, d *Delegation) error {
		taken := slices.DeleteFunc(slices.Clone(maybe), func(m Message) bool {
			return !slices.ContainsFunc(d.Work.Read, func(o Message) bool { return o.ID == m.ID })
		})
		all := slices.Concat(taken, d.Work.Unread)
		now = all
		tx.OnRollback(func(unsure bool) {
			if unsure {
				maybe = all
			}
		})
		if err := hears(ctx, tx, d, each.Of(d.Work.Unread, func(m Message) string { return m.ID }), 0); err != nil {
			return err
		}
		return save(ctx, tx, d)
	})
	return asTold(now), err
}

// Spoken is what became of what a person said in a thread: a new task, or a message to the
// agent that still works on the one before.
type Spoken struct {
	Task    Task
	Root    Delegation
	Created bool
	Message *Message // nil: it became the task
}

// Say is Submit for a thread whose agent may still work: it is told then. The same key again
// answers with the same message, or the same task.
func (e *Engine) Say(ctx context.Context, s Submission, by people.User) (Spoken, error) {
	told, err := e.tellThread(ctx, s, by)
	if told != nil || err != nil {
		return *cmp.Or(told, &Spoken{}), err
	}
	t, root, created, err := e.Submit(ctx, s)
	return Spoken{Task: t, Root: root, Created: created}, err
}

// tellThread tells the agent of the newest task of a thread; nil where nobody works there,
// or where the words are for another agent.
func (e *Engine) tellThread(ctx context.Context, s Submission, by people.User) (*Spoken, error) {
	if s.Follows == "" || s.DryRun {
		return nil, nil
	}
	t, err := e.Store.Task(ctx, s.Follows)
	if err != nil || t.RequesterID != s.RequesterID {
		return nil, nil // Submit says so
	}
	d, err := e.newestOf(ctx, t)
	if err != nil {
		return nil, err
	}
	before, known, err := e.toldBefore(ctx, t, Message{ByID: by.ID, Key: s.Key})
	if err != nil {
		return nil, err
	}
	if known {
		d = before
	}
	if works := d.State == Queued || d.State == Running || d.State == Waiting; !known && (!works || s.Agent != "" && s.Agent != d.To || s.Key != "" && e.taken(ctx, s)) {
		return nil, nil
	}
	if len(s.Attachments) > 0 {
		return nil, Errorf(CodeConflict, "%s works, and files come with a new task only. Send the words alone, or wait until it has ended.", d.To)
	}
	said, d, err := e.Tell(ctx, d.ID, Words{Text: s.Text, Key: s.Key, By: by, Via: s.Via})
	if CodeOf(err) == CodeEnded { // at this moment
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if t, err = e.Store.Task(ctx, d.TaskID); err != nil {
		return nil, err
	}
	return &Spoken{Task: t, Root: d, Message: &said}, nil
}

// toldBefore finds the task of t's thread whose agent was told the same under the same key.
func (e *Engine) toldBefore(ctx context.Context, t Task, said Message) (d Delegation, known bool, err error) {
	if said.Key == "" {
		return d, false, nil
	}
	page, err := e.Store.List(ctx, Filter{Conversation: t.RequesterID, Thread: t.ThreadID(), Limit: maxSaid})
	i := slices.IndexFunc(page.Items, func(d Delegation) bool { return d.Work.Messages.keyed(said) != nil })
	if err != nil || i < 0 {
		return d, false, err
	}
	return page.Items[i], true, nil
}

// taken reports whether a task was made of a submission before.
func (e *Engine) taken(ctx context.Context, s Submission) bool {
	_, err := e.Store.TaskByKey(ctx, s.RequesterID, s.Key)
	return err == nil
}

// newestOf is the root of the newest task of t's thread.
func (e *Engine) newestOf(ctx context.Context, t Task) (Delegation, error) {
	page, err := e.Store.List(ctx, Filter{Conversation: t.RequesterID, Thread: t.ThreadID(), Limit: 1})
	if err == nil && len(page.Items) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Delegation{}, err
	}
	return page.Items[0], nil
}

// follow tells the agent of a follow-up what its message goes on with.
func (r *run) follow(job *agent.Job, d *Delegation) error {
	if f := d.Work.Follows; f != nil && f.Files != "" {
		job.Text += "\n\n(" + f.Files + ")"
	}
	if len(job.Turns) > 0 {
		if d.Work.Follows != nil {
			job.Next = job.Text
		}
		return nil
	}
	said, by, err := r.said(r.ctx)
	job.Text = agent.AfterThread(said, job.Text)
	if now := d.Work.Lineage.With(by); err != nil || reflect.DeepEqual(now, d.Work.Lineage) {
		return err
	}
	return r.write(r.ctx, func(tx Tx, d *Delegation) error { // earlier tasks were run again since this one was sent
		d.Work.Lineage = d.Work.Lineage.With(by)
		return save(r.ctx, tx, d)
	})
}

// said is what was said in the thread of r's task before it, oldest first, and who has a part
// in that.
func (r *run) said(ctx context.Context) (all []agent.Said, by Lineage, err error) {
	page, err := r.e.Store.List(ctx, Filter{Conversation: r.task.RequesterID, Thread: r.task.Thread, After: r.task.RootID, Limit: maxSaid})
	for _, d := range slices.Backward(page.Items) {
		by = by.With(d.retold(&r.task))
		all = append(all, agent.Said{Person: d.Requester, Text: mask.Text(d.Text)})
		for _, m := range d.Work.Said() {
			all = append(all, agent.Said{Person: m.From, Text: m.Text})
		}
		switch {
		case d.Result != nil && d.Result.Text != "":
			all = append(all, agent.Said{Agent: d.To, Text: d.Result.Text})
		case d.Error != nil:
			all = append(all, agent.Said{Agent: d.To, Text: "(no answer: " + d.Error.Message + ")"})
		}
	}
	return all, by, err
}

// maxSaid is how many earlier tasks of a thread are looked at to tell what was said, and
// whether it was.
const maxSaid = 20
