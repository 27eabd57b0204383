package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
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
