//go:build kills

package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
)

// healed is for how long nothing at all may happen while something is still to come: longer
// than the longest pause between two tries of a landing. How long all of it takes is a
// matter of the machine, so what is bounded is only that it goes on.
const healed = 2 * time.Minute

// standstill tells when nothing has happened for a while.
type standstill struct {
	seen  string
	moved time.Time
}

// at takes what is seen now, and reports whether it has been the same for too long.
func (s *standstill) at(seen string) bool {
	if seen != s.seen || s.moved.IsZero() {
		s.seen, s.moved = seen, time.Now()
	}
	return time.Since(s.moved) > healed
}

// heals waits until every task has ended, and tells how far it is.
func (c *campaign) heals() {
	c.Helper()
	start := time.Now()
	var still standstill
	for told := (time.Time{}); ; time.Sleep(250 * time.Millisecond) {
		states := map[orchestrator.State]int{}
		var open []string
		for _, id := range c.sent {
			if root := c.Root(id); !root.State.Ended() {
				for _, d := range tree(c.Gate.Place, id) {
					if !d.State.Ended() {
						states[d.State]++
					}
				}
				open = append(open, id)
			}
		}
		if len(open) == 0 {
			c.Logf("all %d tasks have ended %s after the last kill; verdicts taken: %v", len(c.sent), time.Since(start).Round(time.Second), c.yeses)
			return
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			c.Logf("%s after the last kill: %d of %d tasks are open: %v", time.Since(start).Round(time.Second), len(open), len(c.sent), states)
		}
		if still.at(c.happened(open)) {
			c.stuck(open)
			return
		}
	}
}

// happened is what changes whenever something happens in one of these tasks.
func (c *campaign) happened(open []string) string {
	c.Helper()
	var events int64
	for _, id := range open {
		t, err := c.Store.Task(c.Context(), id)
		c.Must(err)
		events += t.LastN
	}
	return fmt.Sprint(len(open), events)
}

// stuck says what is known of tasks that did not end.
func (c *campaign) stuck(open []string) {
	c.Helper()
	for _, id := range open {
		for _, short := range tree(c.Gate.Place, id) {
			d, err := c.Store.Delegation(c.Context(), short.ID)
			c.Must(err)
			if d.State.Ended() {
				continue
			}
			c.Errorf("%s %s of task %s is %s since %s, held by %q until %s, due %s, attempt %d, losses %d: %s", d.To, d.ID, id, d.State,
				d.Since.Format(time.TimeOnly), d.Holder, d.LeaseUntil.Format(time.TimeOnly), d.ReadyAt.Format(time.TimeOnly), d.Attempt, d.Losses, d.Work.Problem)
		}
	}
}

// checkTold: what people said stands once with the delegation, and once in the conversation of a
// model that read it.
func (c *campaign) checkTold() {
	c.Helper()
	read := 0
	for id, text := range c.told {
		root, said, turns := c.Root(id), 0, 0
		for _, m := range root.Work.Said() {
			if m.Text != text {
				c.Errorf("%s was told %q, and keeps %q", id, text, m.Text)
			}
			if said++; m.ReadAt != nil {
				turns--
				read++
			}
		}
		all, err := c.Store.Turns(c.Context(), root.ID, root.Work.Runs)
		c.Must(err)
		for _, t := range all {
			turns += strings.Count(t.Message.Text(), text)
		}
		if said != 1 || turns != 0 {
			c.Errorf("%q to %s is kept %d times, and in its conversation %d times too often", text, id, said, turns)
		}
	}
	c.Logf("%d messages were told to models, of which %d were read", len(c.told), read)
}

// check holds what must be true when nothing is under way any more.
func (c *campaign) check() {
	c.Helper()
	c.checkTold()
	landed := map[string]string{} // by commit: the request
	for _, id := range c.sent {
		c.Events(id)
		for _, r := range c.Requests(id) {
			c.checkDecisions(r)
			if open := []approval.State{approval.Pending, approval.Approved, approval.ChangesRequested}; slices.Contains(open, r.State) {
				c.Errorf("request %s of task %s is %s", r.ID, id, r.State)
			}
			if (r.State == approval.Landed) != (r.Landed != "") {
				c.Errorf("request %s is %s and names the merge %q", r.ID, r.State, r.Landed)
			}
			if r.Landed != "" && landed[r.Landed] != "" {
				c.Errorf("%s and %s name the same merge", r.ID, landed[r.Landed])
			}
			if r.Landed != "" {
				landed[r.Landed] = r.ID
			}
		}
		for _, d := range tree(c.Gate.Place, id) {
			c.checkUsage(d)
		}
	}
	merges := strings.Fields(placetest.Git(c.T, c.Repo, "log", "--first-parent", "--merges", "--format=%H", "main"))
	for _, commit := range merges {
		if landed[commit] == "" {
			c.Errorf("no request names the merge %s:\n%s", commit, placetest.Git(c.T, c.Repo, "show", "--no-patch", commit))
		}
		delete(landed, commit)
	}
	for commit, id := range landed {
		c.Errorf("request %s names the merge %s, which main does not have", id, commit)
	}
	if dirty := placetest.Git(c.T, c.Repo, "status", "--porcelain"); dirty != "" {
		c.Errorf("the people's folder is not clean:\n%s", dirty)
	}
	c.Logf("%d merges on main, %d cards", len(merges), len(c.Bot.FromBot(placetest.Team)))
	c.checkCards()
	for _, n := range c.nodes {
		n.Stop()
	}
	c.NothingLeft(c.Data, filepath.Join(c.Dir, "two"))
}

// checkDecisions: a person decides once on a revision, and nobody after the close. Who said
// yes may still say no while others are asked, which closes the request. What landed has as
// many yeses of different people as its rule asks for.
func (c *campaign) checkDecisions(r approval.Request) {
	c.Helper()
	said := map[string]approval.Decision{}
	yes := map[string]bool{} // on the newest revision
	for _, d := range r.Decisions {
		key := fmt.Sprintf("%s, revision %d", d.User, d.Revision)
		if before, again := said[key]; again && (before.Verdict != approval.Approve || d.Verdict == approval.Approve) {
			c.Errorf("request %s has two decisions of %s: %s %s and %s %s", r.ID, key, before.Verdict, before.ID, d.Verdict, d.ID)
		}
		said[key] = d
		if d.Verdict == approval.Approve && d.Revision == r.Revision.N {
			yes[d.User] = true
		}
		if r.DecidedAt != nil && d.At.After(*r.DecidedAt) {
			c.Errorf("request %s was closed at %s and has a decision of %s", r.ID, r.DecidedAt.Format(time.RFC3339Nano), d.At.Format(time.RFC3339Nano))
		}
	}
	if r.State == approval.Landed && len(yes) != r.Rule.Need {
		c.Errorf("request %s landed with the yes of %v; its rule asks for %d", r.ID, slices.Sorted(maps.Keys(yes)), r.Rule.Need)
	}
}

// checkUsage: at least what the stored answers of a model cost is counted.
func (c *campaign) checkUsage(short orchestrator.Delegation) {
	c.Helper()
	d, err := c.Store.Delegation(c.Context(), short.ID)
	c.Must(err)
	var in, out int64
	for generation := range d.Work.Runs + 1 {
		turns, err := c.Store.Turns(c.Context(), d.ID, generation)
		c.Must(err)
		for _, t := range turns {
			in, out = in+t.Usage.InputTokens, out+t.Usage.OutputTokens
		}
	}
	if d.Usage.InputTokens < in || d.Usage.OutputTokens < out {
		c.Errorf("%s %s counts %d+%d tokens; its stored answers have %d+%d", d.To, d.ID, d.Usage.InputTokens, d.Usage.OutputTokens, in, out)
	}
}

// checkCards waits until no card asks any more: nothing is pending now.
func (c *campaign) checkCards() {
	c.Helper()
	var asking []string
	for still := (standstill{}); ; time.Sleep(250 * time.Millisecond) {
		asking = nil
		for _, m := range c.Bot.FromBot(placetest.Team) {
			for _, row := range m.Buttons {
				for _, b := range row {
					if strings.Contains(b.Text, "Approve") {
						asking = append(asking, fmt.Sprintf("message %d: %.200s", m.ID, m.Text))
					}
				}
			}
		}
		if len(asking) == 0 {
			return
		}
		if still.at(strings.Join(asking, "\n")) {
			break
		}
	}
	c.Error(errors.New("cards of ended requests still offer Approve:\n" + strings.Join(asking, "\n---\n")))
}
