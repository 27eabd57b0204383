package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
)

// read decodes a Standard Webhook and refuses fields that are not documented.
func read(t *testing.T, m got) envelope {
	t.Helper()
	var e envelope
	d := json.NewDecoder(strings.NewReader(m.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		t.Fatalf("%v in %s", err, m.body)
	}
	return e
}

// blocks decodes a message to Slack into its text and that of its blocks.
func blocks(t *testing.T, body string) (string, []string) {
	t.Helper()
	var m slackMessage
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, b := range m.Blocks {
		if b.Type != "section" || b.Text == nil || b.Text.Type != "mrkdwn" || !b.Text.Verbatim {
			t.Errorf("a block that is no plain section: %+v", b)
			continue
		}
		if n := utf8.RuneCountInString(b.Text.Text); n == 0 || n > 3000 {
			t.Errorf("a section of %d characters, and Slack takes 1 to 3,000", n)
		}
		texts = append(texts, b.Text.Text)
	}
	return m.Text, texts
}

// sent is what a target in that format gets for r.
func sent(t *testing.T, format string, r approval.Request) got {
	t.Helper()
	in := receive(t, httptest.NewServer, nil)
	target := toHome(in.URL)
	if target.Format = format; format == Slack {
		target.Secret = ""
	}
	if _, err := tell(t, channel(t, home(), target), r); err != nil {
		t.Fatal(err)
	}
	return in.messages()[0]
}

// The figures are the example that the libraries of Standard Webhooks publish.
func TestTheSignatureIsTheOneThatOthersMake(t *testing.T) {
	key, err := Target{Secret: testSecret}.key()
	if err != nil {
		t.Fatal(err)
	}
	got := sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAReceiverCanVerifyAMessage(t *testing.T) {
	m := sent(t, Standard, approvaltest.Request(approval.Pending))
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	id, stamp := m.header.Get("webhook-id"), m.header.Get("webhook-timestamp")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "." + m.body))
	version, signature, _ := strings.Cut(m.header.Get("webhook-signature"), ",")
	given, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || version != "v1" || !hmac.Equal(mac.Sum(nil), given) {
		t.Errorf("signature %s of %s at %s does not verify", m.header.Get("webhook-signature"), id, stamp)
	}
	if stamp != strconv.FormatInt(noon.Unix(), 10) || !regexp.MustCompile(`^msg_[0-9a-f]{32}$`).MatchString(id) || m.method != "POST" ||
		m.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s with id %q at %s as %s", m.method, id, stamp, m.header.Get("Content-Type"))
	}
}

func TestAStandardMessageSaysWhatPeopleAskFor(t *testing.T) {
	r := approvaltest.Request(approval.Landed)
	r.Decisions[0].Comment, r.Decisions[0].At = "fine", noon.Add(-time.Hour)
	r.Revision.Warnings = []patch.Warning{{Code: "ci_file", Path: ".github/workflows/ci.yml", Text: "A CI file changed."}}
	e := read(t, sent(t, Standard, r))
	q := e.Data.Request
	if e.Type != "approval.landed" || q.URL != "https://gatehouse.example.com/approvals/"+r.ID || q.Chain != "kik → coder" || q.Repository != "app" ||
		q.Target != "main" || q.Size != (sizeShape{1, 31, 9}) || q.Landed != r.Landed || q.Version != 2 || q.State != approval.Landed {
		t.Errorf("%s: %+v", e.Type, q)
	}
	if len(q.Warnings) != 1 || q.Warnings[0].Code != "ci_file" || q.Risk.Level != approval.Careful {
		t.Errorf("warnings %+v, risk %+v", q.Warnings, q.Risk)
	}
	if len(q.Decisions) != 1 || q.Decisions[0].User != "bob" || q.Decisions[0].Channel != "web" || q.Decisions[0].Comment != "fine" ||
		q.DecisionCount != 1 || q.CheckCount != 1 || q.WarningCount != 1 {
		t.Errorf("decisions %+v", q.Decisions)
	}
}

func TestNothingOfTheCodeLeaves(t *testing.T) {
	r := approvaltest.Request(approval.Pending)
	r.Revision.Text = "As the diff says: CANARY"
	r.Revision.Checks = []orchestrator.Check{{Command: "go test ./...", Output: "CANARY"}}
	r.Decisions = []approval.Decision{{Revision: 1, User: "ann", UserID: "CANARY", Verdict: approval.Approve, At: noon}}
	for _, format := range []string{Slack, Standard} {
		if m := sent(t, format, r); strings.Contains(m.body, "CANARY") {
			t.Errorf("%s: %s", format, m.body)
		}
	}
}

func TestASlackMessageReadsAsOnACard(t *testing.T) {
	r := approvaltest.Request(approval.Pending)
	text, said := blocks(t, sent(t, Slack, r).body)
	want := []string{
		"*◆ Approval needed*\n> Fix the retry loop",
		"dora → kik → coder · app/main\n1 file +31 −9 · 9f2c1a7e\nWaits for ann or bob · until Tue 24 Nov 12:00 UTC",
		"<https://gatehouse.example.com/approvals/" + r.ID + "|Open the request>",
	}
	if strings.Join(said, "\n--\n") != strings.Join(want, "\n--\n") {
		t.Errorf("blocks:\n%s", strings.Join(said, "\n--\n"))
	}
	if !strings.HasPrefix(text, want[0]) || !strings.HasSuffix(text, want[2]) {
		t.Errorf("text %q", text)
	}
	for _, r := range story() {
		r.Revision.Checks = append(r.Revision.Checks, orchestrator.Check{Command: "go test ./..."})
		text, said := blocks(t, sent(t, Slack, r).body)
		all := strings.Join(said, "\n")
		head, _, _ := strings.Cut(text, "\n")
		if want := map[approval.State]string{approval.ChangesRequested: "Changes requested", approval.Approved: "Approved · landing",
			approval.Landed: "landed on main", approval.Reverted: "Reverted on main", approval.Stale: "no longer applies", approval.Pending: "Approval needed"}[r.State]; !strings.Contains(head, want) {
			t.Errorf("%s: headline %q", r.State, head)
		}
		if d := current(r); len(d) > 0 && !strings.Contains(all, d[len(d)-1].User+" "+did(d[0])+" on Telegram") && r.Revision.N != 2 {
			t.Errorf("%s: who decided is not said:\n%s", r.State, all)
		}
		if !strings.Contains(all, "✕ go test ./...") {
			t.Errorf("%s: the failed check is not said", r.State)
		}
	}
}

func TestTooFewPeopleAreTheFirstLine(t *testing.T) {
	r := approvaltest.Request(approval.Pending)
	view := approvaltest.View(r)
	view.TooFew = "This needs 2 approvers, but only ann can."
	body, err := slack(newsOf(r, noon), r, view, "https://x.example/approvals/1")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := blocks(t, string(body)); !strings.HasPrefix(text, "*◆ Approval needed · This needs 2 approvers, but only ann can.*\n") {
		t.Errorf("text %q", text)
	}
}

// markers find everything that would call people, link, or look like something else.
var markers = []*regexp.Regexp{
	regexp.MustCompile(`<[!@#]`),                // Slack's mentions
	regexp.MustCompile(`@`),                     // and those of its imitators
	regexp.MustCompile(`\]\(`),                  // Markdown's links
	regexp.MustCompile(`<(?:[^h]|h[^t])`),       // any markup but our own link
	regexp.MustCompile(`&(?:[^alg]|$)`),         // an entity that is not ours
	regexp.MustCompile(`[\x00-\x09\x0b-\x1f]`),  // control characters
	regexp.MustCompile("[\u202a-\u202e\u200b]"), // reversed and invisible text
}

func TestHostileTextStaysText(t *testing.T) {
	hostile := "<!channel> <!here|x> <@U012AB> <#C01> @everyone &lt;!channel&gt; <https://evil.example|Approve> [y](https://evil.example) a\n> b\r\n*\u202egpj.exe\u200b \x00\x1b[31m"
	for _, most := range []string{hostile, strings.Repeat("&", 9000), strings.Repeat("\u202e", 9000), strings.Repeat(hostile, 500), strings.Repeat("😀", 9000)} {
		r := approvaltest.Request(approval.Pending)
		r.Title, r.Agent, r.Chain, r.Requester, r.Repository, r.Revision.Base.Branch, r.Rule.Name = most, most, chain.Names{most}, most, most, most, most
		r.Revision.Digest, r.Landed = "<!here>x", "<!here>"
		for range 300 {
			r.Revision.Warnings = append(r.Revision.Warnings, patch.Warning{Code: most, Path: most, Text: most})
			r.Revision.Checks = append(r.Revision.Checks, orchestrator.Check{Command: most})
			r.Decisions = append(r.Decisions, approval.Decision{Revision: 1, User: most, For: most, Channel: origin.Channel(most), Comment: most, Verdict: approval.Reject, At: noon})
		}
		for _, state := range []approval.State{approval.Pending, approval.Landed, approval.Rejected} {
			r.State = state
			body := sent(t, Slack, r).body
			text, said := blocks(t, body)
			for _, s := range append(said, text) {
				for _, m := range markers {
					if at := m.FindStringIndex(s); at != nil {
						t.Fatalf("%s found in %q", m, s[max(0, at[0]-20):min(len(s), at[1]+20)])
					}
				}
			}
			if strings.Count(text, "<http") != 1 || len(said) > 50 || strings.Contains(text, "\n*") {
				t.Errorf("%d blocks and a text of %d bytes: %.300q", len(said), len(text), text)
			}
			if standard := sent(t, Standard, r).body; len(standard) > 1<<20 || !bytes.HasPrefix([]byte(standard), []byte(`{"type":`)) {
				t.Errorf("a standard message of %d bytes", len(standard))
			}
		}
	}
}

func TestClipCutsBetweenCharacters(t *testing.T) {
	for s, want := range map[string]string{"": "", "abc": "abc", "abcd": "ab…", "äöüß": "äö…", "日本": "日本", "a\xffbc": "a\xff…"} {
		if got := clip(s, 3); got != want {
			t.Errorf("clip(%q) = %q, want %q", s, got, want)
		}
	}
}

// K44, H18: a hand-over that waits for a person is told of like a patch, by its kind.
func TestAMessageAboutAHandover(t *testing.T) {
	r := approvaltest.Handover(approval.Pending)
	if e := read(t, sent(t, Standard, r)); e.Data.Request.Kind != approval.Handover || e.Type != Requested || e.Data.Request.Title != "Approve handoff to coder? Context: Deploy to production" {
		t.Errorf("told of %+v", e)
	}
	for state, head := range map[approval.State]string{approval.Pending: "◆ Approval needed · hand-over to coder", approval.Approved: "✓ Approved · handed to coder",
		approval.Rejected: "⊖ Rejected · not handed to coder", approval.Expired: "⌛ Expired, not approved · not handed to coder",
		approval.Cancelled: "■ Cancelled · not handed to coder", approval.Failed: "✕ Failed · not handed to coder"} {
		_, all := blocks(t, sent(t, Slack, approvaltest.Handover(state)).body)
		text := strings.Join(all, "\n")
		if !strings.Contains(text, head) || !strings.Contains(text, "hand-over to coder") || strings.Contains(text, "landed") || strings.Contains(text, "file") {
			t.Errorf("%s:\n%s", state, text)
		}
	}
}

// The signs of a headline are those of every other face.
func TestSlackHasTheSignsOfTheStates(t *testing.T) {
	r := approval.Request{Kind: approval.Patch}
	for kind, sign := range map[string]string{Requested: "◆ ", ChangesRequested: "↩ ", Expired: "⌛ ", Stale: "⧉ ", Landed: "✓ ", Reverted: "⧉ ", Failed: "✕ ", Cancelled: "■ ", "superseded": "⧉ "} {
		if got := headline(news{kind: kind}, r, approval.CardView{}); !strings.HasPrefix(got, sign) {
			t.Errorf("%s is headed %q, want %q before it", kind, got, sign)
		}
	}
}
