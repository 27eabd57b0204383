package telegram_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/sqlstore"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// hands is a clock that stands still until it is moved.
type hands struct {
	mu sync.Mutex
	at time.Time
}

func (h *hands) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hands) step(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

// The accounts of these tests, and the group that all are in.
var (
	ann    = bottest.Account{ID: 1001, Username: "ann_tg", Name: "Ann"}
	bob    = bottest.Account{ID: 1002, Name: "Bob"}
	dora   = bottest.Account{ID: 1003, Name: "Dora"}
	eve    = bottest.Account{ID: 1004, Name: "Eve"}
	nobody = bottest.Account{ID: 1099, Username: "ann", Name: "ann"} // calls itself like a person
)

const room = -100123

// world is a gateway on a real database, with a bot in front of it.
type world struct {
	*testing.T
	ctx     context.Context
	clock   *hands
	db      *sqlstore.Store
	gateway *approval.Gateway
	tg      *bottest.Server
	client  *telegram.Client
	channel *telegram.Channel
	desk    *telegram.Desk
	engine  *works
	users   map[string]people.User
	diff    string
	offset  int64
}

// works takes tasks, stops them and runs them again, as the engine does; nobody works on them.
type works struct {
	w         *world
	sent      map[string]orchestrator.Submission // by key
	cancelled []string
	told      []string
}

func (e *works) Submit(ctx context.Context, s orchestrator.Submission) (orchestrator.Task, orchestrator.Delegation, bool, error) {
	if s.Agent != "kik" {
		return orchestrator.Task{}, orchestrator.Delegation{}, false, orchestrator.Errorf("unknown_agent", "There is no agent %q. Did you mean kik?", s.Agent)
	}
	e.sent[s.Key] = s
	now := e.w.clock.now()
	task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now), RootID: orchestrator.NewID(orchestrator.DelegationPrefix, now), Agent: s.Agent, Text: s.Text,
		Key: s.Key, RequesterID: s.RequesterID, Requester: s.Requester, Via: s.Via, Chat: s.Chat, CreatedAt: now}
	d := orchestrator.Delegation{ID: task.RootID, TaskID: task.ID, To: s.Agent, Text: s.Text, State: orchestrator.Queued, HopKey: "root",
		Requester: s.Requester, CreatedAt: now, Since: now}
	task, created, err := e.w.db.NewTask(ctx, task, func(tx orchestrator.Tx) error {
		if err := tx.Insert(ctx, &d); err != nil {
			return err
		}
		return tx.Append(ctx, event.Of(d.ID, s.Requester, event.TaskCreatedData{Agent: s.Agent}))
	})
	return task, d, created, err
}

// Say tells the agent that still works, and else makes a task of the thread.
func (e *works) Say(ctx context.Context, s orchestrator.Submission, by people.User) (orchestrator.Spoken, error) {
	if s.Follows != "" {
		t := e.w.task(s.Follows)
		if d := e.w.delegation(t.RootID); !d.State.Ended() {
			e.told = append(e.told, by.Name+": "+s.Text)
			return orchestrator.Spoken{Task: t, Root: d, Message: &orchestrator.Message{ByID: by.ID}}, nil
		}
		s.Agent = t.Agent
	}
	t, d, created, err := e.Submit(ctx, s)
	return orchestrator.Spoken{Task: t, Root: d, Created: created}, err
}

func (e *works) Retry(ctx context.Context, id string, by people.User) (orchestrator.Delegation, error) {
	d := e.w.delegation(e.w.task(id).RootID)
	return d, e.w.moved(d.ID, func(tx orchestrator.Tx, d *orchestrator.Delegation) {
		d.State, d.Error, d.EndedAt, tx.Task().EndedAt = orchestrator.Queued, nil, nil, nil
	})
}

func (e *works) Cancel(_ context.Context, id, actor string) (orchestrator.Delegation, error) {
	e.cancelled = append(e.cancelled, id+" by "+actor)
	return orchestrator.Delegation{To: "coder", Text: "Fix the retry loop"}, nil
}

// newWorld makes one in which ann, bob and cleo approve, dora operates and eve audits.
// All but cleo are linked.
func newWorld(t *testing.T, c approval.Config, chats ...telegram.Place) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), clock: &hands{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}, users: map[string]people.User{},
		engine: &works{sent: map[string]orchestrator.Submission{}}, diff: "diff --git a/upload/retry.go b/upload/retry.go\n+a\n-b\n"}
	w.engine.w = w
	w.open()
	w.tg = bottest.New(t)
	w.tg.SetClock(w.clock.now)
	w.tg.AddChat(room, "supergroup", "Team")
	for _, a := range []bottest.Account{ann, bob, dora, eve, nobody} {
		w.tg.AddChat(a.ID, "private", a.Name)
	}
	var err error
	w.client, err = telegram.New(telegram.ClientOptions{Token: w.tg.Token, APIURL: w.tg.URL, Log: quiet})
	w.must(err)
	w.channel = telegram.NewChannel(telegram.ChannelOptions{Sender: w.client, Buttons: w.db, Accounts: w.db, Now: w.clock.now, Log: quiet,
		Diff: func(context.Context, approval.Request) (string, error) { return w.diff, nil }},
		telegram.Settings{Chats: chats, PublicURL: "https://gate.example.com"})
	c.Channels = []approval.Channel{w.channel}
	w.gateway = approval.New(approval.Options{Store: w.db, Users: w.db, Now: w.clock.now, Logger: quiet,
		Diff: func(context.Context, approval.Request) (string, error) { return w.diff, nil }}, c)
	w.desk = telegram.NewDesk(telegram.DeskOptions{Channel: w.channel, Bot: w.client.Me, Gateway: w.gateway, Engine: w.engine, Reader: w.db, Accounts: w.db,
		Linker: w.db, Muter: w.db, Memory: w.db, Now: w.clock.now, Log: quiet})
	w.person("ann", &ann, people.Approver)
	w.person("bob", &bob, people.Approver)
	w.person("cleo", nil, people.Approver)
	w.person("dora", &dora, people.Operator)
	w.person("eve", &eve, people.Auditor)
	return w
}

var quiet = slog.New(slog.DiscardHandler)

// group is where the cards of these tests go.
var group = telegram.Place{Chat: room}

func (w *world) open() {
	w.Helper()
	url := "sqlite:" + filepath.Join(w.TempDir(), "gatehouse.db")
	if strings.Contains(w.Name(), "PostgreSQL") {
		url = storetest.Postgres(w.T)
	}
	db, err := sqlstore.Open(w.ctx, storetest.Ready(w.T, url), store.Options{Now: w.clock.now, Logger: quiet})
	w.must(err)
	w.Cleanup(func() {
		if err := db.Close(); err != nil {
			w.Error(err)
		}
	})
	w.db = db
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// person adds somebody, with an account that is linked.
func (w *world) person(name string, a *bottest.Account, roles ...people.Role) {
	w.Helper()
	u, err := w.db.CreateUser(w.ctx, "test", people.User{Name: name, Roles: roles})
	w.must(err)
	w.users[name] = u
	if a == nil {
		return
	}
	code, err := w.db.CreateLinkCode(w.ctx, "test", telegram.Name, u.ID)
	w.must(err)
	_, err = w.db.UseLinkCode(w.ctx, telegram.Name, code, a.ID, a.Name)
	w.must(err)
}

// asked puts a plain change of somebody's task before people, and shows it.
func (w *world) asked(by string, change ...func(*orchestrator.Proposal)) approval.Request {
	w.Helper()
	return w.proposed(w.delegated(by).ID, "1", change...)
}

// delegated makes a task of somebody's whose only delegation has a tree that was checked.
func (w *world) delegated(by string) orchestrator.Delegation {
	w.Helper()
	now := w.clock.now()
	task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now), RootID: orchestrator.NewID(orchestrator.DelegationPrefix, now),
		Agent: "coder", Text: "Fix the retry loop", Repository: "app", RequesterID: w.users[by].ID, Requester: by, Via: origin.From(origin.Web), CreatedAt: now}
	d := orchestrator.Delegation{ID: task.RootID, TaskID: task.ID, To: "coder", Text: task.Text, State: orchestrator.Checking, Attempt: 1,
		HopKey: "root", Repository: "app", Requester: by, CreatedAt: now, Since: now, Work: orchestrator.Work{Product: orchestrator.Product{Tree: digits("1")}, Base: orchestrator.Base{Stand: orchestrator.Stand{Branch: "main"}}}}
	_, _, err := w.db.NewTask(w.ctx, task, func(tx orchestrator.Tx) error { return tx.Insert(w.ctx, &d) })
	w.must(err)
	return w.delegation(d.ID)
}

func (w *world) delegation(id string) orchestrator.Delegation {
	w.Helper()
	d, err := w.db.Delegation(w.ctx, id)
	w.must(err)
	return d
}

func (w *world) task(id string) orchestrator.Task {
	w.Helper()
	t, err := w.db.Task(w.ctx, id)
	w.must(err)
	return t
}

// moved changes a delegation as a worker would, with an event.
func (w *world) moved(id string, change func(orchestrator.Tx, *orchestrator.Delegation)) error {
	w.Helper()
	return w.db.InTask(w.ctx, w.delegation(id).TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(w.ctx, id)
		if err != nil {
			return err
		}
		was := d.State
		change(tx, d)
		if d.State.Ended() && d.ParentID == "" {
			d.EndedAt = new(tx.Now())
			tx.Task().EndedAt = d.EndedAt
		}
		if err := tx.Move(w.ctx, d, was, d.Attempt); err != nil {
			return err
		}
		return tx.Append(w.ctx, event.Of(d.ID, d.To, event.ProgressData{Text: "on"}))
	})
}

// as is somebody with all their rights.
func (w *world) as(name string) people.Principal { return people.As(w.users[name], nil) }

func digits(of string) string { return strings.Repeat(of, 40) }

// plain is a change whose tree is made of the digit 1.
func plain(d orchestrator.Delegation) orchestrator.Proposal { return proposal(d, "1") }

func proposal(d orchestrator.Delegation, digit string) orchestrator.Proposal {
	return orchestrator.Proposal{Repository: "app", Deliver: "merge", Base: patch.Base{Branch: "main", Commit: digits("b"), Tree: digits("a")}, Tree: digits(digit),
		Branch: "gatehouse/coder-fix-9f2c1a", Commit: digits("c"), Bundle: "bundle-" + digit, Digest: strings.Repeat(digit, 64), Agent: "coder", Text: "The counter was reset.",
		Review: &patch.Review{Added: 1, Removed: 1, Files: []patch.File{{Path: "upload/retry.go", Status: patch.Modified, Added: 1, Removed: 1, NewMode: "100644"}}}}
}

// proposed asks for a tree of the delegation, and shows it.
func (w *world) proposed(delegation, digit string, change ...func(*orchestrator.Proposal)) approval.Request {
	w.Helper()
	p := proposal(w.delegation(delegation), digit)
	for _, c := range change {
		c(&p)
	}
	w.must(w.gateway.Ask(w.ctx, w.delegation(delegation), p))
	w.deliver()
	return w.request(w.delegation(delegation).ApprovalID)
}

// again takes a queued delegation to a further tree, as a worker would.
func (w *world) again(r approval.Request, digit string) approval.Request {
	w.Helper()
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
		row, err := tx.Delegation(w.ctx, r.DelegationID)
		if err != nil {
			return err
		}
		was := row.Attempt
		row.State, row.Attempt, row.Since = orchestrator.Checking, was+1, tx.Now()
		return tx.Move(w.ctx, row, orchestrator.Queued, was)
	}))
	return w.proposed(r.DelegationID, digit)
}

func (w *world) request(id string) approval.Request {
	w.Helper()
	r, err := w.gateway.Request(w.ctx, id)
	w.must(err)
	return r
}

// deliver drives the outbox until nothing is due, letting groups rest in between.
func (w *world) deliver() {
	w.Helper()
	w.must(w.gateway.Deliver(w.ctx, w.channel))
	w.clock.step(3 * time.Second)
	w.must(w.gateway.Deliver(w.ctx, w.channel))
	w.clock.step(3 * time.Second)
}

// updates takes what people did since.
func (w *world) updates() [][]byte {
	w.Helper()
	got, err := w.client.GetUpdates(w.ctx, w.offset, 100, 0)
	w.must(err)
	var bodies [][]byte
	for _, u := range got {
		bodies, w.offset = append(bodies, u.Body), max(w.offset, u.ID+1)
	}
	return bodies
}

// handle acts on all that people did since, and shows what came of it.
func (w *world) handle() {
	w.Helper()
	for _, body := range w.updates() {
		w.must(w.desk.Handle(w.ctx, body))
	}
	w.deliver()
}

// press presses a button that a message shows, and returns the answer.
func (w *world) press(chat int64, message int, button string, who bottest.Account) string {
	w.Helper()
	query, err := w.tg.Press(chat, message, button, who)
	w.must(err)
	return w.answer(query)
}

// pressData is press with data that the message need not show.
func (w *world) pressData(chat int64, message int, data string, who bottest.Account) string {
	w.Helper()
	return w.answer(w.tg.PressData(chat, message, data, who))
}

func (w *world) answer(query string) string {
	w.Helper()
	w.handle()
	answers := w.tg.Answers(query)
	if len(answers) != 1 {
		w.Fatalf("answers %+v", answers)
	}
	return answers[0].Text
}

// say writes and returns the bot's newest message in the chat afterwards.
func (w *world) say(chat int64, who bottest.Account, text string, replyTo int) bottest.Message {
	w.Helper()
	w.tg.Say(chat, who, text, replyTo)
	w.handle()
	return w.tg.Last(chat)
}

// data is what a button of a message carries.
func data(m bottest.Message, button string) string {
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text == button {
				return b.Data
			}
		}
	}
	return ""
}

// buttons are what a message shows to press.
func buttons(m bottest.Message) string {
	var all []string
	for _, row := range m.Buttons {
		for _, b := range row {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, ", ")
}

// card is the newest message of the bot in a chat that is a card.
func (w *world) card(chat int64) bottest.Message {
	w.Helper()
	all := w.tg.FromBot(chat)
	for i := len(all) - 1; i >= 0; i-- {
		if len(all[i].Buttons) > 0 {
			return all[i]
		}
	}
	w.Fatalf("no card in chat %d: %+v", chat, all)
	return bottest.Message{}
}

// refused lists the verdicts that did not count, as "actor code".
func (w *world) refused(stream string) []string {
	w.Helper()
	events, err := w.db.Events(w.ctx, stream, 0, 200)
	w.must(err)
	var all []string
	for _, e := range events {
		if e.Type == event.VerdictRefused {
			_, code, _ := strings.Cut(string(e.Data), `"code":"`)
			code, _, _ = strings.Cut(code, `"`)
			all = append(all, e.Actor+" "+code)
		}
	}
	return all
}

func (w *world) wantRefused(stream string, want ...string) {
	w.Helper()
	if got := w.refused(stream); !slices.Equal(got, want) {
		w.Errorf("the history has refusals %q, want %q", got, want)
	}
}

// wantState checks where a request stands and how many verdicts it has.
func (w *world) wantState(id string, want approval.State, decisions int) approval.Request {
	w.Helper()
	r := w.request(id)
	if r.State != want || len(r.Decisions) != decisions {
		w.Fatalf("the request is %s with %d decisions, want %s with %d", r.State, len(r.Decisions), want, decisions)
	}
	return r
}

func (w *world) want(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

func (w *world) wantIn(what, got string, parts ...string) {
	w.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			w.Errorf("%s: no %q in\n%s", what, p, got)
		}
	}
}
