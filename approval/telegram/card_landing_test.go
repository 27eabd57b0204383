package telegram

import (
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
)

func TestACardSaysWhatLandedAndWhatDidNot(t *testing.T) {
	leftOut := func(view *approval.CardView, paths ...string) { view.LeftOut = paths }
	for name, c := range map[string]struct {
		state approval.State
		r     func(*approval.Request)
		view  func(*approval.CardView)
		want  string
	}{
		"some files": {approval.Landed, nil, func(v *approval.CardView) { leftOut(v, "three.txt", "two.txt") },
			"✓ Approved · landed on main\nFix retry loop in the uploader\nbob on the web, 12:06 UTC · 1 of 1\n3 of 5 files; left out: three.txt, two.txt\ncommit 4444444 · took 6 min\n[ Open ]"},
		"some files, on their way": {approval.Approved, func(r *approval.Request) { r.Revision.Declined = []string{"a\u202e"} }, nil,
			"⇥ Approved · landing\nFix retry loop in the uploader\nbob on the web, 12:06 UTC · 1 of 1\n3 of 4 files; left out: a⟦U+202E⟧\n[ Open ]"},
		"many files": {approval.Approved, nil, func(v *approval.CardView) { leftOut(v, "1", "2", "3", "4", "5", "6") },
			"⇥ Approved · landing\nFix retry loop in the uploader\nbob on the web, 12:06 UTC · 1 of 1\n3 of 9 files; left out: 1, 2, 3, 4 and 2 more\n[ Open ]"},
		"edited": {approval.Landed, func(r *approval.Request) {
			r.Revision.Made, r.Revision.Editor = approval.MadeByEdit, &approval.Party{User: "bob"}
		}, nil,
			"✓ Approved · landed on main\nFix retry loop in the uploader\nbob on the web, 12:06 UTC · 1 of 1\nedited by bob\ncommit 4444444 · took 6 min\n[ Open ]"},
		"held up": {approval.Approved, nil, func(v *approval.CardView) {
			v.Held = "The folder of app has changes that are not committed,\nso main was not moved."
		},
			"⇥ Approved · landing waits\nFix retry loop in the uploader\nbob on the web, 12:06 UTC · 1 of 1\nThe folder of app has changes that are not committed, so main was not moved.\n[ Open ]"},
		"after more than one revision it took since it was asked": {approval.Landed, func(r *approval.Request) { r.Revision.At = r.DecidedAt.Add(-4 * time.Second) }, nil,
			"✓ Approved · landed on main\nFix retry loop in the uploader\nbob on the web, 12:06 UTC · 1 of 1\ncommit 4444444 · took 6 min\n[ Open ]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := with(c.state, c.r)
			view := approvaltest.View(r)
			if c.view != nil {
				c.view(&view)
			}
			if got, _ := silent(smallDiff, public).look(t, group, r, view); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Who said yes to what was replaced is told that it does not count any more.
func TestAYesThatDidNotHoldIsSaid(t *testing.T) {
	yes := func(n int, name string, files ...string) approval.Decision {
		return approval.Decision{User: name, UserID: "usr_" + name, Revision: n, Verdict: approval.Approve, Files: files}
	}
	for name, c := range map[string]struct {
		change func(*approval.Request)
		want   string // "" for no word of it
	}{
		"main moved":       {func(r *approval.Request) { r.Decisions = []approval.Decision{yes(1, "bob")} }, "\nbob's yes was to rev 1 and did not land: main moved, so it is asked again.\n"},
		"of two":           {func(r *approval.Request) { r.Decisions = []approval.Decision{yes(1, "bob"), yes(1, "cleo")} }, "\nbob's and cleo's yes was to rev 1 and did not land: main"},
		"somebody edited":  {func(r *approval.Request) { edited(r, yes(1, "bob")) }, "\nbob's yes was to rev 1 and does not count on rev 2.\n"},
		"of long ago":      {func(r *approval.Request) { r.Revision.N = 3; r.Decisions = []approval.Decision{yes(1, "bob")} }, ""},
		"that was partial": {func(r *approval.Request) { r.Decisions = []approval.Decision{yes(1, "bob", "a.txt")} }, ""},
		"taken back": {func(r *approval.Request) {
			r.Decisions = []approval.Decision{yes(1, "bob"), {User: "bob", UserID: "usr_bob", Revision: 1, Verdict: approval.Withdraw}}
		}, ""},
		"nobody said any": {func(*approval.Request) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := with(approval.Pending, c.change)
			got, _ := silent(smallDiff, public).look(t, group, r, approvaltest.View(r))
			if c.want == "" && strings.Contains(got, "yes was to rev") || !strings.Contains(got, c.want) {
				t.Errorf("no %q in\n%s", c.want, got)
			}
		})
	}
}

func edited(r *approval.Request, d approval.Decision) {
	r.Decisions = []approval.Decision{d}
	r.Revision.Made, r.Revision.MadeFrom, r.Revision.Editor = approval.MadeByEdit, 1, &approval.Party{User: "cleo"}
}

func TestIdsInDiffsAreShort(t *testing.T) {
	was, is := strings.Repeat("a", 40), strings.Repeat("b", 40)
	got := inline("diff --git a/x b/x\nindex " + was + ".." + is + " 120000\n-index " + was + ".." + is + "\n index " + was + "\n+y\n")
	want := "diff --git a/x b/x\nindex aaaaaaa..bbbbbbb 120000\n-index " + was + ".." + is + "\n index " + was + "\n+y"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := inline("index a\n+y\n"); got != "index a..\n+y" {
		t.Errorf("got %q", got)
	}
}
