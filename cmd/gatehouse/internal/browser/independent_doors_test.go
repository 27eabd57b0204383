package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/web/browsertest"

	"github.com/gorilla/websocket"
)

// optInDoors is a team that hands on, reached by every door that makes tasks.
const optInDoors = `
engine: {workers: 2, handoffs: opt_in}
agents:
  script: {kind: command, command: [sh, -c, 'gatehouse delegate helper "$(cat)" 2>&1']}
  helper: {kind: command, command: [sh, -c, "echo helped"]}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// H29: wherever a person can make a task they can enable its hand-overs, and where they do
// not its agents work alone.
func TestEveryDoorEnablesHandovers(t *testing.T) {
	t.Parallel()
	g := placetest.NewGate(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), optInDoors)
	n := g.Start(g.Config, "")
	g.Link(n, "ann", 1001)
	ann := n.Browser("ann")
	post := func(path string, enable bool, text string) {
		form := url.Values{"agent": {"script"}, "text": {text}, "key": {"key of " + text}}
		if enable {
			form.Set("handoffs", "1")
		}
		res, err := ann.PostForm(n.URL+path, form)
		g.Must(err)
		g.Must(res.Body.Close())
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", path, res.Status)
		}
	}
	doors := map[string]func(enable bool, text string){
		"form": func(enable bool, text string) { post("/delegations", enable, text) },
		"chat": func(enable bool, text string) { post("/chat", enable, text) },
		"socket": func(enable bool, text string) {
			c, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(n.URL, "http")+"/ws", http.Header{"Authorization": {"Bearer " + g.Asker}})
			g.Must(err)
			defer c.Close()
			message := map[string]any{"type": "chat", "text": text, "agent": "script", "key": text}
			if enable {
				message["handoffs"] = true
			}
			g.Must(c.WriteJSON(message))
			g.Must(c.SetReadDeadline(time.Now().Add(20 * time.Second)))
			var stored map[string]any
			g.Must(c.ReadJSON(&stored))
		},
		"telegram": func(enable bool, text string) {
			word := map[bool]string{true: "--enable-handoffs "}[enable]
			g.Bot.Say(1001, g.Accounts["ann"], "/send "+word+"script "+text, 0)
		},
	}
	for name, send := range doors {
		for _, enable := range []bool{true, false} {
			text := fmt.Sprintf("by the %s, enabled is %v", name, enable)
			send(enable, text)
			root := endOf(g.Place, text)
			want := map[bool]string{true: "helped", false: "max_handoffs: Maximum handoffs reached: the task works in independent mode"}[enable]
			said := fmt.Sprint(root.Error)
			if root.Result != nil {
				said = root.Result.Text
			}
			if !strings.Contains(said, want) {
				t.Errorf("%s: it ended %s with %q, want %q", text, root.State, said, want)
			}
		}
	}
	for _, path := range []string{"/", "/chat", "/agents/script"} {
		if !strings.Contains(n.Page(ann, path), `name="handoffs"`) {
			t.Errorf("%s has no box for it", path)
		}
	}
	if out, code := g.Cli(n, "--token", g.Asker, "status", endOf(g.Place, "by the form, enabled is true").ID); code != 0 || !strings.Contains(out, "helped") {
		t.Errorf("status says %s", out)
	}
}

// The box works with script, too, which sends by the WebSocket.
func TestTheChatsBoxEnablesHandovers(t *testing.T) {
	t.Parallel()
	team, _, _ := strings.Cut(optInDoors, "channels:")
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), team)
	n := p.Start(p.Config, "")
	page := browsertest.New(t).Page()
	enters(n, page, n.URL, "ann")
	page.Open(n.URL + "/chat")
	page.Wait("button", "Send")
	says(page, "script", "alone")
	page.Click("checkbox", "Enable hand-overs")
	says(page, "script", "together")
	if root := endOf(p, "alone"); root.Result != nil && strings.Contains(root.Result.Text, "helped") {
		t.Errorf("without the box it ended %s with %+v", root.State, root.Result)
	}
	if root := endOf(p, "together"); root.Result == nil || strings.TrimSpace(root.Result.Text) != "helped" {
		t.Errorf("with the box it ended %s with %+v, %+v", root.State, root.Result, root.Error)
	}
}

// endOf waits for the end of the task with this text.
func endOf(p *placetest.Place, text string) (root orchestrator.Delegation) {
	p.Helper()
	p.Until("the end of "+text, func() bool {
		page, err := p.Store.List(p.Context(), orchestrator.Filter{RootsOnly: true, Limit: 200})
		p.Must(err)
		for _, d := range page.Items {
			if d.Text == text {
				root = d
			}
		}
		return root.State.Ended()
	})
	return root
}
