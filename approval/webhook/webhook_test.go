package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAWebhookIsAChannel(t *testing.T) {
	for _, format := range []string{Slack, Standard} {
		t.Run(format, func(t *testing.T) {
			approvaltest.Channel(t, func(t *testing.T) approval.Channel {
				in := receive(t, httptest.NewServer, nil)
				target := Target{Name: "ops", URL: in.URL, Format: format, AllowPrivate: true}
				if format == Standard {
					target.Secret = testSecret
				}
				c, err := New(Options{Targets: []Target{target}, PublicURL: "https://gatehouse.example.com"})
				if err != nil {
					t.Fatal(err)
				}
				return c
			})
		})
	}
}

func TestEachTargetIsAnAddressOfItsOwn(t *testing.T) {
	a, b := receive(t, httptest.NewServer, nil), receive(t, httptest.NewServer, status(500))
	north, south := toHome(a.URL), toHome(b.URL)
	north.Name, south.Name = "north", "south"
	c := channel(t, home(), north, south)
	r := approvaltest.Request(approval.Pending)
	if got := c.Addresses(r, nil); !slices.Equal(got, []string{"north", "south"}) {
		t.Fatalf("addresses %v", got)
	}
	for _, to := range []string{"north", "south", "south"} {
		_, err := c.Deliver(t.Context(), approval.Card{RequestID: r.ID, Address: to}, r, approvaltest.View(r))
		if failed := to == "south" && len(b.messages()) == 1; (err != nil) != failed {
			t.Errorf("%s: %v", to, err)
		}
	}
	if len(a.messages()) != 1 || len(b.messages()) != 2 {
		t.Errorf("north had %d messages and south %d", len(a.messages()), len(b.messages()))
	}
}

func TestATargetThatLeftTheConfigurationIsGivenUp(t *testing.T) {
	c := channel(t, home())
	r := approvaltest.Request(approval.Pending)
	_, err := c.Deliver(t.Context(), approval.Card{RequestID: r.ID, Address: "old"}, r, approvaltest.View(r))
	if !approval.IsGone(err) {
		t.Errorf("err = %v", err)
	}
}

func TestARetryHasTheIDOfTheFirstAttempt(t *testing.T) {
	in := receive(t, httptest.NewServer, status(500, 502))
	r := approvaltest.Request(approval.Pending)
	for i := range 3 {
		// A new channel each time: another node, or after a restart.
		_, err := tell(t, channel(t, home(), toHome(in.URL)), r)
		if (err != nil) != (i < 2) {
			t.Fatalf("attempt %d: %v", i+1, err)
		}
	}
	list := in.messages()
	for _, m := range list {
		if id := m.header.Get("webhook-id"); id == "" || id != list[0].header.Get("webhook-id") || m.body != list[0].body {
			t.Errorf("attempt with id %q after %q", id, list[0].header.Get("webhook-id"))
		}
	}
	if len(list) != 3 {
		t.Errorf("%d attempts", len(list))
	}
}

// story is a request as it goes through all that people are told of.
func story() []approval.Request {
	var all []approval.Request
	r := approvaltest.Request(approval.Pending)
	r.Rule.Need = 2
	step := func(s approval.State, change func()) {
		r.Version++
		r.State = s
		change()
		r.Decisions = slices.Clone(r.Decisions)
		all = append(all, r)
	}
	settle := func() { at := noon.Add(time.Duration(r.Version) * time.Minute); r.DecidedAt = &at }
	vote := func(user string, v approval.Verdict) {
		r.Decisions = append(r.Decisions, approval.Decision{Revision: r.Revision.N, User: user, Channel: "telegram", Verdict: v,
			Comment: "see line 42", At: noon.Add(time.Duration(r.Version) * time.Minute)})
	}
	step(approval.Pending, func() {})
	step(approval.ChangesRequested, func() { vote("ann", approval.RequestChanges); settle() })
	step(approval.Pending, func() { r.Revision.N = 2; r.DecidedAt = nil })
	step(approval.Pending, func() { vote("bob", approval.Approve) })
	step(approval.Pending, func() { vote("bob", approval.Withdraw) })
	step(approval.Pending, func() { vote("bob", approval.Approve) })
	step(approval.Approved, func() { vote("ann", approval.Approve); settle() })
	step(approval.Stale, func() {})
	step(approval.Pending, func() { r.Revision.N = 3; r.DecidedAt = nil })
	step(approval.Approved, func() { vote("ann", approval.Approve); vote("bob", approval.Approve); settle() })
	step(approval.Landed, func() { r.Landed = strings.Repeat("4be1f02", 5) })
	step(approval.Reverted, func() {})
	return all
}

func TestEachChangeIsAMessageAndAVersionWithoutNewsIsNone(t *testing.T) {
	in := receive(t, httptest.NewServer, nil)
	c := channel(t, home(), toHome(in.URL))
	first := ""
	for _, r := range story() {
		for range 2 {
			id, err := tell(t, c, r)
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = id
			}
			r.Version++ // a reminder, or who asked for a revert
		}
	}
	var kinds []string
	ids := map[string]bool{}
	for _, m := range in.messages() {
		kinds = append(kinds, read(t, m).Type)
		ids[m.header.Get("webhook-id")] = true
	}
	want := []string{Requested, ChangesRequested, Revised, Decided, Decided, Decided, Decided, Stale, Revised, Decided, Landed, Reverted}
	if !slices.Equal(kinds, want) || len(ids) != len(want) {
		t.Errorf("%d ids for\n%v, want\n%v", len(ids), kinds, want)
	}
	if !ids[first] {
		t.Errorf("the card's id %q is that of no message", first)
	}
}

func TestAVersionWithoutNewsRepeatsTheIDAfterARestart(t *testing.T) {
	in := receive(t, httptest.NewServer, nil)
	r := approvaltest.Request(approval.Landed)
	for range 2 {
		if _, err := tell(t, channel(t, home(), toHome(in.URL)), r); err != nil {
			t.Fatal(err)
		}
		r.Version, r.RevertedBy = r.Version+1, "usr_ann"
	}
	list := in.messages()
	if len(list) != 2 || list[0].header.Get("webhook-id") != list[1].header.Get("webhook-id") {
		t.Errorf("%d messages; a receiver could not drop the double", len(list))
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	var m told
	for i := range maxTold + 50 {
		m.set("ops", fmt.Sprint(i), "msg")
	}
	if len(m.ids) != maxTold || len(m.order) != maxTold || m.last("ops", "0") != "" || m.last("ops", fmt.Sprint(maxTold+49)) != "msg" {
		t.Errorf("%d remembered, in order %d", len(m.ids), len(m.order))
	}
}

func TestAHangingReceiverEndsWithTheDelivery(t *testing.T) {
	release := make(chan struct{})
	in := receive(t, httptest.NewServer, nil)
	in.answer = hang(release)
	defer close(release)
	c := channel(t, home(), toHome(in.URL))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := approvaltest.Request(approval.Pending)
	_, err := c.Deliver(ctx, approval.Card{RequestID: r.ID, Address: "ops"}, r, approvaltest.View(r))
	if !errors.Is(err, context.DeadlineExceeded) || approval.IsGone(err) {
		t.Errorf("err = %v", err)
	}
}

func TestSecretsAreInNoLogAndNoError(t *testing.T) {
	in := receive(t, httptest.NewServer, nil)
	var log bytes.Buffer
	target := toHome(in.URL + "/services/T000/B000/hushhush?key=hushhush")
	c, err := New(Options{Targets: []Target{target}, PublicURL: "http://localhost:8080",
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	r := approvaltest.Request(approval.Pending)
	if _, err := tell(t, c, r); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "target", target)
	fmt.Fprintf(&log, "%v %+v %#v %v\n", target, target, target, Options{Targets: []Target{target}})
	said := log.String()
	for name, answer := range misbehaviours() {
		in.answer = answer
		r.Version, r.Revision.N = r.Version+1, r.Revision.N+1
		_, err := tell(t, c, r)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		said += err.Error() + "\n"
		for e := err; e != nil; e = errors.Unwrap(e) {
			said += e.Error() + "\n"
		}
	}
	in.Close()
	r.Revision.N++
	if _, err = tell(t, c, r); err == nil {
		t.Fatal("told nobody")
	}
	said += err.Error()
	for _, secret := range []string{"hushhush", "B000", testSecret[6:]} {
		if strings.Contains(said, secret) {
			t.Errorf("%s was said:\n%s", secret, said)
		}
	}
	if !strings.Contains(said, "webhook=ops") || !strings.Contains(said, "127.0.0.1") {
		t.Errorf("who was told, or where it failed, was not said:\n%s", said)
	}
}
