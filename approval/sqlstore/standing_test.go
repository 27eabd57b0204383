package sqlstore_test

import (
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
)

func standing(s *Suite) {
	var want []approval.Standing
	for i := range 3 {
		d := s.delegation(s.task("one"))
		for kind, change := range map[string]func(*approval.Request){
			"handed":   func(r *approval.Request) { r.Kind = approval.Handover },
			"undone":   func(r *approval.Request) { r.RevertOf = "apr_0" },
			"edited":   func(r *approval.Request) { r.Revision.Made = "edit" },
			"approved": func(r *approval.Request) { r.State = approval.Approved },
		} {
			s.Clock.Add(time.Millisecond)
			s.request(d, change, func(r *approval.Request) { r.Title = kind })
		}
		s.Clock.Add(time.Millisecond)
		r := s.request(d, func(r *approval.Request) {
			r.Revision.N, r.Revision.Base.Branch = 2, []string{"main", "next", "main"}[i]
			if i == 2 {
				r.Revision.Overtaken = &patch.Overtaken{Branch: "main", Why: "main moved"}
			}
		})
		want = append(want, approval.Standing{RequestID: r.ID, Repository: "app", Revision: 2, Base: r.Revision.Base, Overtaken: i == 2})
	}
	if got, err := s.Store.Standing(s.ctx); err != nil || !slices.Equal(got, want) {
		s.Errorf("on branches wait %+v, want %+v; %v", got, want, err)
	}
}
