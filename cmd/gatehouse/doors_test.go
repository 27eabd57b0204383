package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// doorsTeam repeats what it is told, and puts a token, a look-alike letter and carriage
// returns into a file.
const doorsTeam = `
engine: {workers: 2}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    env: {PLACE: MARK}
    command: [sh, -c, 'read -r t; echo "I was told: $t"; printf "if \320\260dmin {\n\tgood()\r\n}\n%s\n" "glpat-aB3aB3aB3aB3aB3aB3aB" > access.go; case "$t" in *ghp_aB3aB3*) echo told > told.txt ;; esac']
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// A person sends a task with a token in it. The agent is given it; no door shows it: API,
// events, exports, pages, chat, command line, Telegram. The token in the file stays, and
// the odd characters of the file are marked where they stand wherever people look.
func TestNoDoorShowsASecretAndEveryDoorMarksOddCharacters(t *testing.T) {
	t.Parallel()
	g := placetest.NewGate(t, "sqlite:"+t.TempDir()+"/doors.db", doorsTeam)
	auditor := g.Person("carol", people.Auditor)
	n := g.Start(g.Config, "")
	token := "ghp_" + strings.Repeat("aB3", 12)
	var sent wire.Submitted
	status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "coder", Text: "Use " + token + " for it", Repository: "app"}, &sent)
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("%d, %v", status, err)
	}
	r := g.Asked(sent.ID)
	var card bottest.Message
	g.Bot.Until(g, "the card", func() bool { card = g.Card(placetest.Team, r); return card.ID != 0 })

	shown := map[string]string{"the card": card.Text}
	web := n.Browser("bob")
	for _, path := range []string{"/", "/approvals", "/approvals/" + r.ID, "/approvals/" + r.ID + "/evidence", "/delegations", "/delegations/" + r.DelegationID, "/chat"} {
		shown[path] = n.Page(web, path)
	}
	for path, who := range map[string]string{"/api/v1/tasks/" + sent.ID: n.Asker, "/api/v1/tasks/" + sent.ID + "/tree": n.Asker, "/api/v1/delegations": n.Asker, "/api/v1/delegations/" + r.DelegationID: n.Asker,
		"/api/v1/delegations/" + sent.ID + "/events": n.Asker, "/api/v1/approvals/" + r.ID: n.Approver, "/api/v1/audit/export": auditor, "/api/v1/audit/export?format=csv": auditor, "/api/v1/audit": auditor,
		"/api/v1/approvals/" + r.ID + "/evidence?format=bundle": auditor} {
		var b bytes.Buffer
		if status, err := n.Text(path, who, &b); err != nil || status != http.StatusOK {
			t.Errorf("%s: %d, %v", path, status, err)
		}
		shown[path] = b.String()
	}
	review, said, code := asAuditor(n, t.TempDir(), n.Approver, "review", r.ID)
	if code != 0 {
		t.Fatalf("review: %s", said)
	}
	shown["gatehouse review"] = string(review)
	out, _, _ := asAuditor(n, t.TempDir(), n.Asker, "status", sent.ID)
	shown["gatehouse status"] = string(out)
	for door, text := range shown {
		if strings.Contains(text, token[6:]) {
			t.Errorf("%s shows the token: …%s…", door, text[max(0, strings.Index(text, token[6:])-200):][:300])
		}
	}
	for _, door := range []string{"/delegations/" + r.DelegationID, "/api/v1/delegations/" + r.DelegationID, "/api/v1/audit/export", "gatehouse review"} {
		if !strings.Contains(shown[door], "ghp_…[masked]") {
			t.Errorf("%s says nothing of what was there", door)
		}
	}

	var patch bytes.Buffer
	if _, err := n.Text("/api/v1/approvals/"+r.ID+"/patch", n.Approver, &patch); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{"+if \u0430dmin {", "+\tgood()\r\n", "+glpat-aB3aB3aB3aB3aB3aB3aB", "told.txt"} {
		if !strings.Contains(patch.String(), raw) {
			t.Errorf("the patch has no %q:\n%q", raw, patch.String())
		}
	}
	for _, door := range []string{"gatehouse review", "the card", "/approvals/" + r.ID} {
		if !strings.Contains(shown[door], "⟦U+0430⟧") || !strings.Contains(shown[door], "dmin") || !strings.Contains(shown[door], "⟦U+000D⟧") && !strings.Contains(shown[door], "carriage return") {
			t.Errorf("%s does not mark the characters:\n%s", door, shown[door])
		}
	}
	for _, code := range []string{"secret_like", "lookalike", "line_endings"} {
		found := false
		for _, w := range r.Revision.Warnings {
			found = found || w.Code == code && w.Path == "access.go"
		}
		if !found {
			t.Errorf("no %s: %+v", code, r.Revision.Warnings)
		}
	}
	n.Stop()
}
