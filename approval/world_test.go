package approval_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// clock is a clock that moves a millisecond at each look, and further when told.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// team is everybody there is.
type team []people.User

func (t team) Users(context.Context) ([]people.User, error) { return t, nil }

// world is a gateway on a real database, with everybody of staff.
type world struct {
	*testing.T
	ctx   context.Context
	clock *clock
	db    *sqlstore.Store
	g     *approval.Gateway
}

func newWorld(t *testing.T, c approval.Config) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), clock: &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}}
	url := "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db")
	if strings.HasPrefix(t.Name(), onPostgres) {
		url = storetest.Postgres(t)
	}
	db, err := sqlstore.Open(w.ctx, storetest.Ready(t, url), store.Options{Now: w.clock.now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if c.Groups == nil {
		c.Groups = groups
	}
	w.db = db
	w.g = approval.New(approval.Options{Store: db, Users: team(staff()), Now: w.clock.now, Logger: slog.New(slog.DiscardHandler),
		Diff: func(_ context.Context, r approval.Request) (string, error) {
			return fmt.Sprintf("diff of revision %d\n", r.Revision.N), nil
		}}, c)
	return w
}

// onPostgres begins the names of the tests whose world is on PostgreSQL.
const onPostgres = "TestTheStoriesOnPostgreSQL"

// The stories above all run on SQLite; those in which the database decides, on both.
func TestTheStoriesOnPostgreSQL(t *testing.T) {
	for name, story := range map[string]func(*testing.T){
		"yes":        TestAYesOnWhatWasShownOrdersTheLanding,
		"many":       TestOfManyWhoDecideAtOnceOneWins,
		"two":        TestTwoOfAGroup,
		"expiry":     TestExpiryIsNeverAYes,
		"revisions":  TestRequestChangesGivesTheNextRevisionOfTheSameRequest,
		"stale":      TestAStaleChangeIsAskedAgain,
		"withdraw":   TestWithdraw,
		"revert":     TestRevert,
		"cards":      TestEveryCardConvergesToItsRequest,
		"try again":  TestAChannelThatFailsIsTriedAgain,
		"no answer":  TestACardIsNeverGivenUpBecauseNobodyAnswers,
		"crash":      TestACrashBetweenSendingAndSavingLosesNothing,
		"on the way": TestAChangeDuringADeliveryIsNotMissed,
		"run":        TestRunDeliversAndSweepsUntilItIsStopped,
		"reminders":  TestPeopleAreRemindedBeforeTheDeadline,
		"missed":     TestMissedRemindersAreOne,
		"escalation": TestNobodyDecidedSoOthersMay,
		"clock":      TestTheClockStepsAroundTheDeadline,
		"notices":    TestANoticeIsTriedAgainAndGivenUp,
		"flood":      TestFiftyRequestsInAMinuteAreFiveCardsAndOneDigest,
		"own card":   TestARequestLeavesItsDigestToBeShown,
		"converge":   TestEverythingConverges,
		"lineage":    TestTheLineageIsStoredWithTheRequest,
		"authors":    TestRulesAndBacktestsSeeWhoWorkedOnATree,
		"two groups": TestTwoOfTwoGroups,
		"away":       TestOutOfOffice,
		"back":       TestAnAbsenceEndsInTheMiddle,
		"deputy":     TestCardsReachTheDeputyAndFollowTheMode,
		"hand-over":  TestAHandoverIsARequestLikeAnyOther,
		"two for it": TestTwoPeopleForAHandover,
		"same tree":  TestAVerdictOnTheSameTreeOfAnEarlierRevisionDoesNotCount,
		"ticks":      TestAYesToACarefulChangeNeedsEveryTick,
		"ends":       TestTheEndOfTheWorkEndsWhatIsOpen,
		"kept yes":   TestAHandoverKeepsItsYes,
		"unviewed":   TestAYesOnThePageSaysThatNothingWasOpened,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for the disk
			story(t)
		})
	}
}

func need(n int) *int { return &n }

// compiled are rules for the groups of these tests.
func compiled(t *testing.T, rules ...policy.RuleConfig) *policy.Policy {
	t.Helper()
	p, problems := policy.CompileRules(rules, map[string][]string{"maintainers": {"ann", "bob"}, "leads": {"dora"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// checked makes a task of ann's whose only delegation has a tree that was checked.
func (w *world) checked() orchestrator.Delegation {
	w.Helper()
	now := w.clock.now()
	task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now), RootID: orchestrator.NewID(orchestrator.DelegationPrefix, now),
		Agent: "coder", Text: "Fix the retry loop\nand say why.", Repository: "app", RequesterID: "usr_ann", Requester: "ann", Via: origin.From(origin.Web), CreatedAt: now}
	d := orchestrator.Delegation{ID: task.RootID, TaskID: task.ID, To: "coder", Text: task.Text, State: orchestrator.Checking, Attempt: 1,
		HopKey: "root", Repository: "app", Requester: "ann", CreatedAt: now, Since: now,
		Work: orchestrator.Work{Product: orchestrator.Product{Tree: id40("1")}, Base: orchestrator.Base{Stand: orchestrator.Stand{Branch: "main"}}}}
	_, _, err := w.db.NewTask(w.ctx, task, func(tx orchestrator.Tx) error { return tx.Insert(w.ctx, &d) })
	w.must(err)
	return w.delegation(d.ID)
}

func id40(digit string) string { return strings.Repeat(digit, 40) }
func id64(digit string) string { return strings.Repeat(digit, 64) }

// proposal is a plain change whose tree and digest are made of one digit.
func proposal(digit string) orchestrator.Proposal {
	return orchestrator.Proposal{
		Repository: "app", Deliver: "merge", Base: patch.Base{Branch: "main", Commit: id40("b"), Tree: id40("a")},
		Tree: id40(digit), Branch: "gatehouse/coder-fix-9f2c1a", Commit: id40("c"), Bundle: "bundle-" + digit, Digest: id64(digit),
		Agent: "coder", Text: "The counter was reset.", Checks: []orchestrator.Check{{Command: "go vet ./...", OK: true}},
		Review: &patch.Review{Added: 31, Removed: 9, Files: []patch.File{{Path: "upload/retry.go", Status: patch.Modified, Added: 31, Removed: 9, Bytes: 900, NewMode: "100644"}},
			Notes: []patch.Note{{Code: "deletion", Text: "A file goes."}}},
	}
}

// asked puts the plain change before people and returns the request.
func (w *world) asked() approval.Request {
	w.Helper()
	d := w.checked()
	w.must(w.g.Ask(w.ctx, d, proposal("1")))
	return w.request(w.delegation(d.ID).ApprovalID)
}

func (w *world) delegation(id string) orchestrator.Delegation {
	w.Helper()
	d, err := w.db.Delegation(w.ctx, id)
	w.must(err)
	return d
}

func (w *world) request(id string) approval.Request {
	w.Helper()
	r, err := w.db.Request(w.ctx, id)
	w.must(err)
	return r
}

// ballot is what a person of staff says about the request's current digest on the web.
func ballot(r approval.Request, name string, v approval.Verdict) approval.Ballot {
	b := approval.Ballot{RequestID: r.ID, Channel: "web", Verdict: v, Digest: r.Revision.Digest}
	for _, u := range staff() {
		if u.Name == name {
			b.Principal = people.As(u, nil)
		}
	}
	if v == approval.RequestChanges {
		b.Comment = "Handle the timeout too."
	}
	return b
}

// decide casts a ballot that must count.
func (w *world) decide(b approval.Ballot) approval.Request {
	w.Helper()
	r, err := w.g.Decide(w.ctx, b)
	w.must(err)
	return r
}

// refused casts a ballot that must not count, and checks the code and a part of the answer.
func (w *world) refused(b approval.Ballot, code, says string) {
	w.Helper()
	before := w.request(b.RequestID)
	_, err := w.g.Decide(w.ctx, b)
	if orchestrator.CodeOf(err) != code || !strings.Contains(fmt.Sprint(err), says) {
		w.Fatalf("answer %s: %v; want %s and %q", orchestrator.CodeOf(err), err, code, says)
	}
	if code != orchestrator.CodeExpired {
		if after := w.request(b.RequestID); after.Version != before.Version || len(after.Decisions) != len(before.Decisions) {
			w.Fatalf("a refused verdict changed the request from version %d to %d", before.Version, after.Version)
		}
	}
}

// events returns the events of one type of a task, oldest first.
func (w *world) events(taskID string, types ...event.Type) []event.Event {
	w.Helper()
	all, err := w.db.Events(w.ctx, taskID, 0, 200)
	w.must(err)
	return slices.DeleteFunc(all, func(e event.Event) bool { return !slices.Contains(types, e.Type) })
}

// rework takes a queued delegation to a further tree, as a worker would.
func (w *world) rework(id string) orchestrator.Delegation {
	w.Helper()
	d := w.delegation(id)
	if d.State != orchestrator.Queued {
		w.Fatalf("the delegation is %s, not queued", d.State)
	}
	w.must(w.db.InTask(w.ctx, d.TaskID, func(tx orchestrator.Tx) error {
		row, err := tx.Delegation(w.ctx, id)
		if err != nil {
			return err
		}
		was := row.Attempt
		row.State, row.Attempt, row.Since = orchestrator.Checking, was+1, tx.Now()
		return tx.Move(w.ctx, row, orchestrator.Queued, was)
	}))
	return w.delegation(id)
}

// expectStates checks where a request and its delegation stand.
func (w *world) expectStates(requestID string, rs approval.State, ds orchestrator.State) {
	w.Helper()
	r := w.request(requestID)
	d := w.delegation(r.DelegationID)
	if r.State != rs || r.Revision.State != rs || d.State != ds {
		w.Fatalf("request %s, revision %s, delegation %s; want %s and %s", r.State, r.Revision.State, d.State, rs, ds)
	}
}

// oldStore answers reads outside transactions as they were earlier: what another
// node has done since is seen only under the task's row.
type oldStore struct {
	approval.Store
	r approval.Request
}

func (o oldStore) Request(context.Context, string) (approval.Request, error) { return o.r, nil }

func (o oldStore) Overdue(_ context.Context, _ time.Time, _ int) ([]approval.Request, error) {
	return []approval.Request{o.r}, nil
}

// other is the gateway of another node, which has read r a moment ago.
func (w *world) other(r approval.Request) *approval.Gateway {
	return approval.New(approval.Options{Store: oldStore{w.db, r}, Users: team(staff()), Now: w.clock.now,
		Diff: func(context.Context, approval.Request) (string, error) { return "diff\n", nil }}, w.g.Config())
}
