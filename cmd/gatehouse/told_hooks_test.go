package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
)

const endsSecret = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// endsTeam is told of in two places: one hears of the ends of tasks, the other of requests.
const endsTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder: {kind: command, repository: app, env: {PLACE: MARK}, command: [sh, -c, 'cat > note.txt; echo "Words of an agent."']}
  clumsy: {kind: command, env: {PLACE: MARK}, command: [sh, -c, 'exit 3']}
channels:
  webhooks:
    - {name: ends, url: "HEARS/ends", secret: whsec_` + endsSecret + `, allow_private: true, events: [task.completed, task.failed]}
    - {name: cards, url: "HEARS/cards", secret: whsec_` + endsSecret + `, allow_private: true}
`

// hears is a receiver of webhooks that checks every signature.
type hears struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	answer int // to ends; 0 means 200
	all    []toldEnd
}

// toldEnd is what is read of a message.
type toldEnd struct {
	id, path, Type string
	Data           struct {
		Task struct{ ID, State, Code, Next, Commit string }
	}
}

func newHears(t *testing.T) *hears {
	h := &hears{t: t}
	h.Server = httptest.NewServer(http.HandlerFunc(h.hear))
	t.Cleanup(h.Close)
	return h
}

func (h *hears) hear(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	key, _ := base64.StdEncoding.DecodeString(endsSecret)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || r.Header.Get("webhook-signature") != want {
		h.t.Errorf("%s: %v, signature %q", r.URL.Path, err, r.Header.Get("webhook-signature"))
	}
	if strings.Contains(string(body), "Words of an agent") {
		h.t.Errorf("what an agent said left: %s", body)
	}
	m := toldEnd{id: r.Header.Get("webhook-id"), path: r.URL.Path}
	if err := json.Unmarshal(body, &m); err != nil {
		h.t.Errorf("%s: %v", body, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, m)
	if h.answer != 0 && m.path == "/ends" {
		w.WriteHeader(h.answer)
	}
}

func (h *hears) answers(code int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = code
}

// of are the messages about a task's end, by their ids.
func (h *hears) of(task string) map[string]toldEnd {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := map[string]toldEnd{}
	for _, m := range h.all {
		if m.Data.Task.ID == task && m.path == "/ends" {
			found[m.id] = m
		}
	}
	return found
}

// kinds are the types that a path was told, each once.
func (h *hears) kinds(path string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, m := range h.all {
		if m.path == path && !slices.Contains(all, m.Type) {
			all = append(all, m.Type)
		}
	}
	return all
}

// TestWebhooksHearHowTasksEnd: every end under one id, over a receiver that fails and kill -9
// of the server; a further run is an end of its own; what is given up is a dead letter.
func TestWebhooksHearHowTasksEnd(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		h := newHears(t)
		p := placetest.New(t, database, strings.ReplaceAll(endsTeam, "HEARS", h.URL))
		n := p.Start(p.Config, "")
		h.answers(http.StatusInternalServerError)
		clumsy := n.Send("clumsy", "", "falls")
		p.Until("the first try", func() bool { return len(h.of(clumsy)) == 1 })
		n.Kill()
		h.answers(0)
		n = p.Start(p.Config, "")
		task := n.Send("coder", "app", "lands")
		if code, err := n.Decide(p.Asked(task)); err != nil || code != http.StatusOK {
			t.Fatalf("the yes: %d, %v", code, err)
		}
		p.Until("the end", func() bool { return len(h.of(task)) == 1 })
		for _, m := range h.of(task) {
			if m.Type != "task.completed" || m.Data.Task.State != "completed" || m.Data.Task.Commit != p.Root(task).Result.Commit || m.Data.Task.Next != "" {
				t.Errorf("told %+v", m)
			}
		}
		for _, m := range h.of(clumsy) {
			if m.Type != "task.failed" || !strings.Contains(m.Data.Task.Next, "gatehouse retry "+clumsy) {
				t.Errorf("told %+v", m)
			}
		}
		h.answers(http.StatusGone)
		if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+clumsy+"/retry", n.Asker, nil, nil); err != nil || code >= 300 {
			t.Fatalf("retry: %d, %v", code, err)
		}
		p.Until("the second end", func() bool { return len(h.of(clumsy)) == 2 })
		dead := func() (found approval.DeadPage) {
			found, err := p.Store.DeadLetters(t.Context(), approval.DeadFilter{Channel: "webhook"})
			p.Must(err)
			return found
		}
		p.Until("the dead letter", func() bool { return len(dead().Items) == 1 })
		if l := dead().Items[0]; l.Kind != approval.DeadReport || l.TaskID != clumsy || l.Address != "ends" {
			t.Errorf("given up: %+v", l)
		}
		if ends, cards := h.kinds("/ends"), h.kinds("/cards"); len(ends) != 2 || slices.ContainsFunc(cards, func(k string) bool { return !strings.HasPrefix(k, "approval.") }) || !slices.Contains(cards, "approval.landed") {
			t.Errorf("ends heard %v, cards %v", ends, cards)
		}
		n.Stop()
	})
}
