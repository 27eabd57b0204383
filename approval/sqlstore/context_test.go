package sqlstore_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/sharedctx"
)

var contextTests = map[string]func(*Suite){
	"K23 K24 K25 K28 K29 K30 a set replaces value, author and expiry": contextSet,
	"K31 K32 K33 reads are newest first and never expired":            contextReads,
	"K34 cleanup removes what has expired":                            contextCleanup,
	"K40 touch extends the life":                                      contextTouch,
	"K41 a prefix is literal":                                         contextPrefix,
	"K18 K19 K20 K21 names have limits, values do not need any":       contextLimits,
	"agents write inside their task's transaction":                    contextOfAgents,
	"K39 X7 a set with extension only pushes an expiry forward":       contextExtend,
	"K43 reading prolongs life and is no update":                      contextProlong,
	"K27 K31 K32 a run is given its own first, newest first":          contextGiven,
	"P21b who used an entry is recorded with the use":                 contextUses,
	"ten thousand entries":                                            contextMany,
	"namespaces are listed by name":                                   contextTopics,
}

// set writes as an agent would and moves the clock.
func (s *Suite) set(ns, key, value string, ttl time.Duration) sharedctx.Entry {
	s.Helper()
	e, err := sharedctx.New(s.Clock.Now(), ns, key, value, "coder", ttl)
	s.must(err)
	e, err = s.Store.Context("ann").Set(s.ctx, e)
	s.must(err)
	s.Clock.Add(time.Second)
	return e
}

func keys(entries []sharedctx.Entry, err error) string {
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Namespace+"/"+e.Key)
	}
	return fmt.Sprint(all)
}

func contextSet(s *Suite) {
	first := s.set("codebase", "k", "v1", time.Hour)
	e, err := sharedctx.New(s.Clock.Now(), "codebase", "k", "v2", "reviewer", 0)
	s.must(err)
	kept, err := s.Store.Context("ann").Set(s.ctx, e)
	s.must(err)
	got, err := s.Store.Context("").Get(s.ctx, "codebase", "k")
	s.must(err)
	for _, e := range []sharedctx.Entry{kept, got} {
		if e.Value != "v2" || e.Agent != "reviewer" || e.ExpiresAt != nil || !e.CreatedAt.Equal(first.CreatedAt) || !e.UpdatedAt.Equal(s.Clock.Now()) {
			s.Errorf("after the second set: %+v", e)
		}
	}
	errs := together(20, func(i int) error { // one statement, no check before it
		e, err := sharedctx.New(s.Clock.Now(), "race", "k", fmt.Sprint(i), "coder", 0)
		_, set := s.Store.Context("ann").Set(s.ctx, e)
		return errors.Join(err, set)
	})
	if count(errs, nil) != 20 {
		s.Errorf("twenty at once: %v", errs)
	}
	s.must(s.Store.Context("bob").Delete(s.ctx, "codebase", "k"))
	s.is(s.Store.Context("bob").Delete(s.ctx, "codebase", "k"), orchestrator.ErrNotFound)
	_, err = s.Store.Context("").Get(s.ctx, "codebase", "k")
	s.is(err, orchestrator.ErrNotFound)
	lines := s.system()
	if len(lines) != 23 || lines[0] != "context.written ann" || lines[22] != "context.deleted bob" {
		s.Errorf("system %q", lines)
	}
}

func contextReads(s *Suite) {
	ctx := s.Store.Context("")
	s.set("a", "1", "v", 0)
	s.set("a", "short", "v", 3*time.Second)
	s.set("b", "1", "v", 0)
	s.set("a", "2", "v", 0)
	s.set("a", "1", "again", 0)
	if got := keys(ctx.Query(s.ctx, "a", 0)); got != "[a/1 a/2]" {
		s.Errorf("after the short one expired: %s", got)
	}
	if got := keys(ctx.Query(s.ctx, "a", 1)); got != "[a/1]" {
		s.Errorf("limit 1: %s", got)
	}
	_, err := ctx.Get(s.ctx, "a", "short")
	s.is(err, orchestrator.ErrNotFound)
	// Reading deletes nothing: the row is still there to be cleaned up.
	if n, err := ctx.Cleanup(s.ctx, s.Clock.Now()); err != nil || n != 1 {
		s.Errorf("cleaned up %d, %v", n, err)
	}
}

func contextCleanup(s *Suite) {
	s.set("a", "1", "v", time.Minute)
	s.set("a", "2", "v", time.Hour)
	s.set("a", "3", "v", 0)
	for _, c := range []struct {
		later time.Duration
		want  int
	}{{0, 0}, {time.Minute, 1}, {50 * 365 * 24 * time.Hour, 1}, {50 * 365 * 24 * time.Hour, 0}} {
		if n, err := s.Store.Context("").Cleanup(s.ctx, s.Clock.Now().Add(c.later)); err != nil || n != c.want {
			s.Errorf("%s later: %d, %v", c.later, n, err)
		}
	}
}

func contextTouch(s *Suite) {
	ctx := s.Store.Context("ann")
	s.set("a", "1", "v", time.Minute)
	s.set("a", "2", "v", 0)
	e, err := ctx.Touch(s.ctx, "a", "1", 0)
	if err != nil || e.Value != "v" || e.Agent != "coder" || !e.ExpiresAt.Equal(s.Clock.Now().Add(90*24*time.Hour)) || !e.UpdatedAt.Equal(s.Clock.Now()) {
		s.Errorf("touched %+v %v", e, err)
	}
	if again, err := ctx.Touch(s.ctx, "a", "1", time.Second); err != nil || !again.ExpiresAt.Equal(*e.ExpiresAt) {
		s.Errorf("a touch shortened a life: %+v %v", again, err)
	}
	if e, err := ctx.Touch(s.ctx, "a", "2", time.Second); err != nil || e.ExpiresAt != nil {
		s.Errorf("what never expires got a life span: %+v %v", e, err)
	}
	s.Clock.Add(91 * 24 * time.Hour)
	_, err = ctx.Touch(s.ctx, "a", "1", 0)
	s.is(err, orchestrator.ErrNotFound) // a touch does not revive
}

func contextPrefix(s *Suite) {
	for _, key := range []string{"50%_a", "50%_b", "50x_a", "500_a", `50%\_a`, "Module:x", "module:y", "übung", "über"} {
		s.set("a", key, "v", 0)
	}
	for prefix, want := range map[string]string{
		"50%_": "[a/50%_b a/50%_a]", "50%": `[a/50%\_a a/50%_b a/50%_a]`, `50%\`: `[a/50%\_a]`, "module:": "[a/module:y]", "üb": "[a/über a/übung]", "%": "[]", "_": "[]",
	} {
		if got := keys(s.Store.Context("").Prefix(s.ctx, "a", prefix, 20)); got != want {
			s.Errorf("prefix %q: %s, want %s", prefix, got, want)
		}
	}
	if got := keys(s.Store.Context("").Prefix(s.ctx, "a", "50", 2)); got != `[a/50%\_a a/500_a]` {
		s.Errorf("limit 2: %s", got)
	}
}

func contextLimits(s *Suite) {
	wide := func(n int) string { return string(slices.Repeat([]rune{'ü'}, n)) }
	s.set(wide(64), wide(128), "", 0)
	s.set("a", "b", wide(100_000), 0)
	for _, e := range []sharedctx.Entry{{Namespace: wide(65), Key: "k", Agent: "a"}, {Namespace: "n", Key: wide(129), Agent: "a"}, {Namespace: "n", Key: "k", Agent: wide(65)}, {Namespace: "n", Key: "", Agent: "a"}} {
		if _, err := s.Store.Context("ann").Set(s.ctx, e); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
			s.Errorf("%d %d %d characters: %v", len([]rune(e.Namespace)), len([]rune(e.Key)), len([]rune(e.Agent)), err)
		}
	}
}

func contextOfAgents(s *Suite) {
	task := s.task("one")
	e, err := sharedctx.New(s.Clock.Now(), "a", "k", "v", "coder", 0)
	s.must(err)
	no := errors.New("no")
	s.is(s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
		_, err := tx.PutEntry(s.ctx, e)
		return errors.Join(err, no)
	}), no)
	_, err = s.Store.Context("").Get(s.ctx, "a", "k")
	s.is(err, orchestrator.ErrNotFound)
	s.in(task.ID, func(tx orchestrator.Tx) error {
		_, err := tx.PutEntry(s.ctx, e)
		return err
	})
	if got, err := s.Store.Context("").Get(s.ctx, "a", "k"); err != nil || got != e {
		s.Errorf("got %+v %v", got, err)
	}
	if lines := s.system(); len(lines) != 0 {
		s.Errorf("an agent's write is in the stream system: %q", lines)
	}
}
