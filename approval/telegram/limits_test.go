package telegram

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/patch"
)

// Whatever an agent writes: no card is longer than its limit, no entity reaches out of
// the text or splits a character, nothing invisible is left.
func TestEveryCardKeepsItsLimits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	scraps := []string{"😀", "👩‍👩‍👧", "a", "Ünï", "\u202e", "\u200b", "\x00", "\x1b[31m", "\xff\xfe", "*_`[]()~>#+-=|{}.!", "<b>&amp;", " ", "\n", "\t", "@everyone", "https://x.example/", "/cancel", "𐍈"}
	word := func(most int) string {
		var b strings.Builder
		for range random.IntN(most + 1) {
			b.WriteString(scraps[random.IntN(len(scraps))])
		}
		return b.String()
	}
	states := []approval.State{approval.Pending, approval.Pending, approval.Pending, approval.Approved, approval.Rejected, approval.ChangesRequested, approval.Expired, approval.Stale,
		approval.Landed, approval.Reverted, approval.Failed, approval.Cancelled, approval.Superseded}
	for i := range 600 {
		r := request(states[i%len(states)])
		r.Title, r.Chain, r.Requester, r.Agent, r.Repository = word(200), chain.Names{word(60)}, word(40), word(30), word(30)
		r.Rule.Name, r.Revision.Base.Branch, r.Revision.Branch, r.Revision.Text = word(40), word(80), word(80), word(900)
		r.Revision.N, r.Landed = 1+random.IntN(3), strings.Repeat("4", 40)
		for range random.IntN(30) {
			r.Revision.Files = append(r.Revision.Files, patch.File{Path: word(90), Added: random.IntN(100000), Status: patch.Deleted})
			r.Revision.Warnings = append(r.Revision.Warnings, patch.Warning{Code: []string{"bidi", "mass_deletion", word(20)}[random.IntN(3)], Path: word(90)})
			r.Revision.Notes = append(r.Revision.Notes, patch.Note{Text: word(100)})
			r.Revision.Checks = append(r.Revision.Checks, orchestrator.Check{Command: word(40), OK: random.IntN(2) == 0})
			r.Decisions = append(r.Decisions, approval.Decision{User: fmt.Sprint("person", i), UserID: fmt.Sprint(random.IntN(9)), Revision: r.Revision.N, Comment: word(200),
				Verdict: []approval.Verdict{approval.Approve, approval.Reject, approval.RequestChanges}[random.IntN(3)], Channel: "web", At: noon})
		}
		view := approvaltest.View(r)
		if random.IntN(2) == 0 {
			view.TooFew = word(200)
		}
		view.Turn = word(100)
		c := silent(word(300), public)
		_, m := c.look(t, []int64{anns, group}[i%2], r, view)
		lawful(t, m, cardLimit)
		f := c.face(t.Context(), Place{Chat: group}, r, view)
		lawful(t, f.retired(1).message(), cardLimit)
		lawful(t, f.notice(approval.Notice{Kind: []approval.NoticeKind{approval.Reminder, approval.Escalation}[i%2], To: []string{word(100)}}).message(), cardLimit)
		if n := units(caption(r)); n > captionLimit {
			t.Errorf("a caption has %d units", n)
		}
		items := make([]approval.DigestItem, 1+random.IntN(200)/(1+i%20))
		for j := range items {
			items[j] = approval.DigestItem{Request: r, View: view}
		}
		lawful(t, list(items, i%2 == 0).message(), messageLimit)
		if t.Failed() {
			t.FailNow()
		}
	}
}

// lawful checks a message as Telegram does, and that it hides nothing.
func lawful(t *testing.T, m Message, limit int) {
	t.Helper()
	wide := utf16.Encode([]rune(m.Text))
	if len(wide) > limit || !utf8.ValidString(m.Text) || strings.TrimSpace(m.Text) != m.Text {
		t.Errorf("%d units of at most %d, or broken, or with blanks around: %q", len(wide), limit, m.Text)
	}
	if len(m.Entities) > entityLimit {
		t.Errorf("%d entities", len(m.Entities))
	}
	low := func(i int) bool { return i < len(wide) && wide[i] >= 0xdc00 && wide[i] < 0xe000 }
	for _, e := range m.Entities {
		if e.Length < 1 || e.Offset < 0 || e.Offset+e.Length > len(wide) || low(e.Offset) || low(e.Offset+e.Length) {
			t.Errorf("entity %+v of %d units", e, len(wide))
		}
	}
	for _, line := range strings.Split(m.Text, "\n") {
		for _, p := range patch.Visible(line) {
			if p.Risk == patch.RiskBidi || p.Risk == patch.RiskControl || p.Risk == patch.RiskInvisible {
				t.Errorf("%s in %q", p.Risk, line)
			}
		}
	}
	for _, row := range m.Rows {
		for _, b := range row {
			if units(b.Text) > 16 || len(b.Data) > 64 {
				t.Errorf("button %+v", b)
			}
		}
	}
}

func TestCuttingCountsInUTF16(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{cut("abcdef", 6), "abcdef"}, {cut("abcdefg", 6), "abcde…"}, {cut("😀😀😀", 5), "😀😀…"}, {cut("😀😀😀", 4), "😀…"}, {cut("ab👩\u200d👧", 6), "ab👩…"},
		{cutMiddle("upload/very/long/path/retry.go", 15), "upload/…etry.go"}, {cutMiddle("😀😀😀😀", 6), "😀…😀"}, {cutMiddle("short", 15), "short"},
		{oneLine(" a\r\n\tb \u202e"), "a b ⟦U+202E⟧"}, {pathLine("a\tb\nc"), "a⟦U+0009⟧b⟦U+000A⟧c"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestWhatACardHasInItsChat(t *testing.T) {
	for text, want := range map[string]sent{"123@2": {123, 2, 0}, "123@2/124": {123, 2, 124}, "123@2/-1": {123, 2, refusedDocument}, "123@2/-2": {123, 2, inCard}} {
		if got := parseSent(text); got != want || got.String() != text {
			t.Errorf("%s is %+v, and that is %s", text, got, got)
		}
	}
	for _, text := range []string{"", "x", "-5@2", "/7"} {
		if got := parseSent(text); got != (sent{}) || got.String() != "" {
			t.Errorf("%s is %+v", text, got)
		}
	}
	if got := parseSent("123"); got != (sent{message: 123}) {
		t.Errorf("a message without a revision is %+v", got)
	}
}
