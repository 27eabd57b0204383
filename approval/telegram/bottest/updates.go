package bottest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"
)

// How long a webhook that did not take an update is left alone, doubled each time. Telegram is slower.
const (
	firstAgain = 20 * time.Millisecond
	lastAgain  = time.Second
)

const otherPoller = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"

const longestPoll = 50 * time.Second

// queue is what people did and the bot has not acknowledged.
type queue struct {
	pending   []update
	nextID    int64
	poller    chan struct{} // closed when another one takes over
	hold      bool
	duplicate bool
	reorder   bool
	allowed   []string

	webhook   string // "" for none
	secret    string
	reach     string        // see Reach
	delivery  chan struct{} // closed to end the goroutine that posts to the webhook
	problem   string
	problemAt time.Time

	queries map[string]bool // of pressed buttons: whether somebody still waits
	answers map[string][]Answer
}

type update struct {
	id   int64
	kind string
	body []byte
}

// firstUpdate is the number of the first update; Telegram's begin anywhere.
const firstUpdate = 700001

func newQueue() queue {
	return queue{nextID: firstUpdate, queries: map[string]bool{}, answers: map[string][]Answer{}}
}

// DuplicateUpdates makes every update come twice from now on.
func (s *Server) DuplicateUpdates(on bool) { s.set(func() { s.duplicate = on }) }

// ReorderUpdates makes updates that wait together come newest first from now on. See Hold.
func (s *Server) ReorderUpdates(on bool) { s.set(func() { s.reorder = on }) }

// Hold keeps updates back until it is called with false, so that many come together.
func (s *Server) Hold(on bool) { s.set(func() { s.hold = on }) }

// Reach makes updates for a webhook go to this server, as in http://127.0.0.1:1234,
// instead of the public host of its address, with the same path.
func (s *Server) Reach(base string) { s.set(func() { s.reach = base }) }

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.poke()
}

// push adds an update of a kind with its content. s.mu is held.
func (s *Server) push(kind string, content object) {
	body, err := json.Marshal(object{"update_id": s.nextID, kind: content})
	if err != nil { // content is made of texts and numbers
		body = []byte(fmt.Sprintf(`{"update_id":%d}`, s.nextID))
	}
	s.pending = append(s.pending, update{id: s.nextID, kind: kind, body: body})
	s.nextID++
	s.poke()
}

// batch returns what is delivered next, as it is delivered. s.mu is held.
func (s *Server) batch(offset int64, limit int) []update {
	if s.hold {
		return nil
	}
	out := make([]update, 0, len(s.pending))
	for _, u := range s.pending[:min(limit, len(s.pending))] {
		if u.id < offset {
			continue
		}
		out = append(out, u)
		if s.duplicate {
			out = append(out, u)
		}
	}
	if s.reorder {
		slices.Reverse(out)
	}
	return out
}

// confirm forgets updates. s.mu is held.
func (s *Server) confirm(before int64) {
	s.pending = slices.DeleteFunc(s.pending, func(u update) bool { return u.id < before })
}

// allow takes a list of kinds over and drops others that wait. s.mu is held.
func (s *Server) allow(raw string) error {
	if raw == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(raw), &s.allowed); err != nil {
		return bad("can't parse allowed updates JSON object")
	}
	s.pending = slices.DeleteFunc(s.pending, func(u update) bool { return len(s.allowed) > 0 && !slices.Contains(s.allowed, u.kind) })
	return nil
}

// getUpdates waits for updates as long as it is told.
func (s *Server) getUpdates(ctx context.Context, in params) (any, error) {
	offset, err := in.number("offset")
	if err != nil {
		return nil, err
	}
	seconds, err := in.number("timeout")
	if err != nil {
		return nil, err
	}
	limit, err := in.number("limit")
	if err != nil {
		return nil, err
	}
	if limit < 1 || limit > 100 {
		limit = 100
	}
	me := make(chan struct{})
	s.mu.Lock()
	if s.webhook != "" {
		s.mu.Unlock()
		return nil, &refusal{code: http.StatusConflict, text: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}
	}
	if s.poller != nil {
		close(s.poller)
	}
	s.poller = me
	err = s.allow(in.values["allowed_updates"])
	s.confirm(offset)
	s.mu.Unlock()
	defer s.leave(me)
	if err != nil {
		return nil, err
	}
	return s.await(ctx, me, offset, int(limit), min(time.Duration(max(seconds, 0))*time.Second, longestPoll))
}

// leave ends being the one who polls.
func (s *Server) leave(me chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poller == me {
		s.poller = nil
	}
}

func (s *Server) await(ctx context.Context, me chan struct{}, offset int64, limit int, wait time.Duration) (any, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		found, changed := s.batch(offset, limit), s.changed
		s.mu.Unlock()
		if len(found) > 0 {
			bodies := make([]json.RawMessage, len(found))
			for i, u := range found {
				bodies[i] = u.body
			}
			return bodies, nil
		}
		select {
		case <-changed:
		case <-me:
			return nil, &refusal{code: http.StatusConflict, text: otherPoller}
		case <-timeout.C:
			return []json.RawMessage{}, nil
		case <-s.closing:
			return []json.RawMessage{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var secretShape = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

func (s *Server) setWebhook(in params) (any, error) {
	address, secret := in.values["url"], in.values["secret_token"]
	if address == "" {
		return s.deleteWebhook(in)
	}
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, bad("bad webhook: An HTTPS URL must be provided for webhook")
	}
	if secret != "" && !secretShape.MatchString(secret) {
		return nil, bad("secret token contains unallowed characters")
	}
	if err := s.allow(in.values["allowed_updates"]); err != nil {
		return nil, err
	}
	s.unhook()
	if in.yes("drop_pending_updates") {
		s.pending = nil
	}
	if s.poller != nil {
		close(s.poller)
		s.poller = nil
	}
	s.webhook, s.secret, s.problem, s.problemAt = address, secret, "", time.Time{}
	end := make(chan struct{})
	s.delivery = end
	s.wg.Go(func() { s.deliver(end) })
	return true, nil
}

func (s *Server) deleteWebhook(in params) (any, error) {
	s.unhook()
	if in.yes("drop_pending_updates") {
		s.pending = nil
	}
	return true, nil
}

// unhook ends the webhook. s.mu is held.
func (s *Server) unhook() {
	if s.delivery != nil {
		close(s.delivery)
		s.delivery = nil
	}
	s.webhook, s.secret = "", ""
}

func (s *Server) webhookInfo(params) (any, error) {
	info := object{"url": s.webhook, "has_custom_certificate": false, "pending_update_count": len(s.pending)}
	if s.problem != "" {
		info["last_error_date"], info["last_error_message"] = s.problemAt.Unix(), s.problem
	}
	return info, nil
}

// deliver posts updates to the webhook until end.
func (s *Server) deliver(end chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.wg.Go(func() {
		select {
		case <-end:
		case <-s.closing:
		case <-ctx.Done():
		}
		cancel()
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	pause := firstAgain
	for ctx.Err() == nil {
		s.mu.Lock()
		found, changed := s.batch(0, 100), s.changed
		address, secret := s.address(), s.secret
		s.mu.Unlock()
		var retry <-chan time.Time
		for _, u := range found {
			err := post(ctx, client, address, secret, u.body)
			s.posted(end, u, err)
			if err != nil {
				retry = time.After(pause)
				pause = min(2*pause, lastAgain)
				break
			}
			pause = firstAgain
		}
		if len(found) > 0 && retry == nil {
			continue
		}
		if retry != nil {
			changed = nil
		}
		select {
		case <-changed:
		case <-retry:
		case <-ctx.Done():
		}
	}
}

// address is where the webhook is reached. s.mu is held.
func (s *Server) address() string {
	u, err := url.Parse(s.webhook)
	if err != nil || s.reach == "" {
		return s.webhook
	}
	return s.reach + u.RequestURI()
}

// posted records how one delivery went. A webhook that was replaced meanwhile has no problems.
func (s *Server) posted(end chan struct{}, u update, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.delivery != end {
		return
	}
	if err != nil {
		s.problem, s.problemAt = err.Error(), s.now()
	} else {
		s.pending = slices.DeleteFunc(s.pending, func(p update) bool { return p.id == u.id })
	}
	s.poke()
}

func post(ctx context.Context, client *http.Client, address, secret string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if secret != "" {
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("wrong response from the webhook: %s", resp.Status)
	}
	return nil
}
