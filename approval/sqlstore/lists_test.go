package sqlstore_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
)

var listTests = map[string]func(*Suite){
	"a list comes in pages, newest first": listPages,
	"a list can be filtered":              listFilters,
	"words are searched for":              listSearch,
	"a conversation is one person's":      listConversation,
	"agents have loads":                   loads,
}

// pages reads the whole list in pages of size n.
func pages(s *Suite, f orchestrator.Filter, n int) (ids []string) {
	s.Helper()
	f.Limit = n
	for {
		page, err := s.Store.List(s.ctx, f)
		s.must(err)
		if len(page.Items) > n {
			s.Fatalf("a page of %d, want at most %d", len(page.Items), n)
		}
		for _, d := range page.Items {
			ids = append(ids, d.ID)
		}
		if page.Next == "" {
			return ids
		}
		f.After = page.Next
	}
}

func listPages(s *Suite) {
	task := s.task("one")
	var want []string
	for range 25 {
		s.Clock.Add(time.Millisecond)
		want = append([]string{s.delegation(task).ID}, want...)
	}
	for _, n := range []int{1, 5, 7, 25, 100} {
		if got := pages(s, orchestrator.Filter{}, n); !slices.Equal(got, want) {
			s.Errorf("pages of %d: %v", n, got)
		}
	}
	if page, err := s.Store.List(s.ctx, orchestrator.Filter{Limit: 1000, After: "dlg_0"}); err != nil || len(page.Items) != 0 || page.Next != "" {
		s.Errorf("after the last: %+v %v", page, err)
	}
}

func listFilters(s *Suite) {
	task := s.task("one")
	start := s.Clock.Now()
	names := map[string]string{}
	parent := ""
	for i, state := range orchestrator.States() {
		s.Clock.Add(time.Minute)
		d := s.delegation(task, with(state, func(d *orchestrator.Delegation) {
			d.To, d.Repository, d.Requester = []string{"kik", "coder"}[i%2], []string{"app", ""}[i%2], []string{"ann", "bob"}[i/6]
			d.ParentID, d.HopKey = parent, fmt.Sprint(i)
		}))
		if parent == "" {
			parent = d.ID
		}
		names[d.ID] = string(state)
	}
	for _, c := range []struct {
		name string
		f    orchestrator.Filter
		want string
	}{
		{"one state", orchestrator.Filter{States: []orchestrator.State{orchestrator.Failed}}, "[failed]"},
		{"several states", orchestrator.Filter{States: []orchestrator.State{orchestrator.Queued, orchestrator.Landing, orchestrator.Failed}}, "[failed landing queued]"},
		{"an agent", orchestrator.Filter{Agent: "coder"}, "[expired failed landing checking running]"},
		{"an agent in states", orchestrator.Filter{Agent: "coder", States: []orchestrator.State{orchestrator.Failed, orchestrator.Running, orchestrator.Queued}}, "[failed running]"},
		{"a repository", orchestrator.Filter{Repository: "app", Requester: "bob"}, "[cancelled rejected completed]"},
		{"a requester", orchestrator.Filter{Requester: "bob"}, "[cancelled expired rejected failed completed]"},
		{"roots", orchestrator.Filter{RootsOnly: true}, "[queued]"},
		{"a period", orchestrator.Filter{From: start.Add(2 * time.Minute), To: start.Add(4 * time.Minute)}, "[waiting running]"},
		{"nobody", orchestrator.Filter{Agent: "%"}, "[]"},
	} {
		for _, size := range []int{1, 2, 50} {
			got := []string{}
			for _, id := range pages(s, c.f, size) {
				got = append(got, names[id])
			}
			if fmt.Sprint(got) != c.want {
				s.Errorf("%s in pages of %d: %v, want %s", c.name, size, got, c.want)
			}
		}
	}
}

// listConversation: only what that person sent in the chat, and no delegation below it.
func listConversation(s *Suite) {
	var want []string
	for i, c := range []struct{ via, user string }{{"chat", "usr_ann"}, {"web", "usr_ann"}, {"chat", "usr_bob"}, {"chat", "usr_ann"}, {"chat", "usr_ann"}} {
		s.Clock.Add(time.Millisecond)
		task := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, s.Clock.Now()), RootID: orchestrator.NewID(orchestrator.DelegationPrefix, s.Clock.Now()),
			Agent: "kik", Text: fmt.Sprint("message ", i), RequesterID: c.user, Requester: "ann", Via: origin.Parse(c.via)}
		_, _, err := s.Store.NewTask(s.ctx, task, func(tx orchestrator.Tx) error {
			return tx.Insert(s.ctx, &orchestrator.Delegation{ID: task.RootID, To: "kik", Text: task.Text, State: orchestrator.Queued, Requester: "ann"})
		})
		s.must(err)
		s.delegation(task, func(d *orchestrator.Delegation) { d.ParentID, d.HopKey = task.RootID, "below" })
		if c.via == "chat" && c.user == "usr_ann" {
			want = append([]string{task.RootID}, want...)
		}
	}
	for _, size := range []int{1, 2, 50} {
		if got := pages(s, orchestrator.Filter{Conversation: "usr_ann"}, size); !slices.Equal(got, want) {
			s.Errorf("in pages of %d: %v, want %v", size, got, want)
		}
	}
	if got := pages(s, orchestrator.Filter{Conversation: "usr_nobody"}, 50); len(got) != 0 {
		s.Errorf("a stranger's conversation: %v", got)
	}
}

func listSearch(s *Suite) {
	var many strings.Builder // 10,000 words
	for i := range 10_000 {
		fmt.Fprintf(&many, "fix%d/", i)
	}
	texts := []string{"Fix the flaky test in src/main.go", "Review the billing module", "fix the Übersetzung of 50% of users", "Nothing"}
	for i := range 12 {
		s.Clock.Add(time.Millisecond)
		s.delegation(s.task(fmt.Sprintf("%s #%d", texts[i%4], i)), func(d *orchestrator.Delegation) { d.To = []string{"kik", "coder"}[i/6] })
	}
	for _, c := range []struct {
		query string
		want  int
	}{
		{"fix", 6}, {"FIX the", 6}, {"billing", 3}, {"main.go", 3}, {"src main", 3}, {"Übersetzung", 3}, {"50%", 3}, {"fix billing", 0},
		{`"fix" OR *`, 0}, {`"fix"`, 6}, {"'; drop table tasks", 0}, {"fix NOT flaky", 0}, {"(", 12}, {"", 12}, {"\x00", 12},
		{strings.Repeat("fix/", 10_000), 6}, {many.String(), 0}, {"fix:* & the", 6}, {"fi:*", 0}, {"-fix", 6}, {"fix <-> the", 6}, {"🎉", 12}, {"fix 🎉", 6}, {"東京", 0},
		{"^fix", 6}, {"text:fix", 0}, {"NEAR(fix the)", 0}, {"of", 3}, {strings.Repeat("x", 5000), 0},
	} {
		if got := pages(s, orchestrator.Filter{Query: c.query}, 4); len(got) != c.want || !slices.IsSortedFunc(got, func(a, b string) int { return -cmp(a, b) }) {
			s.Errorf("%q: %d found, want %d, newest first: %v", c.query, len(got), c.want, got)
		}
	}
	if got := pages(s, orchestrator.Filter{Query: "fix", Agent: "coder", States: []orchestrator.State{orchestrator.Queued}}, 2); len(got) != 3 {
		s.Errorf("words with filters: %v", got)
	}
}

func cmp(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func loads(s *Suite) {
	task := s.task("one")
	early, late := s.Clock.Now(), s.Clock.Now().Add(time.Hour)
	for _, c := range []struct {
		agent string
		state orchestrator.State
		ended *time.Time
	}{
		{"kik", orchestrator.Waiting, nil}, {"kik", orchestrator.AwaitingApproval, nil}, {"kik", orchestrator.Queued, nil},
		{"coder", orchestrator.Running, nil}, {"coder", orchestrator.Landing, nil}, {"coder", orchestrator.Failed, &late}, {"coder", orchestrator.Completed, &early},
		{"reviewer", orchestrator.Completed, &early},
	} {
		s.delegation(task, with(c.state, func(d *orchestrator.Delegation) {
			d.To, d.EndedAt = c.agent, c.ended
			if c.state == orchestrator.Failed {
				d.Error = &agent.Failure{Code: "exit", Message: "It broke."}
			}
		}))
	}
	got, err := s.Store.Loads(s.ctx)
	s.must(err)
	var lines []string
	for _, l := range got {
		lines = append(lines, fmt.Sprint(l.Agent, l.Running, l.Queued, l.Waiting, l.LastError, l.LastAt != nil && l.LastAt.Equal(late)))
	}
	if fmt.Sprint(lines) != "[coder2 0 0It broke.true kik0 1 2false reviewer0 0 0false]" {
		s.Errorf("loads %q", lines)
	}
}
