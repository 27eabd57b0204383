package sqlstore_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/patch"
)

var delegationTests = map[string]func(*Suite){
	"a delegation comes back as it was made":             delegationComesBack,
	"the loser of a move learns that it lost":            moveLoser,
	"of many who move at once one wins":                  oneMoverWins,
	"the same hop is one child":                          sameHop,
	"a transaction has one copy of a row":                oneCopy,
	"children come in the order in which they were made": childOrder,
	"a run is found by its token while it lives":         runByToken,
}

func delegationComesBack(s *Suite) {
	task := s.task("one")
	now, usd := s.Clock.Now(), 1.25
	started, ended := now.Add(time.Second), now.Add(time.Minute)
	parent := s.delegation(task)
	want := &orchestrator.Delegation{
		ID: "dlg_1", TaskID: task.ID, ParentID: parent.ID, From: "kik", To: "coder", Text: "Fix it", State: orchestrator.Landing, Depth: 1,
		Chain: chain.New(0).With(chain.Step{From: "kik", To: "coder", Task: "Fix it"}), HopKey: "h1", Generation: 2, Repository: "app", Requester: "ann",
		Result: &agent.Result{Text: "done", Data: json.RawMessage(`{"score":1}`), Artifacts: []agent.Artifact{{Name: "Pack", Text: "x"}}, Commit: "c0ffee"},
		Error:  &agent.Failure{Code: "exit", Message: "It ended with 1."},
		Usage:  agent.Usage{InputTokens: 3, OutputTokens: 4, USD: &usd}, ApprovalID: "apr_1", Attempt: 2, Losses: 1, Holder: "one", LeaseUntil: ended,
		ReadyAt: started, OpenChildren: 3, TokenHash: "h", CreatedAt: now, StartedAt: &started, EndedAt: &ended, Since: started,
		Work: orchestrator.Work{Runs: 1, Session: orchestrator.Session{Memo: json.RawMessage(`{"step":2}`), RanFor: time.Minute},
			Base:   orchestrator.Base{Stand: orchestrator.Stand{BaseTree: "t"}, Shares: true},
			ToLand: orchestrator.ToLand{Land: &orchestrator.Order{RequestID: "apr_1", Approvers: []string{"bob"}, Intent: &patch.Intent{Ref: "refs/heads/main", Old: "a", New: "b", At: now}}}},
	}
	s.in(task.ID, func(tx orchestrator.Tx) error { return tx.Insert(s.ctx, want) })
	got, err := s.Store.Delegation(s.ctx, "dlg_1")
	s.must(err)
	if !reflect.DeepEqual(&got, want) {
		s.Errorf("got  %+v\nwant %+v", got, *want)
	}
	got = orchestrator.Delegation{ID: "dlg_1", State: orchestrator.Queued, Attempt: 2} // everything that may become empty
	s.in(task.ID, func(tx orchestrator.Tx) error { return tx.Move(s.ctx, &got, orchestrator.Landing, 2) })
	empty, err := s.Store.Delegation(s.ctx, "dlg_1")
	s.must(err)
	if empty.Result != nil || empty.Error != nil || empty.Usage != (agent.Usage{}) || empty.Holder != "" || !empty.LeaseUntil.IsZero() || empty.StartedAt != nil ||
		empty.EndedAt != nil || empty.Work.Land != nil || empty.TokenHash != "" || empty.Text != "Fix it" || empty.Chain.Depth() != 1 {
		s.Errorf("after a move: %+v", empty)
	}
}

func moveLoser(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	claim := func(tx orchestrator.Tx, state orchestrator.State, attempt int) error {
		mine := *d
		mine.State, mine.Attempt, mine.Holder = orchestrator.Running, attempt+1, "one"
		return tx.Move(s.ctx, &mine, state, attempt)
	}
	s.in(task.ID, func(tx orchestrator.Tx) error {
		s.is(claim(tx, orchestrator.Running, 0), orchestrator.ErrLost) // another state
		s.is(claim(tx, orchestrator.Queued, 1), orchestrator.ErrLost)  // another attempt
		s.must(claim(tx, orchestrator.Queued, 0))
		s.is(claim(tx, orchestrator.Queued, 0), orchestrator.ErrLost) // it was won already
		return nil
	})
	if got, err := s.Store.Delegation(s.ctx, d.ID); err != nil || got.State != orchestrator.Running || got.Attempt != 1 {
		s.Errorf("got %+v %v", got, err)
	}
	other := s.task("two")
	s.in(other.ID, func(tx orchestrator.Tx) error {
		s.is(claim(tx, orchestrator.Running, 1), orchestrator.ErrLost) // the row is not under this task's lock
		_, err := tx.Delegation(s.ctx, d.ID)
		s.is(err, orchestrator.ErrNotFound)
		return nil
	})
}

func oneMoverWins(s *Suite) {
	task := s.task("one")
	d := s.delegation(task)
	errs := together(30, func(i int) error {
		return s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
			mine := *d
			mine.State, mine.Attempt, mine.Holder = orchestrator.Running, 1, fmt.Sprint("node", i)
			return tx.Move(s.ctx, &mine, orchestrator.Queued, 0)
		})
	})
	if count(errs, nil) != 1 || count(errs, orchestrator.ErrLost) != 29 {
		s.Errorf("errors %v", errs)
	}
}

func sameHop(s *Suite) {
	task := s.task("one")
	parent := s.delegation(task)
	hop := func(i, generation int, parentID string) *orchestrator.Delegation {
		return &orchestrator.Delegation{ID: fmt.Sprintf("dlg_hop%d.%d.%s", i, generation, parentID), ParentID: parentID, To: "coder", State: orchestrator.Queued, HopKey: "coder:1", Generation: generation}
	}
	errs := together(10, func(i int) error {
		return s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error { return tx.Insert(s.ctx, hop(i, 0, parent.ID)) })
	})
	if count(errs, nil) != 1 || count(errs, orchestrator.ErrExists) != 9 {
		s.Fatalf("errors %v", errs)
	}
	s.in(task.ID, func(tx orchestrator.Tx) error {
		s.is(tx.Insert(s.ctx, hop(98, 0, parent.ID)), orchestrator.ErrExists) // and the transaction goes on
		s.must(tx.Insert(s.ctx, hop(99, 1, parent.ID)))                       // Retry makes a new generation
		children, err := tx.Children(s.ctx, parent.ID)
		if err != nil || len(children) != 2 {
			s.Errorf("%d children, %v", len(children), err)
		}
		// Roots have no parent: their hop keys do not meet.
		s.must(tx.Insert(s.ctx, hop(1, 0, "")))
		return tx.Insert(s.ctx, hop(2, 0, ""))
	})
}

func oneCopy(s *Suite) {
	task := s.task("one")
	made := s.delegation(task)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, made.ID)
		s.must(err)
		again, err := tx.Delegation(s.ctx, made.ID)
		s.must(err)
		tree, err := tx.Tree(s.ctx)
		s.must(err)
		if d != again || len(tree) != 1 || tree[0] != d {
			s.Error("the same row was read into different values")
		}
		d.State, d.Holder, d.Attempt = orchestrator.Running, "one", 1
		s.must(tx.Move(s.ctx, d, orchestrator.Queued, 0))
		if again.State != orchestrator.Running {
			s.Error("a move is not seen in the same transaction")
		}
		d.State = orchestrator.Completed
		s.is(tx.Move(s.ctx, d, orchestrator.Queued, 0), orchestrator.ErrLost)
		if fresh, err := tx.Delegation(s.ctx, made.ID); err != nil || fresh.State != orchestrator.Running {
			s.Errorf("after a lost move the row is read as it is: %+v %v", fresh, err)
		}
		return nil
	})
}

func childOrder(s *Suite) {
	task := s.task("one")
	root := s.delegation(task)
	var want []string
	s.in(task.ID, func(tx orchestrator.Tx) error {
		for i := range 20 { // all in one microsecond; ids alone would be in any order
			d := &orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, s.Clock.Now()), ParentID: root.ID, HopKey: fmt.Sprint(i), State: orchestrator.Queued}
			want = append(want, d.ID)
			s.must(tx.Insert(s.ctx, d))
		}
		return nil
	})
	s.in(task.ID, func(tx orchestrator.Tx) error {
		children, err := tx.Children(s.ctx, root.ID)
		s.must(err)
		for i, c := range children {
			if c.ID != want[i] {
				s.Errorf("child %d is %s, want %s", i, c.ID, want[i])
			}
		}
		return nil
	})
	tree, err := s.Store.Tree(s.ctx, task.ID)
	if err != nil || len(tree) != 21 || tree[0].ID != root.ID || tree[20].ID != want[19] {
		s.Errorf("tree of %d, %v", len(tree), err)
	}
}

func runByToken(s *Suite) {
	task := s.task("one")
	d := s.delegation(task, func(d *orchestrator.Delegation) {
		d.State, d.TokenHash, d.Holder = orchestrator.Running, "secret", "one"
	})
	if got, err := s.Store.RunByToken(s.ctx, "secret"); err != nil || got.ID != d.ID {
		s.Errorf("got %+v %v", got, err)
	}
	for _, hash := range []string{"", "other"} {
		_, err := s.Store.RunByToken(s.ctx, hash)
		s.is(err, orchestrator.ErrNotFound)
	}
	d.State = orchestrator.Failed
	s.in(task.ID, func(tx orchestrator.Tx) error { return tx.Move(s.ctx, d, orchestrator.Running, 0) })
	_, err := s.Store.RunByToken(s.ctx, "secret")
	s.is(err, orchestrator.ErrNotFound)
}
