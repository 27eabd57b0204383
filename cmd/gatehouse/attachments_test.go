package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/pgtest"
	"gatehouse/web/wire"
)

// attachedTeam has a reader of files of every kind.
const attachedTeam = `
engine: {workers: 4, lease: 10m}
repositories:
  app: {path: "REPO", branch: main}
providers:
  local: {base_url: "BASE"}
agents:
  plain: {kind: command, repository: app, command: [sh, -c, 'cat "$GATEHOUSE_ATTACHMENTS/notes.md"; ls "$GATEHOUSE_ATTACHMENTS"; cat; echo x 2>/dev/null > "$GATEHOUSE_ATTACHMENTS/new" || echo SEALED; echo y 2>/dev/null > "$GATEHOUSE_ATTACHMENTS/notes.md" || echo KEPT']}
  caller: {kind: command, command: [sh, -c, 'gatehouse delegate plain "read it for me"']}
  liner: {kind: command, protocol: jsonl, command: [sh, -c, 'read task; echo "{\"type\":\"result\",\"text\":\"heard\",\"data\":$task}"']}
  asker: {kind: command, command: [sh, -c, 'gatehouse delegate guarded "read it for me"']}
  guarded: {kind: command, ask_first: true, command: [sh, -c, 'cat "$GATEHOUSE_ATTACHMENTS/notes.md"']}
  reader: {kind: llm, model: local/one}
  coder: {kind: llm, model: local/one, repository: app}
`

// looksAtFiles plays the models: they list, search and read the files, then say what they saw.
func looksAtFiles(a modeltest.Ask) modeltest.Answer {
	switch a.Turn {
	case 1:
		return modeltest.Use("list_files", map[string]any{"recursive": true})
	case 2:
		return modeltest.Use("read_file", map[string]any{"path": "attachments/long.txt", "offset": 2000, "limit": 1})
	case 3:
		return modeltest.Use("search", map[string]any{"pattern": "needle", "path": "attachments"})
	case 4:
		return modeltest.Use("read_file", map[string]any{"path": "attachments/../../../etc/passwd"})
	case 5:
		return modeltest.Use("read_file", map[string]any{"path": "attachments/shot.png"})
	}
	var all []string
	for _, m := range a.Messages {
		for _, b := range m.Blocks {
			all = append(all, b.Text)
		}
	}
	return modeltest.Say(strings.Join(all, "\n---\n"))
}

// given are files as a person attaches them.
func given() []wire.Upload {
	return []wire.Upload{
		{Name: "notes.md", Data: []byte("# Notes\nsay \"hello\"\n")},
		{Name: "long.txt", Data: []byte(strings.Repeat("hay\n", 1999) + "the needle\n" + strings.Repeat("hay\n", 2000))},
		{Name: "shot.png", MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n\x00\x00")},
		{Name: "empty", Data: []byte{}},
	}
}

// attach sends a task with files and returns the end of its root, and the task as the API tells it.
func attach(n *placetest.Node, to string, files []wire.Upload) (orchestrator.Delegation, map[string]any) {
	n.Helper()
	var s wire.Submitted
	if status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: to, Text: "Look at the files", Attachments: files}, &s); err != nil || status != http.StatusAccepted {
		n.Fatalf("%s was sent with status %d, %v", to, status, err)
	}
	root := n.Through(s.ID)
	if root.State != orchestrator.Completed {
		n.Fatalf("%s ended as %s: %+v", to, root.State, root.Error)
	}
	var task map[string]any
	if status, err := n.Call(http.MethodGet, "/api/v1/tasks/"+s.ID, n.Asker, nil, &task); err != nil || status != http.StatusOK {
		n.Fatalf("the task of %s: %d, %v", to, status, err)
	}
	return root, task
}

// TestAgentsAreGivenTheFilesOfATask: a program finds them in a folder that it cannot write,
// and so does one that was handed work; a model reads them by its tools; none is in a patch.
func TestAgentsAreGivenTheFilesOfATask(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		fake := modeltest.Start(looksAtFiles)
		t.Cleanup(fake.Close)
		p := placetest.New(t, database, strings.ReplaceAll(attachedTeam, "BASE", fake.OpenAI()))
		n := p.Start(p.Config, "")
		for _, to := range []string{"plain", "caller"} {
			root, _ := attach(n, to, given())
			for _, want := range []string{"say \"hello\"", "empty\nlong.txt\nnotes.md\nshot.png", "- shot.png (image/png, 10 bytes)", "SEALED", "KEPT"} {
				if !strings.Contains(root.Result.Text, want) {
					t.Errorf("%s lacks %q: %s", to, want, root.Result.Text)
				}
			}
			if root.ApprovalID != "" {
				t.Errorf("%s made a patch", to)
			}
		}
		root, _ := attach(n, "liner", given())
		var heard struct{ Attachments []map[string]any }
		if err := json.Unmarshal(root.Result.Data, &heard); err != nil || len(heard.Attachments) != 4 || heard.Attachments[3]["size"] != 0.0 || !strings.HasSuffix(heard.Attachments[0]["path"].(string), "/attachments/notes.md") {
			t.Errorf("the task's line: %v %s", err, root.Result.Data)
		}
		for _, to := range []string{"reader", "coder"} {
			root, _ := attach(n, to, given())
			for _, want := range []string{`{"file":"notes.md","text":"# Notes\nsay \"hello\"\n"}`, "- shot.png (image/png, 10 bytes)", "attachments/long.txt 16", "the needle\n\n[lines 2000", "attachments/long.txt:2000: the needle", "binary file of 10 bytes"} {
				if !strings.Contains(root.Result.Text, want) {
					t.Errorf("%s lacks %q: %s", to, want, root.Result.Text)
				}
			}
			if strings.Contains(root.Result.Text, "root:") || strings.Contains(root.Result.Text, `"file":"long.txt"`) {
				t.Errorf("%s has read too much: %s", to, root.Result.Text)
			}
		}
	})
}

// TestFilesOfATaskAreStoredOnce: the task lists its files with their digests, whoever may read
// the delegation gets them as downloads, and the same key again wants the same files.
func TestFilesOfATaskAreStoredOnce(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, strings.ReplaceAll(attachedTeam, "BASE", "http://127.0.0.1:9/v1"))
		n := p.Start(p.Config, "")
		root, task := attach(n, "plain", given())
		all, _ := task["attachments"].([]any)
		if len(all) != 4 {
			t.Fatalf("the task lists %v", task["attachments"])
		}
		first := all[0].(map[string]any)
		if first["name"] != "notes.md" || first["media_type"] != "text/markdown; charset=utf-8" || first["size"] != 20.0 || len(first["sha256"].(string)) != 64 {
			t.Errorf("the first file is %v", first)
		}
		var content bytes.Buffer
		if status, err := n.Text(first["url"].(string), n.Asker, &content); err != nil || status != http.StatusOK || content.String() != "# Notes\nsay \"hello\"\n" {
			t.Errorf("its content: %d %q, %v", status, content.String(), err)
		}
		for at, want := range map[string]int{first["url"].(string) + "x": http.StatusNotFound, "/api/v1/delegations/" + root.ID + "/attachments/..%2Fnotes.md": http.StatusNotFound} {
			if status, err := n.Text(at, n.Asker, &content); err != nil || status != want {
				t.Errorf("%s: %d, %v", at, status, err)
			}
		}
		if status, _ := n.Text(first["url"].(string), "", &content); status != http.StatusUnauthorized {
			t.Errorf("a stranger gets %d", status)
		}
		again := wire.Submission{Agent: "plain", Text: "Look", Key: "one", Attachments: given()[:1]}
		for i, want := range []int{http.StatusAccepted, http.StatusOK, http.StatusConflict} {
			if i == 2 {
				again.Attachments = given()[1:2]
			}
			if status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, again, nil); err != nil || status != want {
				t.Errorf("sent for the %d. time: %d, %v", i+1, status, err)
			}
		}
	})
}

// TestFilesThatAreNotTaken: names that lead elsewhere, hide or clash, and more than the limits.
func TestFilesThatAreNotTaken(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+pgtest.Folder(t)+"/gatehouse.db", strings.ReplaceAll(attachedTeam, "BASE", "http://127.0.0.1:9/v1"))
	n := p.Start(p.Config, "")
	ok := func(name string) wire.Upload { return wire.Upload{Name: name, Data: []byte("x")} }
	large := func(name string, mb int) wire.Upload { return wire.Upload{Name: name, Data: make([]byte, mb<<20)} }
	cases := map[string][]wire.Upload{}
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "/etc/passwd", "a\x00b", "a\nb", "a\u202eb", "a\u200bb", "a\ufe0fb", ".git", "-rf", "~x", "x.", "x ", "NUL", "con.txt", "COM1.log", "a:b", "a*", strings.Repeat("é", 80), "ghp_0123456789abcdefghijABCDEFGHIJ012345.txt", "Ａ／Ｂ"} {
		cases[name] = []wire.Upload{ok(name)}
	}
	cases["twice"] = []wire.Upload{ok("Readme.md"), ok("README.md")}
	cases["composed"] = []wire.Upload{ok("caf\u00e9"), ok("cafe\u0301")}
	for name, files := range cases {
		var fault struct{ Code, Detail string }
		status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "plain", Text: "Look", Attachments: files}, &fault)
		if err != nil || status != http.StatusBadRequest || fault.Code != "bad_attachment" {
			t.Errorf("%q: %d %+v, %v", name, status, fault, err)
		}
	}
	for name, files := range map[string][]wire.Upload{
		"a task takes 8":          {ok("1"), ok("2"), ok("3"), ok("4"), ok("5"), ok("6"), ok("7"), ok("8"), ok("9")},
		"5 MB is the limit":       {large("a", 6)},
		"more than 10 MB togethe": {large("a", 5), large("b", 5), ok("c")},
		"that this address takes": {large("a", 16)},
	} {
		var fault struct{ Code, Detail string }
		status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "plain", Text: "Look", Attachments: files}, &fault)
		if err != nil || status != http.StatusRequestEntityTooLarge || !strings.Contains(fault.Detail, name) {
			t.Errorf("%q: %d %+v, %v", name, status, fault, err)
		}
	}
	if root, _ := attach(n, "liner", []wire.Upload{ok("Screenshot 1\u202fPM (é) – 日本.png")}); !strings.Contains(string(root.Result.Data), "Screenshot 1 PM (é) – 日本.png") {
		t.Errorf("an odd name: %s", root.Result.Data)
	}
}

// TestWhoeverSaysYesToAHandoverSeesTheFiles: they are in the request on every face, and its
// digest covers them; the command line sends them.
func TestWhoeverSaysYesToAHandoverSeesTheFiles(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, strings.ReplaceAll(attachedTeam, "BASE", "http://127.0.0.1:9/v1"))
		n := p.Start(p.Config, "")
		for name, text := range map[string]string{"notes.md": "# Notes", "other.log": "lines"} {
			p.Must(os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600))
		}
		out, code := p.Cli(n, "--json", "--token", n.Asker, "send", "asker", "Look", "--attach", filepath.Join(p.Dir, "notes.md"), "--attach", filepath.Join(p.Dir, "other.log"))
		var s wire.Submitted
		if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
			t.Fatalf("sent with code %d, %v: %s", code, err, out)
		}
		r := p.Asked(s.ID)
		q := *r.Handover
		if len(q.Attachments) != 2 || q.Attachments[0].Size != 7 {
			t.Fatalf("the question has %+v", q.Attachments)
		}
		if digest, err := q.Digest(s.ID); err != nil || digest != r.Revision.Digest {
			t.Errorf("its digest is %s, stored is %s, %v", digest, r.Revision.Digest, err)
		}
		sum := q.Attachments[0].SHA256
		q.Attachments = nil
		if digest, _ := q.Digest(s.ID); digest == r.Revision.Digest {
			t.Error("the digest does not cover the files")
		}
		if raw, err := json.Marshal(q); err != nil || strings.Contains(string(raw), "attachments") {
			t.Errorf("without files a question is %s", raw)
		}
		var shown struct {
			Question struct{ Attachments []map[string]any }
		}
		if status, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, n.Approver, nil, &shown); err != nil || status != http.StatusOK || len(shown.Question.Attachments) != 2 || shown.Question.Attachments[0]["sha256"] != sum {
			t.Errorf("the API: %d %+v, %v", status, shown, err)
		}
		if page := n.Page(n.Browser("bob"), "/approvals/"+r.ID); !strings.Contains(page, "Files that came with the task") || !strings.Contains(page, "notes.md") {
			t.Errorf("the page lacks the files: %s", page)
		}
		if out, _ := p.Cli(n, "--token", n.Approver, "review", r.ID); !strings.Contains(out, "file of the task: notes.md (7 bytes, sha256 "+sum+")") {
			t.Errorf("the command line says %s", out)
		}
		if root := n.Through(s.ID); root.State != orchestrator.Completed || !strings.Contains(root.Result.Text, "# Notes") {
			t.Errorf("it ended as %s: %+v %+v", root.State, root.Result, root.Error)
		}
	})
}

// TestFilesAreForgottenWithTheirTask: what retention removes of a task are its files, too, and
// a task whose texts stay still lists those that are gone.
func TestFilesAreForgottenWithTheirTask(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, strings.ReplaceAll(attachedTeam, "BASE", "http://127.0.0.1:9/v1"))
		n := p.Start(p.Config, "")
		root, _ := attach(n, "liner", given())
		task, err := p.Store.Task(t.Context(), root.TaskID)
		p.Must(err)
		forget := func(what retention.What) {
			_, _, err := p.Store.Retain(t.Context(), what, time.Now().Add(time.Hour), store.After{}, 1000)
			p.Must(err)
		}
		content := func() int {
			status, err := n.Text(task.AttachmentURL("notes.md"), n.Asker, io.Discard)
			p.Must(err)
			return status
		}
		if forget(retention.Orphans); content() != http.StatusOK {
			t.Error("a file of a task that is kept was taken for an orphan")
		}
		forget(retention.Texts)
		if left, err := p.Store.Task(t.Context(), root.TaskID); err != nil || len(left.Attachments) != 0 || content() != http.StatusNotFound {
			t.Errorf("without its texts the task lists %+v", left.Attachments)
		}
		if events, err := p.Store.Events(t.Context(), root.TaskID, 0, 1); err != nil || strings.Contains(string(events[0].Data), "notes.md") {
			t.Errorf("the event still names them: %s, %v", events[0].Data, err)
		}
		forget(retention.Blobs)
		for _, a := range task.Attachments {
			if _, err := p.Store.Blob(t.Context(), orchestrator.AttachmentBlob(task.ID, a.SHA256)); !errors.Is(err, orchestrator.ErrNotFound) {
				t.Errorf("%s is still stored: %v", a.Name, err)
			}
		}
	})
}
