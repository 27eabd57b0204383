package web_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// send posts a form with files, as a browser without JavaScript does.
func (b *browser) send(path string, fields map[string]string, files ...string) answer {
	b.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range fields {
		b.must(w.WriteField(name, value))
	}
	for i := 0; i < len(files); i += 2 {
		part, err := w.CreateFormFile("files", files[i])
		b.must(err)
		_, err = part.Write([]byte(files[i+1]))
		b.must(err)
	}
	b.must(w.Close())
	req, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.url+path, &body)
	b.must(err)
	req.Header.Set("Content-Type", w.FormDataContentType())
	req.Header.Set("Origin", b.url)
	return b.do(b.client, req)
}

// newest is the task that was sent last.
func (h *house) newest() orchestrator.Task {
	h.Helper()
	page, err := h.store.List(h.ctx, orchestrator.Filter{RootsOnly: true, Limit: 1})
	h.must(err)
	t, err := h.store.Task(h.ctx, page.Items[0].TaskID)
	h.must(err)
	return t
}

// Both forms take files without JavaScript; the task's page and the chat list them, and their
// content is a download whatever it is.
func TestFormsTakeFiles(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	b := h.signIn(dora)
	const script = "<script>alert(1)</script>"
	for path, list := range map[string]string{"/delegations": "/delegations/", "/chat": "/chat?task="} {
		h.says(b.send(path, map[string]string{"agent": "kik", "text": "Look at these", "key": "k" + path}, "<b>page</b>.html", "x"), http.StatusBadRequest, "Look at these", "has one of /", "Choose the files again.", `role="alert">The file name`)
		h.says(b.send(path, map[string]string{"agent": "nobody", "text": "Look at these"}, "page.html", "x"), http.StatusConflict, "Look at these", "No agent is named", "Choose the files again.")
		h.says(b.send(path, map[string]string{"agent": "kik", "text": "Look at these"}, "large", strings.Repeat("x", 5<<20+1)), http.StatusRequestEntityTooLarge, "Look at these", "5 MB is the limit of one")
		if a := b.send(path, map[string]string{"agent": "kik", "text": "Look at these"}, "large", strings.Repeat("x", 18<<20)); a.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, "larger than the 17 MB that this address takes") {
			t.Errorf("%s: %d %.300s", path, a.StatusCode, a.body)
		}
		h.says(b.send(path, map[string]string{"agent": "kik", "text": "Look at these", "key": "k" + path}, "page.html", script, "empty", ""), http.StatusOK)
		task := h.newest()
		if len(task.Attachments) != 2 || task.Attachments[0].Name != "page.html" || task.Attachments[1].Size != 0 {
			t.Fatalf("%s stored %+v", path, task.Attachments)
		}
		h.says(b.get(list+task.ID), http.StatusOK, `href="/delegations/`+task.RootID+`/attachments/1"`, "page.html", "25 B")
		for _, at := range []string{"/delegations/" + task.RootID + "/attachments/1", "/api/v1/delegations/" + task.ID + "/attachments/page.html"} {
			a := b.get(at)
			if a.StatusCode != http.StatusOK || a.body != script || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment;") ||
				a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
				t.Errorf("%s: %d %q %v", at, a.StatusCode, a.body, a.Header)
			}
		}
	}
	if a := b.get("/delegations/" + h.newest().RootID + "/attachments/3"); a.StatusCode != http.StatusNotFound {
		t.Errorf("a third file: %d", a.StatusCode)
	}
}

// The event of a task's creation names its files with their digests; a run of another task gets none of them.
func TestFilesOfATaskAreOnRecord(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Operator, people.Auditor)
	made := h.expect(http.StatusAccepted, "", "POST", "/api/v1/tasks", h.token(ann), `{"agent":"kik","text":"Look","attachments":[{"name":"notes.md","data":"aGVsbG8="}]}`).json(t)
	root := made["delegation_id"].(string)
	events := h.expect(http.StatusOK, "", "GET", "/api/v1/delegations/"+root+"/events", h.token(ann), "")
	const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	if !strings.Contains(events.body, `"attachments":[{"name":"notes.md","media_type":"text/markdown; charset=utf-8","size":5,"sha256":"`+sum+`"}]`) {
		t.Errorf("the events say %s", events.body)
	}
	if export := h.ask("GET", "/api/v1/audit/export?list=events&format=jsonl", h.token(ann), ""); !strings.Contains(export.body, sum) {
		t.Errorf("the export lacks the digest: %d %.500s", export.StatusCode, export.body)
	}
	_, other := h.task(ann, "Something else")
	h.running(other, "ghr_another")
	for _, at := range []string{"/api/v1/delegations/" + root + "/attachments/notes.md", "/api/v1/tasks/" + made["id"].(string)} {
		h.expect(http.StatusNotFound, "not_found", "GET", at, "ghr_another", "")
	}
	h.expect(http.StatusUnauthorized, "unauthorized", "GET", "/api/v1/delegations/"+root+"/attachments/notes.md", "", "")
	h.expect(http.StatusBadRequest, "bad_request", "POST", "/api/v1/tasks", h.token(ann), `{"agent":"kik","text":"Look","attachments":[{"name":"x","data":"not base64"}]}`)
}

// choose puts files into a field, as a person's choice does.
func choose(p *browsertest.Page, field string, files string) {
	browsertest.Eval[bool](p, `(function () { var d = new DataTransfer(), f = document.getElementById('`+field+`'); `+files+`; f.files = d.files;
		f.dispatchEvent(new Event('change', { bubbles: true })); return true; })()`)
}

// With JavaScript the files and their sizes are listed, too large ones are refused before anything is sent, and a
// message with files keeps them until the server has it.
func TestFilesAreChosenInTheBrowser(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	p := h.seat(browsertest.New(t), dora)
	for name, at := range map[string]string{"send": "/", "chat": "/chat"} {
		p.Desktop().Light().Open(h.url + at)
		choose(p, name+"-files", `d.items.add(new File(['hello'], 'notes.md')); d.items.add(new File([new Uint8Array(2500)], 'shot.png'))`)
		p.WaitText("shot.png 2.5 kB")
		for _, phone := range []bool{false, true} {
			if phone {
				p.Phone().Dark()
			}
			for _, v := range p.Violations() {
				t.Errorf("%s: %s", name, v)
			}
			if wide := browsertest.Eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
				t.Errorf("%s is %d px wider than the screen", name, wide)
			}
			p.Shot("files-" + name + map[bool]string{true: "-phone", false: "-wide"}[phone])
		}
		p.Desktop()
		choose(p, name+"-files", `d.items.add(new File([new Uint8Array(6 * 1024 * 1024)], 'large.bin'))`)
		p.WaitText("large.bin has 6.29 MB; 5 MB is the limit of one file.")
		choose(p, name+"-files", `d.items.add(new File(['hello'], 'notes.md'))`)
		p.WaitGone("is the limit of one file.")
		p.Fill(map[string]string{"send": "Task", "chat": "Message"}[name], "Look at the notes, "+name)
		p.Click("button", "Send")
		p.Until(`document.querySelector('a[href$="/attachments/1"]') !== null`)
		p.WaitText("notes.md")
		if name == "chat" {
			p.Until(`document.getElementById('chat-text').value + document.getElementById('chat-files').value === ''`)
		}
		if task := h.newest(); task.Text != "Look at the notes, "+name || len(task.Attachments) != 1 || task.Attachments[0].Size != 5 {
			t.Errorf("%s stored %q with %+v", name, task.Text, task.Attachments)
		}
	}
}
