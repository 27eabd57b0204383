package approval_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// A row names who decided, where each had read the change, and how much of it; of verdicts
// of before that was kept it says what it knows.
func TestHowARequestWasRead(t *testing.T) {
	whole := func(where string) []approval.Read { return []approval.Read{{Surface: where, Files: 3, Whole: true}} }
	said := func(user string, revision int, read []approval.Read) approval.Decision {
		return approval.Decision{User: user, Revision: revision, Verdict: approval.Approve, Seen: approval.Seen{Surface: "cli", Files: 3, Read: read}}
	}
	old := func(surface string, opened int) approval.Decision {
		return approval.Decision{User: "ada", Revision: 2, Seen: approval.Seen{Surface: surface, Files: 3, FilesOpened: opened}}
	}
	for want, all := range map[string][]approval.Decision{
		"": {said("ada", 1, whole("cli")), {User: "rule:docs", Revision: 2, Seen: approval.Seen{Surface: "x", Files: 3, Read: []approval.Read{}}}, old("telegram", 0), old("page", 0)},
		"read on the web by ada: 3 of 3 files; in Telegram by ben: whole": {said("ada", 2, []approval.Read{{Surface: "page", Files: 3}}), said("ben", 2, whole("telegram"))},
		"read on the command line by ada: whole; not read here by cy":     {said("ada", 2, []approval.Read{}), said("cy", 2, []approval.Read{}), said("ada", 2, whole("cli"))},
		"read on the web by ada: 2 of 3 files":                            {old("page", 2)},
		"not read here by cy":                                             {said("cy", 2, []approval.Read{})},
	} {
		r := approval.Request{Revision: approval.Revision{N: 2}, Decisions: all}
		if got := r.HowRead(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Who read it without a verdict stands behind those who decided, and of many only some.
func TestWhoReadWithoutAVerdictStandsApart(t *testing.T) {
	decided := approval.Decision{User: "ada", Revision: 1, Seen: approval.Seen{Surface: "cli", Files: 3, Read: []approval.Read{{Surface: "cli", Files: 3, Whole: true}}}}
	part := func(names ...string) (all []approval.Reader) {
		for _, name := range names {
			all = append(all, approval.Reader{User: name, Of: 3, Reads: []approval.Read{{Surface: "page", Files: 1}}})
		}
		return all
	}
	for want, r := range map[string]approval.Request{
		"read on the command line by ada: whole; read without a verdict on the web by ben: 1 of 3 files": {Decisions: []approval.Decision{decided}, Readers: part("ben")},
		"read without a verdict on the web by a: 1 of 3 files; on the web by b: 1 of 3 files; on the web by c: 1 of 3 files; on the web by d: 1 of 3 files; by 2 others": {
			Readers: part("a", "b", "c", "d", "e", "f")},
	} {
		r.Revision.N = 1
		if got := r.HowRead(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if all := r.ReadBy(); len(all) != len(r.Decisions)+len(r.Readers) || all[0].Decided != (len(r.Decisions) > 0) || all[len(all)-1].Decided {
			t.Errorf("all of them: %+v", all)
		}
	}
	looks := []approval.Look{{User: "ben", Revision: 1, Current: true, Files: 2, Whole: []string{"page", "api"}}, {User: "cy", Revision: 2, Files: 1}}
	if got, want := approval.AlsoRead("read in Telegram by ada: whole", 3, looks), "read in Telegram by ada: whole; read without a verdict on the web by ben: whole; by the API by ben: whole"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for who, want := range map[people.Role]bool{people.Admin: true, people.Approver: true, people.Auditor: true, people.Operator: false} {
		if got := approval.KnowsReaders(people.As(people.User{Roles: []people.Role{who}}, nil)); got != want {
			t.Errorf("%s may know who reads: %v", who, got)
		}
	}
}

// branches is git as the gateway asks it: where the branch is, and whether a change fits.
type branches struct {
	head     string
	conflict []string
	broken   bool
	compared int
	asked    []string // for which branches of which repository, look by look
}

func (b *branches) Heads(_ context.Context, repository string, names []string) (map[string]string, error) {
	b.asked = append(b.asked, repository+": "+strings.Join(names, " "))
	if b.broken {
		return nil, errors.New("no such repository")
	}
	heads := map[string]string{}
	for _, name := range names {
		heads[name] = b.head
	}
	return heads, nil
}

func (b *branches) Since(ctx context.Context, v approval.Revision, repository string) (approval.Movement, error) {
	return b.Moved(ctx, v, repository)
}

func (b *branches) Moved(_ context.Context, v approval.Revision, _ string) (approval.Movement, error) {
	b.compared++
	if b.head == v.Base.Commit {
		return approval.Movement{}, nil
	}
	return approval.Movement{Head: b.head, Fits: patch.Carried{OK: len(b.conflict) == 0, Moved: b.conflict}}, nil
}

// However many wait, each of them is looked at, and their repository once.
func TestAllThatWaitIsLookedAt(t *testing.T) {
	w := newWorld(t, approval.Config{})
	git := &branches{head: "aaa", conflict: []string{"a.go"}}
	w.g.SetBranches(git)
	var all []approval.Request
	for range 201 { // a page of a list has 200
		all = append(all, w.asked())
	}
	for round := range 2 {
		w.must(w.g.LookAtBranches(w.ctx))
		if len(git.asked) != round+1 || git.asked[round] != "app: main" || git.compared != len(all) {
			t.Fatalf("%d waited in round %d: looked at %q, compared %d times", len(all), round, git.asked, git.compared)
		}
	}
	for _, r := range all {
		if w.request(r.ID).Overtaken() == "" {
			t.Errorf("%s was left out", r.ID)
		}
	}
}

// A round of looking at branches stores what became of a change that waits, once, and takes
// it back when the branch fits again; what did not move is not compared.
func TestWhatWaitsIsLookedAtAsItsBranchMoves(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	git := &branches{head: r.Revision.Base.Commit}
	w.g.SetBranches(git)
	look := func(compared int, why string) {
		t.Helper()
		if err := w.g.LookAtBranches(w.ctx); err != nil {
			t.Fatal(err)
		}
		got := w.request(r.ID)
		if git.compared != compared || got.Overtaken() != why {
			t.Errorf("compared %d times, want %d; %q, want %q", git.compared, compared, got.Overtaken(), why)
		}
	}
	const would = "A yes to this would land nothing: main changed a.go and b.go meanwhile."
	look(0, "")
	git.head, git.conflict = "aaa", []string{"a.go", "b.go"}
	look(1, would)
	version := w.request(r.ID).Version
	look(1, would)
	git.head = "bbb"
	look(2, would)
	if got := w.request(r.ID); got.Version != version {
		t.Errorf("what people read is the same, and the cards are made anew: version %d, then %d", version, got.Version)
	}
	git.broken = true
	if err := w.g.LookAtBranches(w.ctx); err == nil || w.request(r.ID).Overtaken() != would {
		t.Error("a repository that cannot be read is no news of a branch")
	}
	git.broken, git.head, git.conflict = false, r.Revision.Base.Commit, nil
	look(3, "")
	if n := len(w.events(r.TaskID, event.Overtaken)); n != 2 {
		t.Errorf("%d events, want that it was overtaken and that it fits again", n)
	}
	// A yes looks itself.
	git.head, git.conflict = "ccc", []string{"a.go"}
	after := w.decide(ballot(r, "bob", approval.Approve))
	if after.State != approval.Approved || after.Missed() != "Nothing landed: main changed a.go meanwhile. Revision 2 asks again." {
		t.Errorf("%s: %q", after.State, after.Missed())
	}
}
