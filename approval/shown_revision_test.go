package approval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"

	"pgregory.net/rapid"
)

// reads is the ballot with the revision that was shown, and with a tick for each code.
func reads(b approval.Ballot, revision int, ticks ...string) approval.Ballot {
	b.Revision, b.Seen.WarningsTicked = revision, ticks
	return b
}

// again sends the request back and proposes p as its next revision.
func (w *world) again(r approval.Request, p orchestrator.Proposal) approval.Request {
	w.Helper()
	w.decide(reads(ballot(r, "bob", approval.RequestChanges), r.Revision.N))
	w.must(w.g.Ask(w.ctx, w.rework(r.DelegationID), p))
	return w.request(r.ID)
}

// failing is the plain change of proposal whose checks fail.
func failing(digit string) orchestrator.Proposal {
	p := proposal(digit)
	p.Checks = []orchestrator.Check{{Command: "go test ./...", Output: "FAIL"}}
	return p
}

// Row 9 of "A yes means yes to all of it": revisions 1 and 3 have the same tree and so the
// same digest, and the checks of 3 fail. What was shown as 1 cannot approve 3.
func TestAVerdictOnTheSameTreeOfAnEarlierRevisionDoesNotCount(t *testing.T) {
	w := newWorld(t, approval.Config{})
	first := w.asked()
	page := reads(ballot(first, "cleo", approval.Approve), 1) // still open
	second := w.again(first, proposal("2"))
	third := w.again(second, failing("1"))
	if third.Revision.N != 3 || third.Revision.Digest != first.Revision.Digest {
		t.Fatalf("revision %d, digest %s", third.Revision.N, third.Revision.Digest)
	}
	for _, v := range []approval.Verdict{approval.Approve, approval.Reject, approval.RequestChanges} {
		late := page
		late.Verdict, late.Comment = v, "c"
		late.Seen.WarningsTicked = []string{"checks_failed"}
		w.refused(late, orchestrator.CodeSuperseded, "Revision 3 replaced the one you read, revision 1. Since then: there is a check that fails now: go test ./....")
	}
	// The digest alone does not say which one was read.
	alone := reads(ballot(third, "cleo", approval.Approve), 0, "checks_failed")
	w.refused(alone, orchestrator.CodeSuperseded, "Revisions 1 and 3 have the same files and so the digest you sent")
	// A number alone is no better: it goes with the digest that it was shown with.
	other := reads(ballot(third, "cleo", approval.Approve), 2, "checks_failed")
	w.refused(other, orchestrator.CodeSuperseded, "names no revision of this request")
	other.Digest = second.Revision.Digest
	w.refused(other, orchestrator.CodeSuperseded, "Revision 3 replaced the one you read, revision 2.")
	w.decide(reads(alone, 3, "checks_failed"))
	w.expectStates(third.ID, approval.Approved, orchestrator.Landing)
}

// A button of Telegram is bound to a revision beside the digest, and so is its question.
func TestWhatAChannelAsksFirstIsJudgedByItsRevision(t *testing.T) {
	w := newWorld(t, approval.Config{})
	first := w.asked()
	third := w.again(w.again(first, proposal("2")), proposal("1"))
	b := reads(ballot(third, "cleo", approval.Reject), 1)
	b.Channel = "telegram"
	if _, err := w.g.Consider(w.ctx, b); orchestrator.CodeOf(err) != orchestrator.CodeSuperseded || !strings.Contains(err.Error(), "revision 1") {
		t.Errorf("an old button: %v", err)
	}
	b.Revision = 3
	if _, err := w.g.Consider(w.ctx, b); err != nil {
		t.Errorf("the new one: %v", err)
	}
}

// The answer to a late verdict says what is different now.
func TestWhoeverComesLateIsToldWhatChanged(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	next := failing("2")
	next.Base.Commit = id40("d")
	next.Review.Files = []patch.File{{Path: "a.go", Status: patch.Added}, {Path: "b\u202e.go", Status: patch.Added}, {Path: "c.go"}, {Path: "d.go"}, {Path: "e.go"}}
	next.Review.Warnings = []patch.Warning{{Code: "bidi", Path: "b\u202e.go", Text: "It has U+202E."}}
	w.again(r, next)
	late := reads(ballot(r, "cleo", approval.Approve), 1)
	for _, says := range []string{
		`added a.go, "b\u202e.go", c.go and 2 more`, "left out upload/retry.go", "main moved from bbbbbbb to ddddddd",
		"the warning bidi for b", "a check that fails now: go test ./...", "Your approval was not counted. Read revision 2, then decide on it.",
	} {
		w.refused(late, orchestrator.CodeSuperseded, says)
	}
	late.Digest = id64("7")
	w.refused(late, orchestrator.CodeSuperseded, "what you have read is not known here")
}

// careful is a change with two kinds of warnings, a check that fails and a long diff.
func careful() orchestrator.Proposal {
	p := failing("1")
	p.Review.Added = approval.CutLines + 1
	p.Review.Warnings = []patch.Warning{{Code: "ci_file", Path: ".github/ci.yml", Text: "It changes what CI runs."}, {Code: "ci_file", Path: "b.yml"}, {Code: "bidi", Path: "retry.go"}}
	return p
}

var carefulTicks = []string{"ci_file", "bidi", "checks_failed", "diff_cut"}

// Every tick is asked for by the server, on every door; what is kept is what was asked for.
func TestAYesToACarefulChangeNeedsEveryTick(t *testing.T) {
	for _, channel := range []string{"web", "cli", "api"} {
		w := newWorld(t, approval.Config{})
		d := w.checked()
		w.must(w.g.Ask(w.ctx, d, careful()))
		r := w.request(w.delegation(d.ID).ApprovalID)
		b := reads(ballot(r, "bob", approval.Approve), 1)
		b.Channel, b.Seen.Surface = origin.Channel(channel), channel
		w.refused(b, orchestrator.CodeNotTicked, "ci_file (.github/ci.yml: It changes what CI runs), bidi (retry.go), checks_failed (this check fails: go test ./...), diff_cut (it is too long for one page)")
		for i, left := range carefulTicks {
			b.Seen.WarningsTicked = append([]string{"nonsense", "unviewed"}, slices.Delete(slices.Clone(carefulTicks), i, i+1)...)
			w.refused(b, orchestrator.CodeNotTicked, "one thing is not ticked: "+left+" (")
		}
		some := b
		some.Files = []string{"upload/retry.go"}
		w.refused(some, orchestrator.CodeNotTicked, "diff_cut")
		b.Seen.WarningsTicked = append([]string{"nonsense", "unviewed", "bidi"}, carefulTicks...)
		w.decide(b)
		seen := w.request(r.ID).Decisions[0].Seen
		if !slices.Equal(seen.WarningsTicked, carefulTicks) || seen.Surface != channel || seen.Files != 1 || seen.FilesOpened != 0 {
			t.Errorf("%s: kept as seen: %+v", channel, seen)
		}
	}
}

// A no needs no tick.
func TestANoNeedsNoTick(t *testing.T) {
	w := newWorld(t, approval.Config{})
	d := w.checked()
	w.must(w.g.Ask(w.ctx, d, careful()))
	r := w.request(w.delegation(d.ID).ApprovalID)
	w.decide(reads(ballot(r, "bob", approval.Reject), 1))
	w.expectStates(r.ID, approval.Rejected, orchestrator.Rejected)
}

// On the page a yes without any file opened says so; what was opened is kept apart from
// what was marked as viewed, and is of that revision and that person.
func TestAYesOnThePageSaysThatNothingWasOpened(t *testing.T) {
	w := newWorld(t, approval.Config{})
	for _, u := range staff() {
		_, err := w.db.CreateUser(w.ctx, "test", u)
		w.must(err)
	}
	page := func(r approval.Request, name string, ticks ...string) approval.Ballot {
		b := reads(ballot(r, name, approval.Approve), r.Revision.N, ticks...)
		b.Seen.Surface, b.Seen.FilesOpened = approval.SurfacePage, 9 // never taken from the form
		return b
	}
	r := w.asked()
	b := page(r, "bob")
	w.refused(b, orchestrator.CodeNotTicked, "unviewed (you have opened no file of revision 1)")
	w.must(w.g.MarkOpened(w.ctx, ballot(r, "cleo", approval.Approve).Principal, r.ID, 1, []int{1}))
	w.refused(b, orchestrator.CodeNotTicked, "unviewed")
	for _, bad := range [][]int{nil, {0}, {2}, {1, 2}} {
		if err := w.g.MarkOpened(w.ctx, b.Principal, r.ID, 1, bad); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
			t.Errorf("files %v: %v", bad, err)
		}
	}
	w.must(w.g.MarkOpened(w.ctx, b.Principal, r.ID, 1, []int{1}))
	w.must(w.g.MarkOpened(w.ctx, b.Principal, r.ID, 1, []int{1, 1}))
	after := w.decide(b)
	if seen := after.Decisions[0].Seen; seen.FilesOpened != 1 || seen.FilesViewed != 0 || seen.Files != 1 || len(seen.WarningsTicked) != 0 {
		t.Errorf("opened: %+v", seen)
	}

	r = w.asked()
	w.must(w.g.MarkViewed(w.ctx, b.Principal, r.ID, 1, 1, true)) // a mark of one's own is enough
	w.decide(page(r, "bob"))
	r = w.asked()
	w.must(w.g.MarkOpened(w.ctx, b.Principal, r.ID, 1, []int{1}))
	r = w.again(r, proposal("2")) // the next revision was not opened
	w.refused(page(r, "bob"), orchestrator.CodeNotTicked, "no file of revision 2")
	w.decide(page(r, "bob", approval.TickUnviewed))
	e := w.events(r.TaskID, event.Decided)
	if len(e) != 1 || !strings.Contains(string(e[0].Data), `"warnings_ticked":["unviewed"]`) || !strings.Contains(string(e[0].Data), `"surface":"page"`) {
		t.Errorf("in the history: %+v", e)
	}
}

// Invariant 5: whatever the agent proposes again and whatever a ballot names, it counts
// exactly when its digest is the current one and its number is the current one or, without
// a number, no other revision had that digest; and a yes has every tick.
func TestAVerdictCountsOnlyForWhatWasShown(t *testing.T) {
	w := newWorld(t, approval.Config{})
	rapid.Check(t, func(rt *rapid.T) {
		d := w.checked()
		digits := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "3"}), 1, 4).Draw(rt, "trees")
		var r approval.Request
		for i, digit := range digits {
			p := proposal(digit)
			if i == len(digits)-1 && rapid.Bool().Draw(rt, "careful") {
				p = careful()
				p.Tree, p.Digest = id40(digit), id64(digit)
			}
			if i == 0 {
				w.must(w.g.Ask(w.ctx, d, p))
				r = w.request(w.delegation(d.ID).ApprovalID)
				continue
			}
			r = w.again(r, p)
		}
		now, last := len(digits), digits[len(digits)-1]
		b := reads(ballot(r, "cleo", approval.Approve), rapid.IntRange(0, 5).Draw(rt, "revision"))
		digest := rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(rt, "digest")
		b.Digest = id64(digest)
		b.Seen.WarningsTicked = rapid.SliceOfDistinct(rapid.SampledFrom(append([]string{"large"}, carefulTicks...)), rapid.ID).Draw(rt, "ticks")
		once := slices.Index(digits, last) == now-1
		want := ""
		switch {
		case digest != last, b.Revision != now && (b.Revision != 0 || !once):
			want = orchestrator.CodeSuperseded
		case slices.ContainsFunc(approval.Ticks(r), func(code string) bool { return !slices.Contains(b.Seen.WarningsTicked, code) }):
			want = orchestrator.CodeNotTicked
		}
		after, err := w.g.Decide(w.ctx, b)
		if orchestrator.CodeOf(err) != want || (err == nil) != (after.State == approval.Approved) {
			rt.Fatalf("%v, asked %d %s: answer %q (%v), want %q", digits, b.Revision, digest, orchestrator.CodeOf(err), err, want)
		}
		if err != nil && len(fmt.Sprint(err)) > 2000 {
			rt.Fatalf("an answer of %d bytes", len(fmt.Sprint(err)))
		}
	})
}
