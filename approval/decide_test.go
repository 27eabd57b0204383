package approval_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

func TestAYesOnWhatWasShownOrdersTheLanding(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true, Expires: 72 * time.Hour})
	r := w.asked()
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
	if r.Title != "Fix the retry loop" || r.Chain.String() != "coder" || r.Requester != "ann" || r.Rule.Name != "default" || r.Revision.N != 1 || r.ExpiresAt == nil {
		t.Fatalf("request: %+v", r)
	}
	if e := w.events(r.TaskID, event.Requested); len(e) != 1 || e[0].Actor != "coder" || e[0].DelegationID != r.DelegationID {
		t.Fatalf("events: %+v", e)
	}

	b := ballot(r, "bob", approval.Approve)
	b.Comment, b.Seen = "Good.", approval.Seen{Surface: "web", Files: 1, FilesViewed: 1, WarningsTicked: []string{}}
	after := w.decide(b)

	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
	if after.State != approval.Approved || after.DecidedAt == nil || len(after.Decisions) != 1 {
		t.Errorf("answer: %+v", after)
	}
	d := w.request(r.ID).Decisions[0]
	if d.User != "bob" || d.UserID != "usr_bob" || d.Verdict != approval.Approve || d.Digest != id64("1") || d.Channel != "web" ||
		d.Comment != "Good." || d.Seen.FilesViewed != 1 || d.Revision != 1 || !strings.HasPrefix(d.ID, orchestrator.DecisionPrefix) {
		t.Errorf("decision: %+v", d)
	}
	p := proposal("1")
	want := &orchestrator.Order{RequestID: r.ID, Revision: 1, Digest: p.Digest, Base: p.Base, Tree: p.Tree, Commit: p.Commit, Bundle: p.Bundle,
		Deliver: "merge", Approvers: []string{"bob"}}
	if got := w.delegation(r.DelegationID).Work.Land; !reflect.DeepEqual(got, want) {
		t.Errorf("order %+v, want %+v", got, want)
	}
	e := w.events(r.TaskID, event.Decided)
	var data struct {
		Verdict, Channel, Digest, State string
		Revision, Have, Need            int
	}
	if len(e) != 1 || e[0].Actor != "bob" || json.Unmarshal(e[0].Data, &data) != nil || data.Verdict != "approve" || data.Channel != "web" ||
		data.Digest != id64("1") || data.Revision != 1 || data.Have != 1 || data.State != "approved" {
		t.Errorf("event: %+v", e)
	}
	w.refused(ballot(r, "cleo", approval.Reject), orchestrator.CodeAlreadyDecided, `bob approved this at 12:00 UTC on the web: "Good.". Your rejection was not counted.`)
}

func TestAWrongDigestStoresNothing(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	for name, c := range map[string]struct{ digest, code string }{
		"another":           {id64("2"), orchestrator.CodeSuperseded},
		"a wrong ending":    {id64("1")[:63] + "0", orchestrator.CodeSuperseded},
		"too long":          {id64("1") + "1", orchestrator.CodeSuperseded},
		"a beginning of it": {r.Revision.Digest[:8], orchestrator.CodeSuperseded},
		"upper case":        {strings.ToUpper(strings.Repeat("a", 64)), orchestrator.CodeSuperseded},
		"none":              {"", orchestrator.CodeBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []approval.Verdict{approval.Approve, approval.Reject, approval.RequestChanges} {
				b := ballot(r, "bob", v)
				b.Digest = c.digest
				w.refused(b, c.code, "digest")
			}
		})
	}
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
}

func TestOfManyWhoDecideAtOnceOneWins(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	names := []string{"ann", "bob", "cleo"}
	verdicts := []approval.Verdict{approval.Approve, approval.Reject, approval.RequestChanges}
	var mu sync.Mutex
	var wg sync.WaitGroup
	won := 0
	var lost []error
	for i := range 100 {
		wg.Go(func() {
			_, err := w.g.Decide(w.ctx, ballot(r, names[i%3], verdicts[(i/3)%3]))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else {
				lost = append(lost, err)
			}
		})
	}
	wg.Wait()
	ds := w.request(r.ID).Decisions
	if won != 1 || len(ds) != 1 || len(lost) != 99 {
		t.Fatalf("%d won, %d decisions, %d lost", won, len(ds), len(lost))
	}
	for _, err := range lost {
		if orchestrator.CodeOf(err) != orchestrator.CodeAlreadyDecided || !strings.HasPrefix(err.Error(), ds[0].User+" ") {
			t.Fatalf("a loser was told %s: %v, and not that %s won", orchestrator.CodeOf(err), err, ds[0].User)
		}
	}
	if e := w.events(r.TaskID, event.Decided, event.ChangesRequested); len(e) != 1 {
		t.Errorf("%d events of one decision", len(e))
	}
}

func TestFourEyes(t *testing.T) {
	w := newWorld(t, approval.Config{FourEyes: true})
	r := w.asked() // for ann
	w.refused(ballot(r, "ann", approval.Approve), orchestrator.CodeFourEyes, "another person must approve it. Ask one of: bob, cleo.")
	w.decide(ballot(r, "ann", approval.Reject))
	w.expectStates(r.ID, approval.Rejected, orchestrator.Rejected)

	off := newWorld(t, approval.Config{FourEyes: false})
	r = off.asked()
	off.decide(ballot(r, "ann", approval.Approve))
	off.expectStates(r.ID, approval.Approved, orchestrator.Landing)

	// A configuration that is loaded while the request waits counts for the next verdict.
	off.g.SetConfig(approval.Config{FourEyes: true, Groups: groups})
	r = off.asked()
	off.refused(ballot(r, "ann", approval.Approve), orchestrator.CodeFourEyes, "another person")
}

func TestTwoOfAGroup(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "core", When: `any(patch.files, .path startsWith "upload/")`, Need: need(2), From: []string{"maintainers"}})})
	r := w.asked()
	if r.Rule.Name != "core" || r.Rule.When == "" || r.Rule.Need != 2 {
		t.Fatalf("rule: %+v", r.Rule)
	}
	w.refused(ballot(r, "cleo", approval.Approve), orchestrator.CodeNotAnApprover, "Deciding needs: maintainers (ann, bob)")
	first := w.decide(ballot(r, "bob", approval.Approve))
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
	n, err := w.g.Needs(w.ctx, first)
	w.must(err)
	if n.Count != 2 || n.Have != 1 || !reflect.DeepEqual(n.Missing, []approval.Voter{{Name: "ann"}}) {
		t.Errorf("needs after one yes: %+v", n)
	}
	again := ballot(r, "bob", approval.Approve)
	again.Channel = "telegram"
	w.refused(again, orchestrator.CodeAlreadyDecided, "You (bob) approved this at 12:00 UTC on the web; a person counts once. It needs 1 more: ann.")
	w.decide(ballot(r, "ann", approval.Approve))
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
	if got := w.delegation(r.DelegationID).Work.Land.Approvers; !reflect.DeepEqual(got, []string{"bob", "ann"}) {
		t.Errorf("approvers %v", got)
	}
}

func TestExpiryIsNeverAYes(t *testing.T) {
	w := newWorld(t, approval.Config{Expires: time.Hour, Policy: compiled(t, policy.RuleConfig{Name: "slow", When: "patch.lines > 100", Expires: 5 * time.Hour})})
	swept, tapped := w.asked(), w.asked()
	d := w.checked()
	large := proposal("3")
	large.Review.Added = 200
	w.must(w.g.Ask(w.ctx, d, large))
	slow := w.request(w.delegation(d.ID).ApprovalID)

	// Deadlines are stored: a configuration that is loaded later moves none.
	w.g.SetConfig(approval.Config{Groups: groups})
	w.clock.step(59 * time.Minute)
	w.must(w.g.Sweep(w.ctx))
	w.expectStates(swept.ID, approval.Pending, orchestrator.AwaitingApproval)

	w.clock.step(2 * time.Minute)
	// A verdict that is late carries out the deadline by itself.
	w.refused(ballot(tapped, "bob", approval.Approve), orchestrator.CodeExpired, "Your approval was not counted.")
	w.expectStates(tapped.ID, approval.Expired, orchestrator.Expired)
	w.refused(ballot(tapped, "bob", approval.Reject), orchestrator.CodeExpired, "13:00 UTC")
	w.expectStates(swept.ID, approval.Pending, orchestrator.AwaitingApproval)
	w.must(w.g.Sweep(w.ctx))
	w.must(w.g.Sweep(w.ctx))
	w.expectStates(swept.ID, approval.Expired, orchestrator.Expired)
	w.expectStates(slow.ID, approval.Pending, orchestrator.AwaitingApproval)
	for _, r := range []approval.Request{swept, tapped} {
		if e := w.events(r.TaskID, event.Expired); len(e) != 1 || len(w.request(r.ID).Decisions) != 0 {
			t.Errorf("%d expiries", len(e))
		}
	}
	w.clock.step(5 * time.Hour)
	w.must(w.g.Sweep(w.ctx))
	w.expectStates(slow.ID, approval.Expired, orchestrator.Expired)
}

func TestWithdraw(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	w.refused(ballot(r, "bob", approval.Withdraw), orchestrator.CodeConflict, "You have not approved this revision")
	w.decide(ballot(r, "bob", approval.Approve))
	w.refused(ballot(r, "cleo", approval.Withdraw), orchestrator.CodeConflict, "You have not approved this revision")
	w.decide(ballot(r, "bob", approval.Withdraw))
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
	if d := w.delegation(r.DelegationID); d.Work.Land != nil {
		t.Error("the order still stands")
	}
	// Everybody may say yes again, bob included.
	w.decide(ballot(r, "bob", approval.Approve))
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(w.ctx, r.DelegationID)
		if err != nil {
			return err
		}
		d.Work.Land.Intent = &patch.Intent{Ref: "refs/heads/main"}
		return tx.Move(w.ctx, d, orchestrator.Landing, d.Attempt)
	}))
	w.refused(ballot(r, "bob", approval.Withdraw), orchestrator.CodeLanding, "Revert it once it has landed")
	w.expectStates(r.ID, approval.Approved, orchestrator.Landing)
}

func TestWithdrawOneOfTwo(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "two", When: "true", Need: need(2)})})
	r := w.asked()
	w.decide(ballot(r, "bob", approval.Approve))
	after := w.decide(ballot(r, "bob", approval.Withdraw))
	n, err := w.g.Needs(w.ctx, after)
	w.must(err)
	if n.Have != 0 || after.State != approval.Pending || len(after.Decisions) != 2 {
		t.Errorf("needs %+v, state %s", n, after.State)
	}
	w.decide(ballot(r, "ann", approval.Approve))
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
}

func TestVerdictsThatMakeNoSense(t *testing.T) {
	w := newWorld(t, approval.Config{})
	r := w.asked()
	for name, change := range map[string]func(*approval.Ballot){
		"There is no verdict":      func(b *approval.Ballot) { b.Verdict = "maybe" },
		"The edit changes nothing": func(b *approval.Ballot) { b.Verdict = approval.Edit },
		"Edits go with":            func(b *approval.Ballot) { b.Patch = "--- a" },
		"No file is chosen":        func(b *approval.Ballot) { b.Files = []string{} },
		"A choice of files goes":   func(b *approval.Ballot) { b.Verdict, b.Files = approval.Reject, []string{"a"} },
		"The side of a line": func(b *approval.Ballot) {
			b.Verdict, b.Comments = approval.RequestChanges, []agent.LineComment{{Path: "a", Line: 1, Side: "left", Text: "x"}}
		},
		"Nothing says what should": func(b *approval.Ballot) { b.Verdict, b.Comment = approval.RequestChanges, " \n" },
		"Line comments do not go with": func(b *approval.Ballot) {
			b.Verdict, b.Comments = approval.Withdraw, []agent.LineComment{{Path: "a", Line: 1, Text: "x"}}
		},
		"A line comment needs": func(b *approval.Ballot) {
			b.Verdict, b.Comments = approval.RequestChanges, []agent.LineComment{{Line: 1, Text: "x"}}
		},
		"The comment has 32769 bytes": func(b *approval.Ballot) { b.Comment = strings.Repeat("x", approval.MaxComment+1) },
		"There are 501 line comments;": func(b *approval.Ballot) {
			b.Verdict, b.Comments = approval.RequestChanges, make([]agent.LineComment, approval.MaxComments+1)
		},
	} {
		b := ballot(r, "bob", approval.Approve)
		change(&b)
		w.refused(b, orchestrator.CodeBadRequest, name)
	}
	b := ballot(r, "bob", approval.Approve)
	b.RequestID = "apr_none"
	if _, err := w.g.Decide(w.ctx, b); orchestrator.CodeOf(err) != orchestrator.CodeNotFound {
		t.Errorf("unknown request: %v", err)
	}
	r = w.decide(ballot(r, "bob", approval.Reject)) // without a reason
	if r.State != approval.Rejected {
		t.Errorf("state %s", r.State)
	}
}

// An old button, or a forged one, cannot approve what its card could not show.
func TestACarefulRequestIsNotApprovedFromAMessage(t *testing.T) {
	w := newWorld(t, approval.Config{})
	d := w.checked()
	p := proposal("1")
	p.Review.Warnings = []patch.Warning{{Code: "ci_file", Path: ".github/workflows/ci.yml"}}
	w.must(w.g.Ask(w.ctx, d, p))
	r := w.request(w.delegation(d.ID).ApprovalID)
	for _, channel := range []origin.Channel{origin.Telegram, origin.Chat} {
		b := ballot(r, "bob", approval.Approve)
		b.Channel = channel
		w.refused(b, orchestrator.CodeForbidden, "To approve this, open the diff: ci_file.")
		b.Files = []string{"upload/retry.go"} // nor a part of it
		w.refused(b, orchestrator.CodeForbidden, "To approve this, open the diff: ci_file.")
	}
	b := ballot(r, "bob", approval.Reject)
	b.Channel = "telegram"
	w.decide(b)
	w.expectStates(r.ID, approval.Rejected, orchestrator.Rejected)
}

// A card of the chat that cannot show all of a change does not approve it, whoever posts
// its form: too many files or lines, lines too long, no text, content from another place,
// or a revision from before its lines were measured.
func TestWhatDoesNotFitACardIsNotApprovedInTheChat(t *testing.T) {
	file := patch.File{Path: "a.go", Status: patch.Modified, Added: 2, Removed: 1, Bytes: 60, NewMode: "100644"}
	with := func(change func(*patch.File)) []patch.File {
		f := file
		change(&f)
		return []patch.File{f}
	}
	for name, c := range map[string]struct {
		files []patch.File
		fits  bool
	}{
		"a small change":     {[]patch.File{file}, true},
		"a mode and no line": {with(func(f *patch.File) { f.Status, f.Added, f.Removed, f.Bytes = patch.ModeChanged, 0, 0, 0 }), true},
		"as many as fit":     {slices.Repeat([]patch.File{file}, patch.CardFiles), true},
		"a file too many":    {slices.Repeat([]patch.File{file}, patch.CardFiles+1), false},
		"a line too many":    {with(func(f *patch.File) { f.Added = patch.CardLines }), false},
		"a byte too many":    {with(func(f *patch.File) { f.Bytes = patch.CardBytes + 1 }), false},
		"never measured":     {with(func(f *patch.File) { f.Bytes = 0 }), false},
		"no text":            {with(func(f *patch.File) { f.Binary, f.Added, f.Removed = true, 0, 0 }), false},
		"renamed as it is":   {with(func(f *patch.File) { f.Status, f.OldPath, f.Added, f.Removed, f.Bytes = patch.Renamed, "b.md", 0, 0, 0 }), false},
		"copied":             {with(func(f *patch.File) { f.Status, f.OldPath = patch.Copied, "b.md" }), false},
		"nothing":            {[]patch.File{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approval.Config{})
			d := w.checked()
			p := proposal("1")
			p.Review.Files, p.Review.Added, p.Review.Removed = c.files, 2, 1
			w.must(w.g.Ask(w.ctx, d, p))
			r := w.request(w.delegation(d.ID).ApprovalID)
			b := ballot(r, "bob", approval.Approve)
			b.Channel = "chat"
			if r.FitsCard() != c.fits {
				t.Errorf("fits: %v", r.FitsCard())
			}
			if c.fits {
				w.decide(b)
				return
			}
			w.refused(b, orchestrator.CodeForbidden, "To approve this, open the diff: a card in the chat cannot show all of it. It can be rejected here.")
			b.Files = []string{"a.go"} // nor a part of it
			w.refused(b, orchestrator.CodeForbidden, "To approve this, open the diff: a card in the chat cannot show all of it. It can be rejected here.")
			b.Files, b.Channel = nil, "web"
			w.decide(b)
		})
	}
}

// A node that has read a question a moment ago acts on what it has become since.
func TestADecisionElsewhereIsSeenUnderTheLock(t *testing.T) {
	w := newWorld(t, approval.Config{Expires: time.Hour})
	r := w.asked()
	elsewhere := w.other(r)
	w.decide(ballot(r, "bob", approval.Reject))
	_, err := elsewhere.Decide(w.ctx, ballot(r, "cleo", approval.Approve))
	if orchestrator.CodeOf(err) != orchestrator.CodeAlreadyDecided || !strings.HasPrefix(err.Error(), "bob rejected this") {
		t.Errorf("cleo was told: %v", err)
	}
	w.clock.step(2 * time.Hour)
	w.must(elsewhere.Sweep(w.ctx))
	w.expectStates(r.ID, approval.Rejected, orchestrator.Rejected)

	r = w.asked()
	elsewhere = w.other(r)
	w.decide(ballot(r, "bob", approval.RequestChanges))
	p := proposal("2")
	p.Digest = r.Revision.Digest[:60] + "2222"
	w.must(w.g.Ask(w.ctx, w.rework(r.DelegationID), p))
	if _, err := elsewhere.Decide(w.ctx, ballot(r, "cleo", approval.Approve)); orchestrator.CodeOf(err) != orchestrator.CodeSuperseded {
		t.Errorf("cleo was told: %v", err)
	}
	w.expectStates(r.ID, approval.Pending, orchestrator.AwaitingApproval)
}
