package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	a2alog "github.com/a2aproject/a2a-go/v2/log"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/strictjson"
)

const (
	// defaultCard is where the standard has an agent's card.
	defaultCard = "/.well-known/agent-card.json"
	// maxBody is how many bytes of one answer are read, maxStream of one stream.
	maxBody   = 16 << 20
	maxStream = 64 << 20
)

var (
	errElsewhere = errors.New("it leads to another address than the configured one")
	errTooMuch   = errors.New("its answer is larger than is read")
)

// refusedStatus is an answer of HTTP that is not 200.
type refusedStatus int

func (s refusedStatus) Error() string {
	return fmt.Sprintf("it answered %d %s", int(s), http.StatusText(int(s)))
}

func newTransport() http.RoundTripper {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 4, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// door lets requests out to one address only, with the token, and bounds what comes in.
type door struct {
	base  http.RoundTripper
	home  *url.URL
	token string
	hops  int
}

// RoundTrip sends one request. Redirects come through here as well, so that none leads to
// another host, and every status but 200 is an error.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	if origin(req.URL) != origin(d.home) {
		return nil, fmt.Errorf("%s: %w", origin(req.URL), errElsewhere)
	}
	req = req.Clone(req.Context())
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	req.Header.Set(agent.HopsHeader, strconv.Itoa(d.hops))
	req.Header.Set("User-Agent", "gatehouse")
	resp, err := d.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if s := resp.StatusCode; s != http.StatusOK && (s < 300 || s > 399 || s == http.StatusNotModified) {
		return nil, errors.Join(refusedStatus(s), resp.Body.Close())
	}
	left := int64(maxBody)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		left = maxStream
	}
	resp.Body = &strict{ReadCloser: &bounded{ReadCloser: resp.Body, left: left}, events: left == maxStream}
	return resp, nil
}

// bounded is a body that ends with an error once it is too large.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// origin is scheme, host and port of an address.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// quietly keeps the library's own log lines, which hold what the agent said, out of ours.
func quietly(ctx context.Context) context.Context {
	return a2alog.AttachLogger(ctx, slog.New(slog.DiscardHandler))
}

// Card is what an agent says of itself. Its words are its own.
type Card struct {
	Name, Version, About string
	Skills               []string
	Streaming            bool
}

// Look fetches an agent's card without giving it any work.
func (r *Runner) Look(ctx context.Context, spec agent.Spec) (Card, error) {
	s := &session{o: r.o, job: agent.Job{Agent: spec}}
	if err := s.connect(quietly(ctx)); err != nil {
		return Card{}, err
	}
	c := Card{Name: title(s.card.Name), Version: title(s.card.Version), About: title(s.card.Description), Streaming: s.card.Capabilities.Streaming}
	for _, skill := range s.card.Skills[:min(len(s.card.Skills), 50)] {
		c.Skills = append(c.Skills, title(skill.Name))
	}
	return c, nil
}

// connect fetches the agent's card and makes a client for an interface that it has on the
// configured address.
func (s *session) connect(ctx context.Context) error {
	spec := s.job.Agent
	home, err := url.Parse(spec.URL)
	if err != nil || home.Host == "" {
		return agent.Fail(agent.CodeUnavailable, "%s has no address. Write url: https://… in its configuration.", spec.Name)
	}
	web := &http.Client{Transport: &door{base: s.o.Transport, home: home, token: spec.Token, hops: s.job.RemoteHops + 1}}
	path := cmp.Or(spec.Card, defaultCard)
	resolver := agentcard.Resolver{Client: web, CardParser: parseCard}
	card, err := resolver.Resolve(ctx, spec.URL, agentcard.WithPath(path))
	if err != nil {
		return fmt.Errorf("read its agent card: %w", err)
	}
	there := len(card.SupportedInterfaces)
	card.SupportedInterfaces = slices.DeleteFunc(card.SupportedInterfaces, func(i *a2a.AgentInterface) bool {
		u, err := url.Parse(i.URL)
		return err != nil || origin(u) != origin(home)
	})
	if len(card.SupportedInterfaces) == 0 && there > 0 {
		return agent.Fail(agent.CodeRemote, "The card of %s leads away from %s, which is its configured address, and was not followed. Set its `url` to the address that works for it.", spec.Name, origin(home))
	}
	s.client, err = a2aclient.NewFromCard(ctx, card, a2aclient.WithDefaultsDisabled(),
		a2aclient.WithJSONRPCTransport(web), a2aclient.WithRESTTransport(web),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: web}), a2av0.WithRESTTransport(a2av0.RESTTransportConfig{Client: web}))
	if err != nil {
		return agent.Fail(agent.CodeRemote, "%s offers no interface that is spoken here: %s. It needs A2A 1.0 or 0.3 by JSON-RPC or HTTP+JSON.", spec.Name, title(err.Error()))
	}
	s.card = card
	s.streams = card.Capabilities.Streaming
	return nil
}

// parseCard reads a card of either version. An old card that names no transport speaks
// JSON-RPC, as that version of the standard says.
func parseCard(body []byte) (*a2a.AgentCard, error) {
	card, err := a2av0.NewAgentCardParser()(body)
	if err != nil {
		return nil, err
	}
	card.SupportedInterfaces = slices.DeleteFunc(card.SupportedInterfaces, func(i *a2a.AgentInterface) bool { return i == nil })
	if len(card.SupportedInterfaces) > 0 {
		return card, nil
	}
	var old struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(body, &old); err == nil && old.URL != "" {
		card.SupportedInterfaces = []*a2a.AgentInterface{{URL: old.URL, ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: a2av0.Version}}
	}
	return card, nil
}

// maxNesting is how deep an answer may nest.
const maxNesting = 200

// strict is a body that the library gets to read only after it was looked at: whole, or
// event by event where it is a stream.
type strict struct {
	io.ReadCloser
	events bool
	lines  *bufio.Reader
	ready  []byte
	err    error
}

func (s *strict) Read(p []byte) (int, error) {
	for len(s.ready) == 0 && s.err == nil {
		if s.events {
			s.nextEvent()
		} else {
			s.whole()
		}
	}
	n := copy(p, s.ready)
	if s.ready = s.ready[n:]; n > 0 {
		return n, nil
	}
	return 0, s.err
}

// whole reads everything there is.
func (s *strict) whole() {
	body, err := io.ReadAll(s.ReadCloser)
	if err == nil && len(bytes.TrimSpace(body)) > 0 {
		err = strictjson.Check(body, maxNesting)
	}
	if s.err = err; err == nil {
		s.ready, s.err = body, io.EOF
	}
}

// nextEvent reads up to the blank line that ends an event.
func (s *strict) nextEvent() {
	if s.lines == nil {
		s.lines = bufio.NewReader(s.ReadCloser)
	}
	var event, data []byte
	for {
		line, err := s.lines.ReadBytes('\n')
		event = append(event, line...)
		text := bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			data = append(append(data, value...), '\n')
		}
		if err == nil && len(text) > 0 {
			continue
		}
		if s.err = err; len(data) > 0 && (err == nil || err == io.EOF) {
			if wrong := strictjson.Check(data, maxNesting); wrong != nil {
				if err == nil { // else the line was cut, and what is left of it is nothing
					s.err = wrong
				}
				return
			}
		}
		s.ready = event
		return
	}
}
