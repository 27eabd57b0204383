package sqlstore_test

import (
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

func findsDelegations(s *Suite) {
	task, other := s.task("Fix the retry loop"), s.task("Another")
	usd := 0.75
	make := func(task orchestrator.Task, name string, change func(d *orchestrator.Delegation)) *orchestrator.Delegation {
		s.Clock.Add(time.Minute)
		return s.delegation(task, func(d *orchestrator.Delegation) {
			d.To, d.Text, d.ParentID = "coder", name, "dlg_root"
			change(d)
		})
	}
	start := s.Clock.Now()
	root := make(task, "root", func(d *orchestrator.Delegation) {
		d.To, d.ParentID, d.Usage.USD, d.State = "kik", "", &usd, orchestrator.Waiting
	})
	make(task, "done", func(d *orchestrator.Delegation) { d.State, d.Repository = orchestrator.Completed, "app" })
	failed := make(task, "broken", func(d *orchestrator.Delegation) { d.State, d.HopKey = orchestrator.Failed, "2" })
	make(other, "else", func(d *orchestrator.Delegation) { d.ParentID, d.Requester, d.State = "", "bob", orchestrator.Expired })
	s.in(task.ID, func(tx orchestrator.Tx) error {
		tx.Task().RootID = root.ID
		for range 2 {
			s.must(tx.Append(s.ctx, event.Event{Type: event.DelegationRefused, DelegationID: root.ID, Data: event.Data(map[string]any{"code": "cycle", "message": "x"})}))
		}
		return tx.Append(s.ctx, event.Event{Type: event.Failed, DelegationID: failed.ID, Data: event.Data(map[string]any{"code": "exit", "message": "\x00"})})
	})
	for line, want := range map[string]string{
		"": "else broken done root", "state:failed": "broken", "state:failed,completed": "broken done", "state:live": "root", "state:wrong": "else broken", "-state:wrong": "done root",
		"agent:coder": "else broken done", "agent:coder,kik -state:failed": "else done root", "repository:app": "done", "-repository:app": "else broken root", "requester:bob": "else",
		"via:web": "else broken done root", "via:cli": "", "via:webhook": "", "-via:schedule": "else broken done root", "via:web,webhook": "else broken done root", "code:cycle": "root", "code:cycle,exit": "broken root", "-code:cycle agent:kik": "", "is:refused": "root", "-is:refused": "else broken done",
		"is:root": "else root", "is:root,refused": "else root", "cost:>0.5": "broken done root", "cost:>0.75": "", "-cost:>0.5": "else", "cost:..1 agent:coder": "broken done",
		"task:" + task.ID: "broken done root", "-task:" + task.ID: "else", "task:" + root.ID: "broken done root",
		"time:2026-07-02..": "", "time:.." + start.Add(2*time.Minute+time.Second).Format(time.RFC3339): "done root",
		"broken": "broken", "broken state:failed": "broken", "broken state:completed": "", "else time:2026-07-01": "else", "else time:2026-07-02..": "",
	} {
		q := s.parse(history.Delegations, line)
		var got []string
		for after := ""; ; {
			page, err := s.Store.List(s.ctx, orchestrator.Filter{Line: q, After: after, Limit: 2})
			s.must(err)
			for _, d := range page.Items {
				got = append(got, d.Text)
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if strings.Join(got, " ") != want {
			s.Errorf("%q: %q, want %q", line, got, want)
		}
		n, err := s.Store.HistoryCount(s.ctx, q, 100)
		if err != nil || n.N != int64(len(got)) {
			s.Errorf("%q: counted %+v, %v", line, n, err)
		}
	}
	for want, f := range map[string]orchestrator.Filter{
		"else":      {Line: s.parse(history.Delegations, "state:wrong"), RootsOnly: true},
		"root":      {Line: s.parse(history.Delegations, "via:web -requester:bob"), RootsOnly: true},
		"done":      {Line: s.parse(history.Delegations, "-state:failed"), Agent: "coder", Repository: "app"},
		"broken":    {Line: s.parse(history.Delegations, "-state:completed"), States: []orchestrator.State{orchestrator.Failed, orchestrator.Completed}},
		"else root": {Line: s.parse(history.Delegations, "time:2026-07-01"), RootsOnly: true},
	} {
		page, err := s.Store.List(s.ctx, f)
		s.must(err)
		var got []string
		for _, d := range page.Items {
			got = append(got, d.Text)
		}
		if strings.Join(got, " ") != want {
			s.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}

func findsEvents(s *Suite) {
	task, other := s.task("Fix"), s.task("Another")
	d := s.delegation(task)
	s.Clock.Add(time.Minute)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		for _, e := range []event.Event{
			{Type: event.Progress, Actor: "kik", Data: event.Data(map[string]any{"text": "Reading Upload/retry.go"})},
			{Type: event.DelegationRefused, Actor: "kik", Data: event.Data(map[string]any{"code": "cycle"})},
			{Type: event.Decided, Actor: "bob", Data: event.Data(map[string]any{"verdict": "approve"})},
			{Type: event.Decided, Actor: "rule:docs"},
			{Type: event.Failed, Actor: "kik", Data: event.Data(map[string]any{"code": "exit", "message": "it took 50% of \"all\" ÄRGER Иван 東京タワー ที่"})},
		} {
			e.DelegationID = d.ID
			s.must(tx.Append(s.ctx, e))
		}
		return nil
	})
	for line, want := range map[string]string{
		"":                      "delegation.failed approval.decided approval.decided delegation.refused delegation.progress task.created task.created",
		"type:approval.decided": "approval.decided approval.decided", "type:delegation.progress": "delegation.progress", "type:delegation.progress,delegation.failed": "delegation.failed delegation.progress",
		"-type:task.created,approval.decided": "delegation.failed delegation.refused delegation.progress", "approver:bob": "approval.decided", "-approver:bob type:approval.decided": "approval.decided",
		"approver:bob,rule:docs": "approval.decided approval.decided", "requester:ann": "task.created task.created", "requester:bob": "",
		"code:cycle": "delegation.refused", "code:cycle,exit": "delegation.failed delegation.refused", "code:cycle type:delegation.failed": "", "-code:cycle type:delegation.refused": "",
		"task:" + other.ID: "task.created", "-task:" + task.ID: "task.created", "task:" + task.ID + " approver:bob": "approval.decided",
		"retry": "delegation.progress", "upload RETRY": "delegation.progress", "50%": "delegation.failed", "retry code:exit": "", "ärger ИВАН": "delegation.failed", "rger": "delegation.failed", "argher": "", "東京": "delegation.failed", "ที่": "delegation.failed",
		"retry " + strings.Repeat("y/", 1010) + "y": "delegation.progress", "time:2026-07-02..": "", "time:2026-07-01 code:exit": "delegation.failed",
	} {
		q := s.parse(history.Events, line)
		var got []string
		seen := map[string]bool{}
		for after := ""; ; {
			page, err := s.Store.HistoryEvents(s.ctx, q, after, 2)
			s.must(err)
			for _, e := range page.Rows {
				got = append(got, e.Type)
				if seen[e.ID] || e.N == 0 || e.Hash == "" || e.At.IsZero() {
					s.Errorf("%q: event %+v", line, e)
				}
				seen[e.ID] = true
			}
			if after = page.Next; after == "" {
				break
			}
		}
		// Events of one moment have their ids in any order.
		words := strings.Fields(want)
		slices.Sort(words)
		slices.Sort(got)
		if !slices.Equal(got, words) {
			s.Errorf("%q: %q, want %q", line, got, words)
		}
		n, err := s.Store.HistoryCount(s.ctx, q, 100)
		if err != nil || n.N != int64(len(got)) {
			s.Errorf("%q: counted %+v, %v", line, n, err)
		}
	}
}
