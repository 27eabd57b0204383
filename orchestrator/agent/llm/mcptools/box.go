package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/textcut"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// connectTime is how long a server may take to be ready and to list its tools.
	connectTime = 20 * time.Second
	// callTime is how long one call may take.
	callTime = 5 * time.Minute
	// maxFrame is the longest message of a server, in bytes.
	maxFrame = 4 << 20
)

// Options say how servers are reached.
type Options struct {
	// Start starts a server's program for a run, confined like its other programs. Close
	// of what it returns ends all of it. Nil: programs cannot be started.
	Start func(ctx context.Context, job agent.Job, host agent.Host, command []string, env map[string]string) (io.ReadWriteCloser, error)
	// Transport is used for URLs; nil is http.DefaultTransport.
	Transport http.RoundTripper
	Version   string // this program's, as servers are told
	Log       *slog.Logger
}

// Box is the tools of one run. It is used by one goroutine.
type Box struct {
	servers []*server
	byName  map[string]bound
	tools   []model.Tool
}

// bound is a tool with its server.
type bound struct {
	server *server
	name   string // as the server calls it
	safe   bool   // it changes nothing
	hints  agent.Hints
}

// server is one server of one run.
type server struct {
	agent.MCPServer
	session *mcp.ClientSession
	closer  io.Closer // the program, nil for a URL
	listed  []*mcp.Tool
	err     error // why it cannot be used
	secrets *strings.Replacer
}

// Open connects to the servers of a run's agent, all at once. One that cannot be reached
// is named by Away. It returns nil when the agent has none.
func Open(ctx context.Context, job agent.Job, host agent.Host, o Options) (*Box, error) {
	if len(job.Agent.MCP) == 0 {
		return nil, nil
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &Box{byName: map[string]bound{}}
	var all sync.WaitGroup
	for _, declared := range job.Agent.MCP {
		s := &server{MCPServer: declared, secrets: secretsOf(declared)}
		b.servers = append(b.servers, s)
		all.Go(func() { s.err = s.connect(ctx, job, host, o) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), b.Close())
	}
	for _, s := range b.servers {
		if errors.Is(s.err, agent.ErrStopped) {
			return nil, errors.Join(s.err, b.Close())
		}
		if s.err != nil {
			o.Log.Warn("an MCP server cannot be used", "server", s.Name, "delegation", job.DelegationID, "err", s.err)
			continue
		}
		b.add(s)
	}
	return b, nil
}

// connect gets the server ready and lists its tools.
func (s *server) connect(ctx context.Context, job agent.Job, host agent.Host, o Options) error {
	transport, err := s.transport(ctx, job, host, o)
	if err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "gatehouse", Version: o.Version}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	soon, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	// The session lives longer than the time for its start: ctx ends it with the run.
	session, err := connectWithin(soon, ctx, client, transport)
	if err != nil {
		return err
	}
	s.session = session
	for t, err := range session.Tools(soon, nil) {
		if err != nil {
			return fmt.Errorf("list its tools: %w", err)
		}
		if s.listed = append(s.listed, t); len(s.listed) >= maxTools {
			break
		}
	}
	return nil
}

// connectWithin connects with a context that lives on, but gives up when soon ends.
func connectWithin(soon, ctx context.Context, client *mcp.Client, t mcp.Transport) (*mcp.ClientSession, error) {
	inner, cancel := context.WithCancel(ctx)
	halt := context.AfterFunc(soon, cancel)
	session, err := client.Connect(inner, t, nil)
	if !halt() && err == nil {
		_ = session.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(ctx, cancel)
	return session, nil
}

// transport reaches the server: its program's pipes, or its URL.
func (s *server) transport(ctx context.Context, job agent.Job, host agent.Host, o Options) (mcp.Transport, error) {
	if s.URL != "" {
		return &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: headers{o.Transport, s.Headers}},
			MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxFrame}, nil
	}
	if o.Start == nil || len(s.Command) == 0 {
		return nil, errors.New("it has neither a program nor a url")
	}
	rw, err := o.Start(ctx, job, host, s.Command, s.Env)
	if err != nil {
		return nil, err
	}
	s.closer = rw
	return &mcp.IOTransport{Reader: io.NopCloser(rw), Writer: rw, MaxLineLength: maxFrame}, nil
}

// headers adds the configured headers, which may hold a secret, to requests to the
// server's own host: a redirect elsewhere does not get them.
type headers struct {
	next http.RoundTripper
	add  map[string]string
}

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	next := h.next
	if next == nil {
		next = http.DefaultTransport
	}
	if len(h.add) > 0 && r.Response == nil {
		r = r.Clone(r.Context())
		for name, value := range h.add {
			r.Header.Set(name, value)
		}
	}
	return next.RoundTrip(r)
}

// add takes over a server's tools.
func (b *Box) add(s *server) {
	for _, t := range s.listed {
		shown, ok := describe(s.Name, t)
		shown.Description = s.secrets.Replace(shown.Description)
		if _, taken := b.byName[shown.Name]; !ok || taken {
			continue
		}
		b.byName[shown.Name] = bound{s, t.Name, changesNothing(s.MCPServer, t), hintsOf(t)}
		b.tools = append(b.tools, shown)
	}
}

// Tools lists the tools, in the order of the servers and of their lists.
func (b *Box) Tools() []model.Tool { return slices.Clone(b.tools) }

// ReadOnly reports whether a tool changes nothing: its server says so, or the settings do.
func (b *Box) ReadOnly(name string) bool { return b.byName[name].safe }

// Origin says whose tool it is, and what its server says of it.
func (b *Box) Origin(name string) (server string, hints agent.Hints) {
	t, ok := b.byName[name]
	if !ok {
		return "", agent.Hints{}
	}
	hints = t.hints
	if t.safe {
		hints.ReadOnly = new(true) // the settings may say so, too
	}
	return t.server.Name, hints
}

// hintsOf is what a server says of a tool.
func hintsOf(t *mcp.Tool) agent.Hints {
	if t.Annotations == nil {
		return agent.Hints{}
	}
	return agent.Hints{ReadOnly: &t.Annotations.ReadOnlyHint, Destructive: t.Annotations.DestructiveHint, OpenWorld: t.Annotations.OpenWorldHint}
}

// changesNothing trusts the one hint that says so. That a tool is not destructive, or says
// nothing of itself, is not enough.
func changesNothing(s agent.MCPServer, t *mcp.Tool) bool {
	return slices.Contains(s.Safe, t.Name) || t.Annotations != nil && t.Annotations.ReadOnlyHint
}

// Away says which servers cannot be reached.
func (b *Box) Away() []string {
	var all []string
	for _, s := range b.servers {
		if s.err != nil {
			all = append(all, fmt.Sprintf("The tools of %s (mcp_%s_…) cannot be used in this run: %s.", s.Name, toolName(s.Name), s.brief(s.err)))
		}
	}
	return all
}

// Call calls a tool. What goes wrong on the server's side is a text and true.
func (b *Box) Call(ctx context.Context, name string, input json.RawMessage) (string, bool, error) {
	t, ok := b.byName[name]
	if !ok {
		return fmt.Sprintf("There is no tool %s.", name), true, nil
	}
	late, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	res, err := t.server.session.CallTool(late, &mcp.CallToolParams{Name: t.name, Arguments: input})
	switch {
	case ctx.Err() != nil:
		return "", false, context.Cause(ctx)
	case late.Err() != nil:
		return fmt.Sprintf("%s did not answer within %s.", t.server.Name, callTime), true, nil
	case err != nil:
		return fmt.Sprintf("%s could not answer: %s. It may be away; do without it, or try again later.", t.server.Name, t.server.brief(err)), true, nil
	}
	return t.server.secrets.Replace(render(res)), res.IsError, nil
}

// Close ends all sessions, and then the programs.
func (b *Box) Close() error {
	var all sync.WaitGroup
	for _, s := range b.servers {
		all.Go(func() {
			if s.closer != nil {
				_ = s.closer.Close() // first, so that no session waits for a program that hangs
			}
			if s.session != nil {
				_ = s.session.Close()
			}
		})
	}
	all.Wait()
	return nil
}

// brief is the first line of an error, for a model: it may be the server's words.
func (s *server) brief(err error) string {
	line, _, _ := strings.Cut(text(err.Error()), "\n")
	return strings.TrimRight(textcut.Characters(s.secrets.Replace(line), 300), ". ")
}

// minSecret is how long a value must be to be taken out of texts; shorter ones would blot
// out words.
const minSecret = 8

// secretsOf takes a server's configured secrets out of what it says: a model needs none of
// them, and its conversation is stored. Errors of the network repeat the URL.
func secretsOf(s agent.MCPServer) *strings.Replacer {
	var hidden []string
	for name, v := range s.Env {
		if agent.LooksSecret(name) {
			hidden = append(hidden, v)
		}
	}
	for name, v := range s.Headers { // who writes headers mostly writes a credential
		if !strings.HasPrefix(name, "Accept") && !strings.HasPrefix(name, "Content-") && name != "User-Agent" {
			hidden = append(hidden, v, strings.TrimPrefix(v, "Bearer "))
		}
	}
	if at, err := url.Parse(s.URL); err == nil && s.URL != "" {
		if password, ok := at.User.Password(); ok {
			hidden = append(hidden, password)
		}
		hidden = append(hidden, at.RawQuery)
		for _, values := range at.Query() {
			hidden = append(hidden, values...)
		}
	}
	slices.SortFunc(hidden, func(a, b string) int { return len(b) - len(a) }) // the longest first
	var pairs []string
	for _, v := range hidden {
		if len(v) >= minSecret {
			pairs = append(pairs, v, "[secret]")
		}
	}
	return strings.NewReplacer(pairs...)
}
