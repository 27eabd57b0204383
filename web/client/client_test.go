package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/web/wire"
)

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	c, err := New(srv.URL+"/api/v1/", "gth_x", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnAddressMustBeOne(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://host", "http://", "::"} {
		if _, err := New(bad, "", nil); err == nil {
			t.Errorf("%q was taken as an address", bad)
		}
	}
}

func TestEveryCallSaysWhoAsks(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer gth_x" {
			t.Errorf("Authorization is %q", got)
		}
		if got := r.UserAgent(); !strings.HasPrefix(got, "gatehouse-cli/") {
			t.Errorf("User-Agent is %q; the server knows the channel cli by it", got)
		}
		if r.URL.EscapedPath() != "/api/v1/context/a%2Fb/c%20d" {
			t.Errorf("path is %s: names must not change the route", r.URL.EscapedPath())
		}
		io.WriteString(w, `{"namespace":"a/b","key":"c d","value":"v","later":1}`) //nolint:errcheck
	})
	e, err := c.Entry(t.Context(), "a/b", "c d", false)
	if err != nil || e.Value.Value != "v" {
		t.Fatalf("entry is %+v, %v", e, err)
	}
	if !strings.Contains(string(e.Raw), `"later":1`) {
		t.Errorf("the document is %s: a field that is not known was lost", e.Raw)
	}
}

func TestARefusalHasItsCode(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"title":"Conflict","status":409,"code":"superseded","detail":"Revision 3 replaced it."}`) //nolint:errcheck
	})
	_, err := c.Decide(t.Context(), "apr_1", wire.Verdict{Verdict: "approve", Digest: "aa"})
	var e *Error
	if !errors.As(err, &e) || e.Status != 409 || e.Code != "superseded" || e.Error() != "Revision 3 replaced it." {
		t.Fatalf("got %#v", err)
	}
}

func TestWhatIsNoGatehouse(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>hello") }, //nolint:errcheck
		"a cut":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, h).Delegation(t.Context(), "x")
			var away *Unreachable
			if !errors.As(err, &away) || !strings.Contains(err.Error(), "GATEHOUSE_URL") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a proxy's page", func(t *testing.T) {
		_, err := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<h1>secret</h1>", http.StatusBadGateway) }).Delegation(t.Context(), "x")
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v: another program's page is nobody's business", err)
		}
	})
	t.Run("an elsewhere", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
		})
		var e *Error
		if _, err := c.Delegation(t.Context(), "x"); !errors.As(err, &e) || e.Status != http.StatusFound {
			t.Errorf("got %v: a redirect must not carry the token away", err)
		}
	})
}

func TestEndingACallIsNotAnOutage(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Delegation(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	c.calls = 10 * time.Millisecond
	var away *Unreachable
	if _, err := c.Delegation(t.Context(), "x"); !errors.As(err, &away) {
		t.Errorf("got %v, want that the server did not answer in time", err)
	}
}

func TestListsAreReadPageByPage(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("after") {
		case "":
			io.WriteString(w, `{"items":[{"id":"3"},{"id":"2"}],"next":"2"}`) //nolint:errcheck
		case "2":
			io.WriteString(w, `{"items":[{"id":"1"}],"next":null}`) //nolint:errcheck
		}
	})
	l, err := c.Delegations(t.Context(), Filter{})
	if err != nil || len(l.Items) != 3 || l.Next != "" {
		t.Fatalf("got %+v, %v", l, err)
	}
	if string(l.Raw) != `{"items":[{"id":"3"},{"id":"2"},{"id":"1"}],"next":null}` {
		t.Errorf("joined pages are %s", l.Raw)
	}
	if l, err = c.Delegations(t.Context(), Filter{Limit: 2}); err != nil || len(l.Items) != 2 || l.Next != "2" {
		t.Errorf("two of three are %+v, %v", l, err)
	}
}

func TestNamesMayBeASentence(t *testing.T) {
	for text, want := range map[string]string{`["ann","bob"]`: "ann bob", `"only bob can"`: "only bob can", `""`: "", `null`: ""} {
		var n wire.Names
		if err := json.Unmarshal([]byte(text), &n); err != nil || strings.Join(n, " ") != want {
			t.Errorf("%s gives %q, %v", text, n, err)
		}
	}
}

// A log of 20 events over connections that are cut in the middle of an event, repeat
// what was sent, or go silent: each event comes once and in order.
func TestFollowingSurvivesCutConnections(t *testing.T) {
	var connection atomic.Int64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := connection.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		var after int
		fmt.Sscanf(r.URL.Query().Get("after"), "%d", &after) //nolint:errcheck
		if n == 3 {
			after = max(0, after-2) // a server that sends too much
		}
		fmt.Fprint(w, ": hello\nretry: 2000\n\n")
		for i := after + 1; i <= 20; i++ {
			fmt.Fprintf(w, "id: %d\nevent: delegation.progress\ndata: {\"n\":%d,\n", i, i)
			if n < 5 && i%4 == 0 && i > after+2 {
				http.NewResponseController(w).Flush() //nolint:errcheck
				if n == 2 {
					<-r.Context().Done() // silence
				}
				panic(http.ErrAbortHandler) // half an event was sent
			}
			fmt.Fprintf(w, "data: \"type\":\"delegation.progress\"}\n\nevent: message.delta\ndata: {\"type\":\"message.delta\"}\n\n")
		}
		http.NewResponseController(w).Flush() //nolint:errcheck
		<-r.Context().Done()
	})
	var got []int64
	var lost, stood int
	f := &Follower{Client: c, ID: "tsk_1", pause: time.Millisecond, quiet: 50 * time.Millisecond,
		Live: func(err error) {
			if err != nil {
				lost++
			} else {
				stood++
			}
		},
		Each: func(e Event) error {
			if e.Type == "message.delta" {
				return nil
			}
			if got = append(got, e.N); e.N == 20 {
				return ErrStop
			}
			return nil
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := f.Follow(ctx); err != nil {
		t.Fatal(err)
	}
	for i, n := range got {
		if n != int64(i+1) {
			t.Fatalf("events came as %v", got)
		}
	}
	if len(got) != 20 || lost < 3 || stood != lost+1 {
		t.Errorf("%d events, lost %d times, stood %d times", len(got), lost, stood)
	}
}

func TestARefusedStreamEnds(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	var e *Error
	if err := (&Follower{Client: c, Each: func(Event) error { return nil }}).Follow(t.Context()); !errors.As(err, &e) || e.Status != 403 {
		t.Errorf("got %v", err)
	}
}

func TestAwaitTellsDoneFromNotYet(t *testing.T) {
	status := http.StatusAccepted
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, `{"id":"dlg_1"}`) //nolint:errcheck
	})
	if _, done, err := c.Await(t.Context(), "dlg_1"); err != nil || done {
		t.Errorf("202 is done %v, %v", done, err)
	}
	status = http.StatusOK
	if _, done, err := c.Await(t.Context(), "dlg_1"); err != nil || !done {
		t.Errorf("200 is done %v, %v", done, err)
	}
}
