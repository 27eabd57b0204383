package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/web/wire"
)

// Timeout is how long a call waits for its answer when New is given no client.
// Await and streams, which are held open on purpose, are not cut by it.
const Timeout = 30 * time.Second

// maxAnswer is the largest answer that is read into memory; exports and diffs stream.
const maxAnswer = 64 << 20

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
	calls time.Duration
	agent string
	site  *atomic.Pointer[string] // where people open the server, as it says itself
}

// New returns a client of the server at base, such as http://127.0.0.1:8080, with a
// token ("" for none). A nil doer means one without a timeout of its own; each short
// call is then cut after Timeout.
func New(base, token string, doer *http.Client) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("the address %q is not one of a server: write http://HOST:PORT", base)
	}
	kept := *cmp.Or(doer, &http.Client{Transport: http.DefaultTransport})
	// A redirect could carry the token to another place; no route of the API has one.
	kept.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/api/v1")
	return &Client{base: base, token: token, http: &kept, calls: Timeout, agent: "gatehouse-cli/" + version(), site: &atomic.Pointer[string]{}}, nil
}

// version is the module's version, as the User-Agent shows it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// Base is the server's address, without /api/v1.
func (c *Client) Base() string { return c.base }

// Page is the address of a page of the server, for people: where the server says that they
// open it, which may be another host than the one that was asked, as a browser is signed in
// at one host only. Before its first answer that is not known.
func (c *Client) Page(path ...string) string {
	page := c.base
	if site := c.site.Load(); site != nil {
		page = *site
	}
	for _, p := range path {
		page += "/" + url.PathEscape(p)
	}
	return page
}

// learn keeps the site that an answer names, where it is the address of one.
func (c *Client) learn(site string) {
	u, err := url.Parse(site)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && site == u.Scheme+"://"+u.Host {
		c.site.Store(&site)
	}
}

// path joins escaped segments under /api/v1.
func path(segments ...string) string {
	p := "/api/v1"
	for _, s := range segments {
		p += "/" + url.PathEscape(s)
	}
	return p
}

// ask makes one call and decodes its answer. in is sent as JSON unless it is nil.
func ask[T any](ctx context.Context, c *Client, method, at string, query url.Values, in any) (Answer[T], error) {
	out, _, err := askStatus[T](ctx, c, method, at, query, in)
	return out, err
}

// list asks for a list that has one page.
func list[T any](ctx context.Context, c *Client, at string, query url.Values) (List[T], error) {
	page, err := ask[wire.List[T]](ctx, c, http.MethodGet, at, query, nil)
	return List[T]{List: page.Value, Raw: page.Raw}, err
}

// askStatus is ask with the status of the answer.
func askStatus[T any](ctx context.Context, c *Client, method, at string, query url.Values, in any) (Answer[T], int, error) {
	var out Answer[T]
	ctx, cancel := context.WithTimeoutCause(ctx, c.calls, errNoAnswer)
	defer cancel()
	res, err := c.do(ctx, method, at, query, in, "application/json")
	if err != nil {
		return out, 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return out, 0, c.unreachable(ctx, err)
	case res.StatusCode == http.StatusNoContent:
		return out, res.StatusCode, nil
	}
	out.Raw = body
	if err := json.Unmarshal(body, &out.Value); err != nil {
		return out, res.StatusCode, &Unreachable{Base: c.base, Err: fmt.Errorf("its answer is not Gatehouse's: %w", err)}
	}
	return out, res.StatusCode, nil
}

// do sends a request; every answer that is not 2xx comes back as an error.
func (c *Client) do(ctx context.Context, method, at string, query url.Values, in any, accept string) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	target := c.base + at
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	c.learn(res.Header.Get("Gatehouse-Site"))
	if res.StatusCode/100 != 2 {
		defer res.Body.Close()
		return nil, problem(res)
	}
	return res, nil
}

// stream copies an answer that may be long to w.
func (c *Client) stream(ctx context.Context, at string, query url.Values, w io.Writer, accept string) (http.Header, error) {
	res, err := c.do(ctx, http.MethodGet, at, query, nil, accept)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(w, res.Body); err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return res.Header, nil
}

var errNoAnswer = errors.New("no answer in time")

// unreachable tells an end that the caller wanted from a server that is away.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errNoAnswer) {
			return cause
		}
		err = cause
	}
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err // the address is named already, and the query is nobody's business
	}
	return &Unreachable{Base: c.base, Err: err}
}
