package sqlstore_test

import (
	"fmt"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/history"
)

var viewTests = map[string]func(*Suite){
	"a view is its person's, or everybody's": viewsKept,
	"views have a limit and a name":          viewsLimited,
}

func view(u people.User, name, line string, columns ...string) history.View {
	return history.View{UserID: u.ID, Name: name, List: history.Requests, Line: line, Columns: columns}
}

// seen is what a person finds in the menu: owner, name and line of each view.
func (s *Suite) seen(u people.User) (found []history.View, text string) {
	s.Helper()
	found, err := s.Store.Views(s.ctx, u.ID)
	s.must(err)
	for _, v := range found {
		text += fmt.Sprint(v.Owner, " ", v.Name, " ", v.Line, " ", v.Columns, " ", v.Shared, "; ")
	}
	return found, text
}

func viewsKept(s *Suite) {
	ann, bob := s.user("ann"), s.user("bob")
	s.must(s.Store.SaveView(s.ctx, "ann", view(ann, "Quarter", "time:30d", "who", "rule"), 9))
	shared := view(bob, "Without four eyes", "four_eyes:no a\x00b")
	shared.Shared = true
	s.must(s.Store.SaveView(s.ctx, "bob", shared, 9))
	s.must(s.Store.SaveView(s.ctx, "bob", view(bob, "Mine", ""), 9))
	s.must(s.Store.SaveView(s.ctx, "ann", view(ann, "QUARTER", "time:90d"), 9)) // in place of the one of that name
	anns, text := s.seen(ann)
	if want := "ann QUARTER time:90d [] false; bob Without four eyes four_eyes:no a\uFFFDb [] true; "; text != want {
		s.Fatalf("ann sees %q, want %q", text, want)
	}
	if anns[0].At != s.Clock.Now() || anns[0].List != history.Requests {
		s.Errorf("kept %+v", anns[0])
	}
	s.is(s.Store.DeleteView(s.ctx, "ann", ann.ID, anns[1].ID, false), orchestrator.ErrNotFound)
	bobs, _ := s.seen(bob)
	s.is(s.Store.DeleteView(s.ctx, "ann", ann.ID, bobs[0].ID, true), orchestrator.ErrNotFound) // an admin removes shared ones only
	s.must(s.Store.DeleteView(s.ctx, "ann", ann.ID, anns[1].ID, true))
	s.must(s.Store.DeleteView(s.ctx, "ann", ann.ID, anns[0].ID, false))
	s.is(s.Store.DeleteView(s.ctx, "ann", ann.ID, anns[0].ID, false), orchestrator.ErrNotFound)
	if _, text = s.seen(ann); text != "" {
		s.Errorf("ann still sees %q", text)
	}
	if log := strings.Join(s.system(), "; "); !strings.HasSuffix(log, "view.shared bob; view.unshared ann") {
		s.Errorf("the stream system has %s", log)
	}
}

func viewsLimited(s *Suite) {
	ann := s.user("ann")
	for _, name := range []string{"one", "two"} {
		s.must(s.Store.SaveView(s.ctx, "ann", view(ann, name, ""), 2))
	}
	s.is(s.Store.SaveView(s.ctx, "ann", view(ann, "three", ""), 2), orchestrator.ErrExists)
	s.must(s.Store.SaveView(s.ctx, "ann", view(ann, "Two", "rule:core"), 2))
	for why, bad := range map[string]history.View{
		"no name": view(ann, " ", ""), "a long name": view(ann, strings.Repeat("x", 61), ""), "an invisible name": view(ann, "a\u202Eb", ""),
		"a long line": view(ann, "long", strings.Repeat("x", 2049)), "no list": {UserID: ann.ID, Name: "list"},
	} {
		if err := s.Store.SaveView(s.ctx, "ann", bad, 9); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
			s.Errorf("%s: %v", why, err)
		}
	}
}
