package bottest

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// DefaultToken is the token of a new Server.
const DefaultToken = "4242:AAFakeTokenOfTheTestBot_0123456789"

// patience is how long Until waits.
const patience = 20 * time.Second

// Server is one bot's Bot API and all its chats. Its methods may be called from many
// goroutines. Close ends every call that still waits, and waits for it.
type Server struct {
	URL   string // for channels.telegram.api_url
	Token string
	Bot   Account

	http    *httptest.Server
	closing chan struct{}
	once    sync.Once
	wg      sync.WaitGroup // deliveries to a webhook

	mu       sync.Mutex
	changed  chan struct{} // closed and made anew at each change
	now      func() time.Time
	chats    map[int64]*chat
	behave   map[string][]Behaviour
	calls    []Call
	commands []string
	queue
}

// Call is one call that was made, refused ones included.
type Call struct {
	Method string
	Params map[string]string
}

// Account is a person, or the bot, in Telegram.
type Account struct {
	ID       int64
	Username string
	Name     string
	Bot      bool
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := Start()
	t.Cleanup(s.Close)
	return s
}

// Start starts a server that runs until Close.
func Start() *Server {
	s := &Server{
		Token: DefaultToken, Bot: Account{ID: 4242, Username: "gatehouse_test_bot", Name: "Gatehouse", Bot: true},
		closing: make(chan struct{}), changed: make(chan struct{}), now: time.Now,
		chats: map[int64]*chat{}, behave: map[string][]Behaviour{}, queue: newQueue(),
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	return s
}

// Close ends the server.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closing)
		s.http.CloseClientConnections()
		s.http.Close()
		s.wg.Wait()
	})
}

// SetClock makes the dates of messages come from a clock; at first it is time.Now.
func (s *Server) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// poke tells everybody who waits that something has changed. s.mu is held.
func (s *Server) poke() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Until waits until ok, which is asked again whenever something has changed here, and
// from time to time for what changes elsewhere.
func (s *Server) Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// refusal is an answer that is not ok.
type refusal struct {
	code       int
	text       string
	retryAfter int
	migrateTo  int64
}

func (r *refusal) Error() string { return r.text }

func bad(text string) error {
	return &refusal{code: http.StatusBadRequest, text: "Bad Request: " + text}
}

// method carries out one call. It is called with s.mu held, but for getUpdates.
type method func(s *Server, in params) (any, error)

var methods = map[string]method{
	"getMe":                  func(s *Server, _ params) (any, error) { return s.Bot.json(), nil },
	"setWebhook":             (*Server).setWebhook,
	"deleteWebhook":          (*Server).deleteWebhook,
	"getWebhookInfo":         (*Server).webhookInfo,
	"sendMessage":            (*Server).sendMessage,
	"sendDocument":           (*Server).sendDocument,
	"editMessageText":        (*Server).editText,
	"editMessageReplyMarkup": (*Server).editMarkup,
	"answerCallbackQuery":    (*Server).answerQuery,
	"setMyCommands":          (*Server).setCommands,
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	token, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	if !strings.HasPrefix(r.URL.Path, "/bot") || name == "" {
		reply(w, nil, &refusal{code: http.StatusNotFound, text: "Not Found"})
		return
	}
	if token != s.Token {
		reply(w, nil, &refusal{code: http.StatusUnauthorized, text: "Unauthorized"})
		return
	}
	in, err := readParams(r)
	if err != nil {
		reply(w, nil, bad("can't parse the request: "+err.Error()))
		return
	}
	s.mu.Lock()
	s.calls = append(s.calls, Call{Method: name, Params: in.values})
	how := s.misbehaviour(name)
	s.poke()
	s.mu.Unlock()
	if how != nil && !how.after {
		how.do(s, w, r)
		return
	}
	result, err := s.carryOut(r, name, in)
	if how != nil {
		how.do(s, w, r)
		return
	}
	reply(w, result, err)
}

func (s *Server) carryOut(r *http.Request, name string, in params) (any, error) {
	if name == "getUpdates" {
		return s.getUpdates(r.Context(), in)
	}
	do := methods[name]
	if do == nil {
		return nil, &refusal{code: http.StatusNotFound, text: "Not Found: method not found"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.poke()
	return do(s, in)
}

// reply writes an answer as Telegram does.
func reply(w http.ResponseWriter, result any, err error) {
	answer, code := map[string]any{"ok": true, "result": result}, http.StatusOK
	var no *refusal
	if errors.As(err, &no) {
		code = no.code
		answer = map[string]any{"ok": false, "error_code": code, "description": no.text}
		parameters := map[string]any{}
		if no.retryAfter > 0 {
			parameters["retry_after"] = no.retryAfter
		}
		if no.migrateTo != 0 {
			parameters["migrate_to_chat_id"] = no.migrateTo
		}
		if len(parameters) > 0 {
			answer["parameters"] = parameters
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // the caller may have gone
}

// params are a call's parameters: as a form, as multipart with a file, or as JSON.
type params struct {
	values map[string]string
	file   *Document
}

const largestCall = 64 << 20

func readParams(r *http.Request) (params, error) {
	in := params{values: map[string]string{}}
	body := http.MaxBytesReader(nil, r.Body, largestCall)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/json" {
		return in, in.readJSON(body)
	}
	r.Body = body
	if kind != "multipart/form-data" {
		err := r.ParseForm()
		for name := range r.Form {
			in.values[name] = r.Form.Get(name)
		}
		return in, err
	}
	if err := r.ParseMultipartForm(largestCall); err != nil {
		return in, err
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	for name, values := range r.MultipartForm.Value {
		in.values[name] = values[0]
	}
	if files := r.MultipartForm.File["document"]; len(files) > 0 {
		f, err := files[0].Open()
		if err != nil {
			return in, err
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		in.file = &Document{Name: files[0].Filename, Data: data}
		return in, err
	}
	return in, nil
}

// readJSON reads values as the forms have them: texts bare, everything else as JSON.
func (p params) readJSON(body io.Reader) error {
	var values map[string]json.RawMessage
	if err := json.NewDecoder(body).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for name, raw := range values {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		p.values[name] = text
	}
	return nil
}

// cut ends a connection in the middle.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
