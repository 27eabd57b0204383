package orchestrator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/record/event"
)

// ledgers checks the budgets of one task, children before their callers.
type ledgers struct {
	*contest
	tree []orchestrator.Delegation
	over map[string]int64 // by how much a delegation passed its limit
}

// check compares an account with what the turns and the children say.
func (l *ledgers) check(d orchestrator.Delegation) error {
	a := d.Work.Budget
	if a == nil {
		return fmt.Errorf("%s has no account", d.To)
	}
	for _, n := range []int64{a.Used.Tokens, a.Settled.Tokens, a.Reserved.Tokens, a.Used.MicroUSD, a.Settled.MicroUSD, a.Reserved.MicroUSD, int64(a.Used.Time)} {
		if n < 0 {
			return fmt.Errorf("%s has an account below 0: %+v", d.To, a)
		}
	}
	own, last, since, err := l.used(d)
	if err != nil {
		return err
	}
	var settled, overdrawn int64
	for _, c := range l.tree {
		// A run that began anew on a base that moved, or after remarks, has the same account.
		if c.ParentID == d.ID && !c.CreatedAt.Before(since) {
			settled += c.Work.Budget.Spent().Tokens
			overdrawn += l.over[c.ID]
		}
	}
	lost := l.lost(d)
	if a.Used.Tokens < own || a.Used.Tokens > own+lost {
		return fmt.Errorf("%s (%s) used %d tokens, its turns %d, calls lost at most %d", d.To, d.ID, a.Used.Tokens, own, lost)
	}
	if a.Settled.Tokens != settled || a.Reserved.Tokens != 0 {
		return fmt.Errorf("%s (%s) has settled %d tokens of %d, and %d are still reserved", d.To, d.ID, a.Settled.Tokens, settled, a.Reserved.Tokens)
	}
	if a.Limits.Tokens == nil {
		return nil
	}
	l.over[d.ID] = max(a.Spent().Tokens-*a.Limits.Tokens, 0)
	if most := last + lost + overdrawn; l.over[d.ID] > most {
		return fmt.Errorf("%s (%s) used %d of %d tokens; its last call used %d, calls lost %d, and its children passed theirs by %d",
			d.To, d.ID, a.Spent().Tokens, *a.Limits.Tokens, last, lost, overdrawn)
	}
	return nil
}

// used is what a delegation's own run reported since it has its account, and the most of
// one report. The turns that a fork took over cost it nothing.
func (l *ledgers) used(d orchestrator.Delegation) (all, most int64, since time.Time, err error) {
	for _, e := range l.log(d.TaskID) {
		var data struct {
			Why   string `json:"why"`
			Input int64  `json:"input_tokens"`
			Out   int64  `json:"output_tokens"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return 0, 0, since, err
		}
		switch {
		case e.Type == event.Queued && data.Why == "run again" && e.DelegationID == d.ID:
			all, most, since = 0, 0, e.At // a retry has a new account
		case e.Type == event.UsageRecorded && e.DelegationID == d.ID:
			all += data.Input + data.Out
			most = max(most, data.Input+data.Out)
		}
	}
	return all, most, since, nil
}

// lost is the most that calls in flight may have cost when nodes were killed.
func (l *ledgers) lost(d orchestrator.Delegation) int64 {
	return l.p.lostBy(d.ID)
}

// files follows a conversation: numbers without gaps, every call with one result under an
// id of its own, every child told of once, reads that show what was written before and nothing else. It returns
// the files that there are at its end.
func (c *contest) files(d orchestrator.Delegation) (map[string]string, error) {
	there := map[string]string{}
	turns, err := c.said(d)
	if err != nil {
		return nil, err
	}
	m, err := mindOf(d.Text)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	var open []agent.Block
	for i, t := range turns {
		if t.N != i+1 {
			return nil, fmt.Errorf("turn %d of %s (%s) has the number %d", i+1, d.To, d.ID, t.N)
		}
		if len(open) > 0 && t.Message.Role != agent.FromTools {
			return nil, fmt.Errorf("turn %d of %s (%s) should have the results of %d calls", t.N, d.To, d.ID, len(open))
		}
		if t.Message.Role == agent.FromTools {
			if err := c.results(d, m, open, t, there); err != nil {
				return nil, err
			}
		}
		for _, id := range t.Children {
			if ids[id] {
				return nil, fmt.Errorf("%s (%s) is told twice of %s", d.To, d.ID, id)
			}
			ids[id] = true
			if err := c.brought(id, d, there); err != nil {
				return nil, err
			}
		}
		open = t.Message.Calls()
		for _, call := range open {
			if ids[call.ID] || call.ID == "" {
				return nil, fmt.Errorf("two calls of %s (%s) have the id %q", d.To, d.ID, call.ID)
			}
			ids[call.ID] = true
		}
	}
	if d.State == orchestrator.Completed && len(open) > 0 {
		return nil, fmt.Errorf("%s (%s) has completed with %d calls without a result", d.To, d.ID, len(open))
	}
	return there, nil
}

// results checks one message of results against its calls and the files.
func (c *contest) results(d orchestrator.Delegation, m mind, calls []agent.Block, t agent.Turn, there map[string]string) error {
	if len(t.Message.Blocks) != len(calls) {
		return fmt.Errorf("turn %d of %s (%s) has %d results of %d calls", t.N, d.To, d.ID, len(t.Message.Blocks), len(calls))
	}
	for i, b := range t.Message.Blocks {
		if b.ID != calls[i].ID || b.Type != agent.AnswerBlock {
			return fmt.Errorf("result %d of turn %d of %s (%s) is for %q, not %q", i, t.N, d.To, d.ID, b.ID, calls[i].ID)
		}
		var in struct{ Path, Content string }
		if json.Unmarshal(calls[i].Input, &in) != nil || in.Path == "" {
			continue
		}
		want, is := there[in.Path]
		own := strings.HasPrefix(in.Path, fmt.Sprintf("made/%d-", m.ID))
		switch {
		case b.Name == "write_file" && !b.IsError:
			there[in.Path] = in.Content
		case b.Name == "read_file" && is && !strings.HasPrefix(b.Text, strings.TrimSpace(want)):
			return fmt.Errorf("turn %d of %s (%s) reads %s as %q; it was written before", t.N, d.To, d.ID, in.Path, b.Text)
		case b.Name == "read_file" && !is && own && !b.IsError:
			return fmt.Errorf("turn %d of %s (%s) reads %s before it was written", t.N, d.To, d.ID, in.Path)
		}
	}
	return nil
}

// brought adds the files of a child that completed on the same checkout.
func (c *contest) brought(childID string, d orchestrator.Delegation, there map[string]string) error {
	child, err := c.store.Delegation(c.t.Context(), childID)
	if err != nil || child.State != orchestrator.Completed || !child.Work.Shares || child.Work.Tree == "" || child.To == "tool" {
		return err
	}
	if child.To == "reader" {
		return nil // what it changed is discarded
	}
	more, err := c.files(child)
	if err != nil {
		return err
	}
	for path, text := range more {
		there[path] = text
	}
	return nil
}

// landed checks that what landed of a task has the files of its conversation.
func (c *contest) landed(rootID string) error {
	d, err := c.store.Delegation(c.t.Context(), rootID)
	if err != nil || d.State != orchestrator.Completed || d.Repository == "" || d.To == "reader" {
		return err
	}
	there, err := c.files(d)
	if err != nil || len(there) == 0 {
		return err
	}
	task, err := c.store.Task(c.t.Context(), d.TaskID)
	if err != nil || d.Result == nil {
		return errors.Join(err, fmt.Errorf("%s (%s) has no result", d.To, d.ID))
	}
	commit := d.Result.Commit
	if commit == "" && task.ForkOf != "" {
		commit = "main" // what a fork repeats may have landed with the task that it was made of
	}
	if commit == "" {
		return fmt.Errorf("%s (%s) has %d files, and nothing of it landed", d.To, d.ID, len(there))
	}
	main := "\n" + c.git("ls-tree", "-r", "--name-only", commit) + "\n"
	for path := range there {
		if !strings.Contains(main, "\n"+path+"\n") {
			err = errors.Join(err, fmt.Errorf("%s (%s) landed without %s", d.To, d.ID, path))
		}
	}
	return err
}
