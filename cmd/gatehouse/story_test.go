package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/trigger"
)

// storyTeam mends what a webhook says is broken: kik plans, coder changes a file and asks
// reviewer before it is done. Cards go to a group.
const storyTeam = `
engine: {workers: 3}
repositories:
  app: {path: "REPO", branch: main, checks: ["test -f FIXES.md"]}
agents:
  kik:
    kind: workflow
    steps: [{id: change, agent: coder, task: "{{.Task}}"}]
  coder:
    kind: command
    repository: app
    delegates_to: [reviewer]
    env: {PLACE: MARK}
    command: [sh, -c, 'head -n 1 >> FIXES.md; gatehouse delegate reviewer "Look at FIXES.md"']
  reviewer: {kind: command, repository: app, analysis_only: true, env: {PLACE: MARK}, command: [sh, -c, 'echo "Seen: $(cat FIXES.md)"']}
  clerk: {kind: command, analysis_only: true, approval: auto, command: [cat]}
  patient: {kind: command, analysis_only: true, approval: auto, env: {PLACE: MARK}, command: [sh, -c, "until [ -e DIR/signs/enough ]; do sleep 0.1; done"]}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
triggers:
  - {name: ci-failed, kind: webhook, source: github, secret: "It's a Secret to Everybody", agent: kik, task: "Fix {{.workflow_run.name}} on {{.workflow_run.head_branch}}", when: "event.action == 'completed'", owner: ann}
  - {name: pipelines, kind: webhook, source: gitlab, secret: "a token for GitLab alone", agent: clerk, task: "Pipeline {{.object_attributes.status}}", owner: ann}
  - {name: billing, kind: webhook, source: standard, secret: "whsec_YSBzZWNyZXQgZm9yIHRoZSB0ZXN0IG9mIGhvb2tz", agent: clerk, task: "Look at {{.type}}", owner: ann}
  - {name: rounds, kind: schedule, cron: "* * * * *", missed: run, agent: patient, task: "Make the rounds", owner: ann}
`

// TestFromAFailedBuildToAnAuditorsProof is the whole way: GitHub tells of a failed run, a
// team mends it, a tap on a phone lets it land, and an auditor who was never asked finds
// it, takes it away and proves it on a machine that knows nothing of the server. Then one
// byte of what was taken changes.
func TestFromAFailedBuildToAnAuditorsProof(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, storyTeam)
		carol := g.Person("carol", people.Auditor)
		expiring(g.Place, "gone soon")
		g.Must(os.Mkdir(filepath.Join(g.Dir, "signs"), 0o700))
		_, err := g.Store.ScheduledUntil(t.Context(), "rounds", time.Now().Add(-10*time.Minute)) // as if it had been off for that long
		g.Must(err)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)

		task := failedBuild(n, t)
		r := g.Asked(task)
		if said := g.Press(g.Shown(r), "Approve", "bob"); !strings.Contains(said, "Approved") {
			t.Fatalf("the press is answered %q", said)
		}
		g.Until("the landing", func() bool { return g.Root(task).State == orchestrator.Completed })
		g.LandedOnce(task)
		if got := placetest.Git(t, g.Repo, "show", "main:FIXES.md"); got != "Fix Build on master" {
			t.Errorf("on main stands %q", got)
		}
		chainOf(g.Place, task, "kik", "coder", "reviewer")
		otherSenders(n)

		row := foundByAuditor(n, carol, task)
		provenElsewhere(n, carol, row)
		rounds(n)
		g.Until("what has expired to be swept away (K34)", func() bool { return kept(g.Place, "gone soon") == 0 })
		n.Stop()
	})
}

// failedBuild delivers what GitHub documents for a failed run, twice, and returns the task.
func failedBuild(n *placetest.Node, t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile("../../orchestrator/trigger/testdata/github_workflow_run.json")
	n.Must(err)
	status, first, err := deliver(n, "72d3162e-cc78-11e3-81ab-4c9367dc0958", body)
	if err != nil || status != http.StatusAccepted || first["id"] == "" {
		n.Fatalf("the delivery is answered %d %v %v", status, first, err)
	}
	status, again, err := deliver(n, "72d3162e-cc78-11e3-81ab-4c9367dc0958", body)
	if err != nil || status != http.StatusOK || again["id"] != first["id"] {
		n.Errorf("its repeat is answered %d %v %v, after %v", status, again, err, first)
	}
	body[bytes.Index(body, []byte("Build"))] = 'X'
	if res := knock(n, "ci-failed", body, map[string]string{"X-Hub-Signature-256": "sha256=" + strings.Repeat("0", 64), "X-GitHub-Event": "workflow_run"}); res.status != http.StatusUnauthorized {
		n.Errorf("a forged delivery is answered %d %v", res.status, res.answer)
	}
	return first["id"]
}

// heard is the answer to a webhook.
type heard struct {
	status int
	answer map[string]any
}

// knock posts a delivery with the headers of its sender.
func knock(n *placetest.Node, name string, body []byte, headers map[string]string) heard {
	n.Helper()
	req, err := http.NewRequestWithContext(n.Context(), http.MethodPost, n.URL+"/hooks/"+name, bytes.NewReader(body))
	n.Must(err)
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	n.Must(err)
	defer res.Body.Close()
	c := heard{status: res.StatusCode}
	n.Must(json.NewDecoder(res.Body).Decode(&c.answer))
	return c
}

// otherSenders delivers what GitLab documents, with its token, and a message signed as
// Standard Webhooks say.
func otherSenders(n *placetest.Node) {
	n.Helper()
	pipeline, err := os.ReadFile("../../orchestrator/trigger/testdata/gitlab_pipeline.json")
	n.Must(err)
	at, invoice := strconv.FormatInt(time.Now().Unix(), 10), []byte(`{"type":"invoice.paid","data":{"id":"inv_1"}}`)
	key, err := base64.StdEncoding.DecodeString("YSBzZWNyZXQgZm9yIHRoZSB0ZXN0IG9mIGhvb2tz")
	n.Must(err)
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "msg_1.%s.%s", at, invoice)
	for _, c := range []struct {
		name    string
		body    []byte
		headers map[string]string
		text    string
	}{
		{"pipelines", pipeline, map[string]string{"X-Gitlab-Token": "a token for GitLab alone", "X-Gitlab-Event": "Pipeline Hook", "Idempotency-Key": "f5e5f430-f57b-4e6e-9fac-d9128cd7232f"}, "Pipeline failed"},
		{"billing", invoice, map[string]string{"webhook-id": "msg_1", "webhook-timestamp": at, "webhook-signature": "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))}, "Look at invoice.paid"},
	} {
		first, again := knock(n, c.name, c.body, c.headers), knock(n, c.name, c.body, c.headers)
		if first.status != http.StatusAccepted || again.status != http.StatusOK || first.answer["id"] != again.answer["id"] {
			n.Errorf("%s: answered %+v, then %+v", c.name, first, again)
			continue
		}
		id := fmt.Sprint(first.answer["id"])
		n.Until("the end of "+c.name, func() bool { return n.Root(id).State.Ended() })
		if root := n.Root(id); root.State != orchestrator.Completed || !strings.HasPrefix(root.Text, c.text) {
			n.Errorf("%s: %s is %s", c.name, root.Text, root.State)
		}
	}
}

// chainOf checks who handed a task on to whom, the root first.
func chainOf(p *placetest.Place, taskID string, want ...string) {
	p.Helper()
	tree, err := p.Store.Tree(p.Context(), taskID)
	p.Must(err)
	var got []string
	for _, d := range tree {
		got = append(got, d.To)
	}
	if strings.Join(got, " → ") != strings.Join(want, " → ") {
		p.Errorf("the task went %v, want %v", got, want)
	}
}

// foundByAuditor searches as an auditor would: by where, who, how and a word, on the page
// and on the command line.
func foundByAuditor(n *placetest.Node, token, task string) history.Row {
	n.Helper()
	const asked = "repository:app approver:bob channel:telegram via:webhook time:1d Build"
	carol := n.Browser("carol")
	page := n.Page(carol, "/audit?filter="+url.QueryEscape(asked))
	r := n.Requests(task)[0]
	if !strings.Contains(page, r.ID) || !strings.Contains(page, r.Landed[:7]) {
		n.Errorf("%s is not on the page of what was asked", r.ID)
	}
	if page := n.Page(carol, "/audit?filter="+url.QueryEscape("channel:web time:1d")); strings.Contains(page, r.ID) {
		n.Error("it is found among what was approved on the web")
	}
	out, said, code := asAuditor(n, n.Dir, token, append([]string{"audit", "list", "--json"}, strings.Fields(asked)...)...)
	var found struct{ Items []history.Row }
	if err := json.Unmarshal(out, &found); code != 0 || err != nil || len(found.Items) != 1 {
		n.Fatalf("audit list: exit %d, %v\n%s%s", code, err, out, said)
	}
	row := found.Items[0]
	if row.ID != r.ID || row.Landed != r.Landed || row.Requester != "ann" || row.Via != origin.Trigger(origin.Webhook, "ci-failed") || row.Repository != "app" || len(row.Deciders) != 1 || row.Deciders[0].Name != "bob" || row.Deciders[0].Channel != "telegram" {
		n.Errorf("what is found says %+v", row)
	}
	evidence := n.Page(carol, "/approvals/"+row.ID+"/evidence")
	for _, part := range []string{"ann", "bob", "telegram", row.Landed, r.Revision.Digest, "Fix Build on master"} {
		if !strings.Contains(strings.ToLower(evidence), strings.ToLower(part)) {
			n.Errorf("the evidence does not name %q", part)
		}
	}
	return row
}

// provenElsewhere takes the evidence and an export away and verifies both in an empty
// folder, with nothing but the files; then with one byte changed.
func provenElsewhere(n *placetest.Node, token string, row history.Row) {
	n.Helper()
	var task bytes.Buffer
	if code, err := n.Text("/api/v1/audit/export?task_id="+row.TaskID, token, &task); err != nil || code != http.StatusOK {
		n.Fatalf("%d, %v: %s", code, err, &task)
	}
	evidence, said, code := asAuditor(n, n.Dir, token, "audit", "export", row.ID[len(row.ID)-6:])
	if code != 0 {
		n.Fatalf("audit export of one request: exit %d: %s", code, said)
	}
	all, said, code := asAuditor(n, n.Dir, token, "audit", "export")
	if code != 0 {
		n.Fatalf("audit export: exit %d: %s", code, said)
	}
	rows, said, code := asAuditor(n, n.Dir, token, "audit", "export", "--format", "csv", "--filter", "approver:bob")
	if code != 0 || !bytes.Contains(rows, []byte("# rows: 1,")) || !bytes.Contains(rows, []byte(row.Landed)) {
		n.Errorf("the rows for a table: exit %d: %s%s", code, rows, said)
	}
	for name, bundle := range map[string][]byte{"evidence": evidence, "task": task.Bytes(), "all": all} {
		empty := n.TempDir()
		n.Must(os.WriteFile(filepath.Join(empty, "bundle.jsonl"), bundle, 0o600))
		out, said, code := asAuditor(n, empty, "", "audit", "verify", "--file", "bundle.jsonl")
		if code != 0 || !bytes.Contains(out, []byte("verified")) {
			n.Errorf("%s: exit %d: %s%s", name, code, out, said)
		}
		id, forged := forged(n, bundle)
		n.Must(os.WriteFile(filepath.Join(empty, "bundle.jsonl"), forged, 0o600))
		out, said, code = asAuditor(n, empty, "", "audit", "verify", "--file", "bundle.jsonl")
		if code != 1 || !strings.Contains(string(out)+said, id) {
			n.Errorf("%s: with one byte of %s changed: exit %d: %s%s", name, id, code, out, said)
		}
		left, err := os.ReadDir(empty)
		if n.Must(err); len(left) != 1 {
			n.Errorf("%s: verifying left %v", name, left)
		}
	}
}

// forged makes bob's yes somebody else's, and names the entry.
func forged(n *placetest.Node, bundle []byte) (id string, forged []byte) {
	n.Helper()
	lines := bytes.SplitAfter(bytes.Clone(bundle), []byte("\n"))
	for _, line := range lines {
		var e struct{ ID, Type, Actor string }
		if json.Unmarshal(line, &e) == nil && e.Type == "approval.decided" && e.Actor == "bob" {
			line[bytes.Index(line, []byte(`"bob"`))+1] = 'r'
			return e.ID, bytes.Join(lines, nil)
		}
	}
	n.Fatalf("bob's yes is not in the bundle:\n%s", bundle)
	return "", nil
}

// rounds checks the schedule: the times that were missed made one task, and while that
// lives the next one makes none.
func rounds(n *placetest.Node) {
	n.Helper()
	var came []trigger.Delivery
	n.Until("the next time, which is skipped", func() bool {
		page, err := n.Store.Deliveries(n.Context(), trigger.Filter{Trigger: "rounds"})
		n.Must(err)
		came = page.Items
		return len(came) > 1 && came[len(came)-2].State != trigger.Stored
	})
	if first, next := came[len(came)-1], came[len(came)-2]; first.State != trigger.Started || next.State != trigger.Skipped || next.TaskID != "" {
		n.Errorf("the times became %+v", came)
	}
	n.Touch("signs/enough")
	n.Until("the end of the rounds", func() bool { return n.Root(came[len(came)-1].TaskID).State.Ended() })
}

// asAuditor runs the program as an auditor does, in a folder, with or without a server.
func asAuditor(n *placetest.Node, dir, token string, args ...string) (out []byte, said string, code int) {
	n.Helper()
	cmd := exec.CommandContext(n.Context(), "gatehouse", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "GORACE=" + placetest.NoSleep}
	if token != "" {
		cmd.Env = append(cmd.Env, "GATEHOUSE_URL="+n.URL, "GATEHOUSE_TOKEN="+token)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		n.Fatal(err)
	}
	return out, stderr.String(), cmd.ProcessState.ExitCode()
}
