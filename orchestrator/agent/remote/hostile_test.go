package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/remote"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// raw answers a call with a JSON-RPC result.
func raw(w http.ResponseWriter, result string) bool {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"1","result":%s}`, result)
	return true
}

// What a system may answer that is not of the protocol. Each ends the run with a code.
func TestAnswersThatAreNotOfTheProtocol(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	for name, c := range map[string]struct{ on, result, code string }{
		"another task's state":  {getCall, `{"id":"other","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}`, agent.CodeProtocol},
		"a state of its own":    {getCall, `{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_DREAMING"}}`, agent.CodeProtocol},
		"a task without an id":  {sendCall, `{"task":{"id":"","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`, agent.CodeProtocol},
		"an id without end":     {sendCall, `{"task":{"id":"` + strings.Repeat("i", 300) + `","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`, agent.CodeProtocol},
		"parts that are null":   {getCall, `{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[null,{"artifactId":"a","parts":[null]}],"history":[null]}`, ""},
		"a text twice":          {getCall, `{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"fine","text":"not fine"}]}]}`, agent.CodeRemote},
		"a state in two cases":  {getCall, `{"id":"t1","status":{"state":"TASK_STATE_WORKING","State":"TASK_STATE_COMPLETED"}}`, agent.CodeRemote},
		"an answer too long":    {getCall, `{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"` + long + `"}]}]}`, agent.CodeOutput},
		"an answer without end": {getCall, `{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"` + strings.Repeat(long, 9) + `"}]}]}`, agent.CodeRemote},
	} {
		t.Run(name, func(t *testing.T) {
			e := system(t)
			e.card.Capabilities.Streaming = false
			e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
				switch call {
				case c.on:
					return raw(w, c.result)
				case sendCall:
					return raw(w, `{"task":{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`)
				}
				return false
			}
			_, err := run(t, remote.Options{}, e.job("x"), agenttest.NewHost())
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			failure(t, err, c.code)
			if len(err.Error()) > 1000 {
				t.Errorf("a sentence of %d bytes", len(err.Error()))
			}
		})
	}
}

// Nulls where the older version has parts, artifacts and results end no more than the run.
func TestNullsOfTheOlderVersion(t *testing.T) {
	task := func(rest string) string {
		return `{"kind":"task","id":"t1","contextId":"c","status":{"state":"completed"}` + rest + `}`
	}
	for _, result := range []string{`null`, `{}`, `[]`, `{"kind":"task"}`, `{"kind":"dream"}`, task(`,"artifacts":[null]`), task(`,"artifacts":[{"artifactId":"a","parts":[null]}]`),
		task(`,"history":[null]`), task(`,"history":[{"kind":"message","parts":[{"kind":"file","file":null}]}]`), `{"kind":"message","messageId":"m","role":"agent","parts":[null,{"kind":"data","data":null}]}`} {
		e := system(t)
		e.old, e.card.Capabilities.Streaming = true, false
		e.bend = func(w http.ResponseWriter, call string, _ []byte) bool { return call != "card" && raw(w, result) }
		_, err := run(t, remote.Options{}, e.job("x"), agenttest.NewHost())
		if f, failed := errors.AsType[*agent.Failure](err); err != nil && (!failed || f.Code != agent.CodeRemote && f.Code != agent.CodeProtocol) {
			t.Errorf("%s: %v", result, err)
		}
		if n := e.made("message/send"); n < 1 || n > 3 { // what may have arrived is not sent without end
			t.Errorf("%s: sent %d times", result, n)
		}
	}
}

// What is refused for good is not tried again, and what may have arrived not without end.
func TestRefusedForGood(t *testing.T) {
	for status, times := range map[int]int{400: 1, 401: 1, 403: 1, 404: 1, 500: 3, 504: 3} {
		e := system(t)
		e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
			if call == streamCall {
				http.Error(w, "no", status)
			}
			return call == streamCall
		}
		_, err := run(t, remote.Options{}, e.job("x"), agenttest.NewHost())
		failure(t, err, agent.CodeRemote, fmt.Sprint(status), "`token`")
		if n := e.made(streamCall); n != times {
			t.Errorf("%d: tried %d times", status, n)
		}
	}
}

// What comes by stream passes the same reader: an event that can be read in two ways ends
// the stream, and the task is asked for.
func TestAnEventThatCanBeReadInTwoWays(t *testing.T) {
	e := system(t)
	e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
		switch call {
		case streamCall, followCall:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, `data: {"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}`+"\n\n"+
				`data: {"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_WORKING","state":"TASK_STATE_COMPLETED"},`+
				`"artifacts":[{"artifactId":"a","parts":[{"text":"forged"}]}]}}}`+"\n\n")
			return true
		case getCall:
			return raw(w, `{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"asked for"}]}}}`)
		}
		return false
	}
	host := agenttest.NewHost()
	if res, err := run(t, remote.Options{}, e.job("x"), host); err != nil || res.Text != "asked for" {
		t.Fatalf("%q, %v", res.Text, err)
	}
}

// A stream that is cut after the acknowledgement, and servers that fail for a while, cost
// nothing: the task is asked for until it has ended, and it is sent once.
func TestACutStream(t *testing.T) {
	e := system(t)
	var asked atomic.Int32
	e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
		switch call {
		case streamCall, followCall:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, `data: {"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}`+"\n\n"+`data: {"jsonrpc":`)
			return true
		case getCall:
			switch n := asked.Add(1); {
			case n < 4:
				http.Error(w, "oh", http.StatusInternalServerError)
				return true
			case n < 6:
				return raw(w, `{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}`)
			}
			return raw(w, `{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"after all"}]}}}`)
		}
		return false
	}
	res, err := run(t, remote.Options{}, e.job("x"), agenttest.NewHost())
	if err != nil || res.Text != "after all" {
		t.Fatalf("%q, %v", res.Text, err)
	}
	if n := e.made(streamCall, sendCall); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// An agent that acknowledges and is never reached again fails the run, and the sentence
// says what is not known. A stream that says nothing is not waited for.
func TestAcknowledgedThenSilent(t *testing.T) {
	e := system(t)
	e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
		if call == getCall || call == followCall {
			http.Error(w, "gone", http.StatusBadGateway)
		}
		return call == getCall || call == followCall
	}
	_, err := run(t, remote.Options{Ack: func() time.Duration { return 400 * time.Millisecond }, Quiet: 50 * time.Millisecond}, e.job("hang"), agenttest.NewHost())
	failure(t, err, agent.CodeRemote, "out of reach for 400ms", "502", "not known")
	if len(e.cancels) != 1 {
		t.Error("it was not cancelled")
	}
}

// A silent stream of a task that has ended meanwhile: the next question finds out.
func TestASilentStream(t *testing.T) {
	e := system(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
		switch call {
		case streamCall:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, `data: {"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-over
			return true
		case getCall:
			return raw(w, `{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"history":[{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"long done"}]}]}`)
		}
		return false
	}
	if res, err := run(t, remote.Options{Quiet: 30 * time.Millisecond}, e.job("x"), agenttest.NewHost()); err != nil || res.Text != "long done" {
		t.Fatalf("%q, %v", res.Text, err)
	}
}

// The token goes to the configured address alone: neither a redirect nor an interface of
// the card takes it elsewhere.
func TestTheTokenStaysWithItsAddress(t *testing.T) {
	var caught atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { caught.Add(1) }))
	t.Cleanup(thief.Close)
	for name, bend := range map[string]func(e *elsewhere){
		"a card that leads away": func(e *elsewhere) {
			e.card.SupportedInterfaces = []*a2a.AgentInterface{a2a.NewAgentInterface(thief.URL, a2a.TransportProtocolJSONRPC)}
		},
		"a redirect of the card": func(e *elsewhere) {
			e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
				w.Header().Set("Location", thief.URL)
				w.WriteHeader(http.StatusFound)
				return true
			}
		},
		"a redirect of the message": func(e *elsewhere) {
			e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
				if call != "card" {
					w.Header().Set("Location", thief.URL)
					w.WriteHeader(http.StatusTemporaryRedirect)
				}
				return call != "card"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := system(t)
			bend(e)
			_, err := run(t, remote.Options{}, e.job("x"), agenttest.NewHost())
			failure(t, err, agent.CodeRemote, "`url`")
		})
	}
	if caught.Load() > 0 {
		t.Error("a request reached the other address")
	}
}

// An agent that repeats the token of the call gets it into no answer, progress or failure.
func TestNoAnswerHoldsTheToken(t *testing.T) {
	const token = "token-0123456789"
	task := func(state, rest string) string {
		return `{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_` + state + `","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"I have ` + token + `"}]}}` + rest + `}`
	}
	artifacts := `,"artifacts":[{"artifactId":"a","name":"` + token + `","parts":[{"text":"yours is ` + token + `"},{"data":{"t":"` + token + `"}}]}]`
	for state, rest := range map[string]string{"COMPLETED": artifacts, "FAILED": ""} {
		e := system(t)
		e.card.Capabilities.Streaming = false
		e.bend = func(w http.ResponseWriter, call string, _ []byte) bool {
			switch call {
			case getCall:
				return raw(w, task(state, rest))
			case sendCall:
				return raw(w, `{"task":`+task("WORKING", "")+`}`)
			}
			return false
		}
		host, job := agenttest.NewHost(), e.job("x")
		job.Agent.Token = token
		res, err := run(t, remote.Options{}, job, host)
		shown, _ := host.Shown()
		all := fmt.Sprintf("%+v %s %v %s %+v", res, res.Data, err, shown, host.Turns())
		if (err == nil) != (state == "COMPLETED") || strings.Contains(all, token) || strings.Count(all, "[token]") < 2 {
			t.Errorf("%s: %s", state, all)
		}
	}
}

// Look says what an agent is without giving it work.
func TestLook(t *testing.T) {
	e := system(t)
	card, err := remote.New(remote.Options{}).Look(context.Background(), e.job("").Agent)
	if err != nil || card.Name != "Far helper" || card.Version != "7" || !card.Streaming || len(card.Skills) != 1 {
		t.Errorf("%+v, %v", card, err)
	}
}
