package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/trigger"
)

// hostile is a text as agents, webhooks and repositories may send it: a formula, a way out of an attribute, scripts, a
// script's address in a link, colours of a terminal, a bell, text that runs backwards, a character without width.
const hostile = "=cmd|'/C calc'!A0 \"'><script>window.__pwned=1</script><img src=x onerror=\"window.__pwned=1\"> [click](javascript:window.__pwned=1) " +
	"\x1b[31mred\x07 \u202egpj.exe\u2066 zero\u200bwidth </textarea></title><!-- {{.Task}} ${HOME}"

// shownHostile is a piece of it as a person must see it.
const shownHostile = "<script>window.__pwned=1</script>"

const tenMegabytes = 10 << 20

// deepPath has 400 levels.
var deepPath = strings.Repeat("deep/", 399) + "file.go"

// world is a house in which everything that others write is hostile; ann may do everything.
type world struct {
	*house
	ann, dora                 people.User
	task, chatted             orchestrator.Task
	child                     orchestrator.Delegation
	pending, decided, handled approval.Request
	talked                    approval.Request // two revisions, with open, resolved and outdated comments
	delivery                  trigger.Delivery
}

// furnish fills an empty house with texts that mean harm, each by the way on which it would come.
func (h *house) furnish(ann people.User) *world {
	h.Helper()
	w := &world{house: h, ann: ann, dora: h.user("dora", people.Operator)}
	b := h.signIn(ann)
	w.task, _, w.child = h.failedTask(w.dora)
	chatted, root := h.task(w.dora, hostile+"\n"+strings.Repeat("A long line. ", 200))
	w.chatted = chatted
	h.turn(root, 1, agent.FromUser, said(hostile))
	h.turn(root, 2, agent.FromModel, said("# "+hostile), asks("c1", "read_file", `{"path":`+quoted(hostile)+`}`))
	h.turn(root, 3, agent.FromTools, answers("c1", "read_file", hostile+strings.Repeat("x", 300_000), true))
	h.tell(chatted.ID, event.Event{Type: event.Progress, DelegationID: root.ID, Data: event.Data(map[string]any{"text": hostile})},
		event.Event{Type: event.DelegationRefused, DelegationID: root.ID, Data: event.Data(map[string]any{"to": hostile, "code": "unknown_agent", "message": hostile})},
		event.Event{Type: event.Progress, DelegationID: root.ID, Data: event.Data(map[string]any{"text": strings.Repeat("x", tenMegabytes)})})
	h.move(root, func(d *orchestrator.Delegation) {
		now := time.Now()
		d.State, d.EndedAt = orchestrator.Completed, &now
		d.Result = &agent.Result{Text: hostile + "\n" + strings.Repeat("y", 1<<20), Data: json.RawMessage(`{` + quoted(hostile) + `:` + quoted(hostile) + `}`),
			Artifacts: []agent.Artifact{{Name: "../" + hostile + "\n.html", Text: hostile}}}
	})
	w.pending = h.request(w.dora, harm)
	w.decided = h.request(w.dora, harm)
	h.says(b.post("/approvals/"+w.decided.ID+"/decision", form("verdict", "reject", "digest", digest, "comment", hostile)), http.StatusOK)
	w.handled = h.request(w.dora, harm)
	h.says(b.post("/approvals/"+w.handled.ID+"/decision", form("verdict", "approve", "digest", digest, "comment", hostile, "tick", "ci_file", "tick", "bidi", "tick", "checks_failed", "tick", "unviewed")), http.StatusOK)
	h.says(b.post("/approvals/"+w.pending.ID+"/drafts", form("do", "save", "text", hostile, "path", w.pending.Revision.Files[0].Path, "side", "R", "line", "1", "revision", "1", "at", "F1R1")), http.StatusOK)
	w.talked = h.talk(b, h.request(w.dora, harm, func(r *approval.Request) { r.Revision.Files[1].OldBlob = strings.Repeat("f", 40) }))
	for _, e := range [][2]string{{"a'b\"<i>=1", hostile}, {"long", strings.Repeat("z", 60_000)}, {"json", `{"a":` + quoted(hostile) + `}`}} {
		h.must(h.store.InTask(h.ctx, w.task.ID, func(tx orchestrator.Tx) error {
			entry, err := sharedctx.New(time.Now(), "notes", e[0], e[1], "coder", time.Hour)
			if err != nil {
				return err
			}
			_, err = tx.PutEntry(h.ctx, entry)
			return err
		}))
	}
	h.triggers()
	h.delivered(trigger.Refused, "{"+hostile, func(d *trigger.Delivery) { d.Code, d.Message, d.Event = "malformed", hostile, hostile })
	w.delivery = h.delivered(trigger.Started, `{"action":`+quoted(hostile)+`}`, func(d *trigger.Delivery) {
		d.TaskID, d.Text, d.Headers = chatted.ID, hostile, map[string]string{"User-Agent": hostile, "X-GitHub-Event": "<b>"}
	})
	h.must(h.store.CreateSession(h.ctx, "ann", people.Session{Hash: "h1", UserID: ann.ID, Client: hostile, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}))
	h.says(b.post("/settings/tokens", form("scope", "delegations:read", "life", "90d", "name", hostile[:70])), http.StatusOK)
	h.says(b.post("/audit/views", url.Values{"name": {hostile[:60]}, "list": {"requests"}, "filter": {"approver:ann " + `"` + "<b>=1+1" + `"`}}), http.StatusOK)
	h.says(b.post("/audit/holds", form("what", "id", "subject", w.task.ID, "reason", hostile)), http.StatusOK)
	h.says(b.post("/settings/people", form("name", "o-neil.x_1", "role", "approver")), http.StatusOK)
	h.says(b.post("/tasks", form("agent", "kik", "text", hostile, "repository", "app", "key", "hostile")), http.StatusOK)
	h.says(b.post("/audit/verify", nil), http.StatusOK)
	return w
}

// talk makes a request of two revisions on which people talk: comments of the first are
// open, resolved and about what is not there any more.
func (h *house) talk(b *browser, r approval.Request) approval.Request {
	h.Helper()
	address, files := "/approvals/"+r.ID, r.Revision.Files
	for i, side := range []string{"R", "L"} {
		for line := range 2 {
			h.says(b.post(address+"/drafts", form("do", "save", "text", hostile, "path", files[i].Path, "side", side, "line", strconv.Itoa(line), "revision", "1")), http.StatusOK)
		}
	}
	h.says(b.post(address+"/decision", form("verdict", "request_changes", "digest", digest, "drafts", "1")), http.StatusOK)
	h.must(h.store.InGate(h.ctx, r.TaskID, func(tx approval.Tx) error {
		cur, err := tx.Request(h.ctx, r.ID)
		if err != nil {
			return err
		}
		cur.State, cur.DecidedAt = approval.Pending, nil
		cur.Revision.N, cur.Revision.State, cur.Revision.At = 2, approval.Pending, time.Now()
		cur.Revision.Files = slices.Clone(files)
		cur.Revision.Files[0].NewBlob = strings.Repeat("e", 40)
		return tx.SaveRequest(h.ctx, cur)
	}))
	got, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	for _, say := range []url.Values{form("thread", got.Decisions[0].ID+".1", "do", "reply", "text", hostile), form("thread", got.Decisions[0].ID+".2", "do", "resolve", "text", hostile),
		form("thread", got.Decisions[0].ID+".3", "do", "resolve"), form("thread", got.Decisions[0].ID+".3", "do", "reopen", "text", hostile)} {
		h.says(b.post(address+"/threads", say), http.StatusOK)
	}
	return got
}

// harm makes a request whose names, texts and checks are hostile.
func harm(r *approval.Request) {
	r.Title, r.Chain = hostile, chain.Names{"kik", hostile}
	r.Rule.When = "all(patch.files, .path endsWith '<b>')"
	file := func(path string, added int) patch.File {
		return patch.File{Path: path, Status: patch.Modified, Added: added, Removed: 1, OldMode: "100644", NewMode: "100644"}
	}
	renamed := file("it's \"new\"\n<b>\u202e.go", 1)
	renamed.Status, renamed.OldPath = patch.Renamed, hostile
	binary := patch.File{Path: "logo=1.png", Status: patch.Modified, Binary: true, OldBlob: pngBlob, NewBlob: pngBlob, OldSize: 10, NewSize: 12, OldMode: "100644", NewMode: "100755"}
	v := &r.Revision
	v.Text = hostile
	// Git lets branches have names like these.
	v.Branch, v.Base.Branch = "gatehouse/=cmd|'\">"+shownHostile+"\u202egpj\u200b", "main\u202e<b>=1"
	v.Files = []patch.File{file(hostile+".go", 1), file(deepPath, 1), file("huge.txt", 1), renamed, binary}
	v.Added, v.Removed = 4, 4
	v.Warnings = []patch.Warning{{Code: "ci_file", Path: hostile + ".go", Text: "It changes what CI runs."}, {Code: "bidi", Path: deepPath, Text: "It has U+202E."}}
	v.Notes = []patch.Note{{Code: "no_sandbox", Text: hostile}}
	v.Checks = []orchestrator.Check{{Command: "go vet ./…", OK: true, Took: time.Second}, {Command: hostile, Output: hostile + "\n" + strings.Repeat("w", 100_000), Took: time.Second}}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}
