package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/trigger"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// fill sets every field that it can reach to something made of its own name, so that none of them can be lost or
// mixed up unseen. A type that holds itself ends after a dozen levels.
func fill(v reflect.Value, name string, levels int) {
	if levels == 0 {
		return
	}
	n := int64(len(name))
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 11, 23, 6, 50, int(n), 0, time.FixedZone("", 3600))))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":1}`))
		return
	case chain.Chain:
		v.Set(reflect.ValueOf(chain.New(3).With(chain.Step{From: "kik", To: "coder", Task: "<&>"})))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name + " <&>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Float64:
		v.SetFloat(float64(n) / 4)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name, levels-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name, levels-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, "key of "+name, levels-1)
		fill(value, name, levels-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), f.Name, levels-1)
			}
		}
	}
}

func filled[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), "it", 12)
	return v
}

// published are the shapes of the API, each of a domain value that has everything and of one that has nothing.
func published() map[string]any {
	handover, patch, landed := filled[approval.Request](), filled[approval.Request](), filled[approval.Request]()
	handover.Kind, patch.Kind, landed.Kind = approval.Handover, approval.Patch, approval.Patch
	patch.Handover, patch.Landed, patch.State = nil, "", approval.Pending
	action, question := filled[approval.Request](), filled[approval.Request]()
	action.Kind, action.Revision.Input, action.Action.Input = approval.Action, json.RawMessage(`{"command":"npm test"}`), nil
	question.Kind, question.Handover, question.Decisions[0].Verdict = approval.Question, nil, approval.Respond
	action.Handover = nil
	open := guard.Breaker{State: guard.Open, Failures: 3, OpenedAt: filled[time.Time](), Until: filled[time.Time](), Probe: "dlg_1", Reason: "no"}
	hook := filled[trigger.Status]()
	hook.Kind = trigger.Webhook
	e := approval.Electorate{}
	return map[string]any{
		"request_handover": shape(e, handover), "request_patch": shape(e, patch), "request_landed": shape(e, landed), "request_empty": shape(e, approval.Request{}),
		"request_action": shape(e, action), "request_question": shape(e, question),
		"delegation": shapeOf(filled[orchestrator.Delegation]()), "delegation_empty": shapeOf(orchestrator.Delegation{}),
		"budget": budgetOf(&budget.Account{Limits: budget.Limits{Agents: new(int)}, Exceeded: "tokens"}), "breaker": breakerOf(open),
		"trigger": triggerOf(filled[trigger.Status]()), "trigger_hook": triggerOf(hook), "trigger_empty": triggerOf(trigger.Status{}),
		"delivery": deliveryOf(filled[trigger.Delivery]()), "delivery_empty": deliveryOf(trigger.Delivery{}),
		"policy_trial": trialOf(filled[approval.Backtest](), filled[approval.CallTrial]()), "list": wire.ListOf([]string{"a"}, "b"), "list_empty": wire.ListOf[string](nil, ""),
	}
}

// What is published stays byte for byte what it was: programs of others read it.
func TestThePublishedDocumentsAreWhatTheyWere(t *testing.T) {
	for name, v := range published() {
		got, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + name + ".json"
		if *rewrite {
			if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(append(got, '\n'), want) {
			t.Errorf("%s is %s\nwant %s (%v)", name, got, want, err)
		}
	}
}

// The client loses nothing of what the server writes: it reads each document into the type that the server filled.
func TestTheClientReadsAllThatTheServerWrites(t *testing.T) {
	waits := filled[wire.Waits]()
	agent, hop, holds := filled[wire.Agent](), filled[wire.HopAnswer](), wire.ListOf([]retention.Hold{filled[retention.Hold]()}, "more")
	submitted, stopped, entry := filled[wire.Submitted](), filled[wire.Stopped](), filled[sharedctx.Entry]()
	all := published()
	for name, call := range map[string]struct {
		server any
		read   func(*client.Client) (any, error)
	}{
		"waits":  {waits, func(c *client.Client) (any, error) { a, err := c.Waits(t.Context(), "", 0); return a.Value, err }},
		"agents": {wire.ListOf([]wire.Agent{agent}, ""), func(c *client.Client) (any, error) { l, err := c.Agents(t.Context()); return l.List, err }},
		"hop": {hop, func(c *client.Client) (any, error) {
			a, err := c.CheckHop(t.Context(), "a", "b", "")
			return a.Value, err
		}},
		"holds": {holds, func(c *client.Client) (any, error) { l, err := c.Holds(t.Context(), true); return l.List, err }},
		"submitted": {submitted, func(c *client.Client) (any, error) {
			a, err := c.Submit(t.Context(), wire.Submission{})
			return a.Value, err
		}},
		"stopped": {stopped, func(c *client.Client) (any, error) {
			a, err := c.StopAll(t.Context(), wire.Stop{})
			return a.Value, err
		}},
		"entry": {entry, func(c *client.Client) (any, error) {
			a, err := c.Entry(t.Context(), "a", "b", false)
			return a.Value, err
		}},
		"policy": {all["policy_trial"], func(c *client.Client) (any, error) {
			a, err := c.PolicyTest(t.Context(), wire.PolicyTest{})
			return a.Value, err
		}},
		"trigger":  {all["trigger_hook"], func(c *client.Client) (any, error) { a, err := c.Trigger(t.Context(), "a"); return a.Value, err }},
		"delivery": {all["delivery"], func(c *client.Client) (any, error) { a, err := c.Delivery(t.Context(), "a"); return a.Value, err }},
		"patch":    {all["request_patch"], func(c *client.Client) (any, error) { a, err := c.Request(t.Context(), "a"); return a.Value, err }},
		"handover": {all["request_handover"], func(c *client.Client) (any, error) { a, err := c.Request(t.Context(), "a"); return a.Value, err }},
		"none":     {all["request_empty"], func(c *client.Client) (any, error) { a, err := c.Request(t.Context(), "a"); return a.Value, err }},
		"hops":     {all["delegation"], func(c *client.Client) (any, error) { a, err := c.Delegation(t.Context(), "a"); return a.Value, err }},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(call.server)
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(want) })) //nolint:errcheck
			defer srv.Close()
			c, err := client.New(srv.URL, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			read, err := call.read(c)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := json.Marshal(read); err != nil || !bytes.Equal(got, want) {
				t.Errorf("the client read %s (%v)\nof %s", got, err, want)
			}
		})
	}
}

// What the client sends is what the server reads, which takes no field that it does not know.
func TestTheServerTakesAllThatTheClientSends(t *testing.T) {
	for name, sent := range map[string]any{
		"submission": ptr(filled[wire.Submission]()), "verdict": ptr(filled[wire.Verdict]()), "hop": ptr(filled[wire.Hop]()), "stop": ptr(filled[wire.Stop]()),
		"hold": ptr(filled[wire.NewHold]()), "entry": ptr(filled[wire.NewEntry]()), "life": ptr(filled[wire.Life]()), "policy": ptr(filled[wire.PolicyTest]()),
		"sample": ptr(filled[wire.Sample]()), "said": ptr(filled[wire.Said]()), "question": ptr(filled[wire.HopQuestion]()), "fork": ptr(filled[wire.Fork]()),
	} {
		body, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(sent).Elem()).Interface()
		if err := decode(body, got); err != nil || !reflect.DeepEqual(got, sent) {
			t.Errorf("%s: the server read %+v (%v) of %s", name, got, err, body)
		}
	}
}

func ptr[T any](v T) *T { return &v }
