package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/sharedctx"
)

const life = 24 * time.Hour

func contextExtend(s *Suite) {
	ctx := s.Store.Context("ann")
	extend := func(key, value string, ttl time.Duration) sharedctx.Entry {
		s.Helper()
		e, err := sharedctx.New(s.Clock.Now(), "memory:coder", key, value, "coder", ttl)
		s.must(err)
		e, err = ctx.Extend(s.ctx, e)
		s.must(err)
		return e
	}
	if e := extend("new", "v", sharedctx.ExtensionTTL); !e.ExpiresAt.Equal(s.Clock.Now().Add(90 * life)) {
		s.Errorf("a new one expires %s", e.ExpiresAt)
	}
	s.set("memory:coder", "soon", "v", time.Hour)
	if e := extend("soon", "v2", 2*time.Hour); e.Value != "v2" || !e.ExpiresAt.Equal(s.Clock.Now().Add(2*time.Hour)) {
		s.Errorf("an existing one: %+v", e)
	}
	if e := extend("soon", "v3", time.Second); e.Value != "v3" || !e.ExpiresAt.Equal(s.Clock.Now().Add(2*time.Hour)) {
		s.Errorf("the expiry moved back: %+v", e)
	}
	s.set("memory:coder", "stays", "v", 0)
	if e := extend("stays", "v2", time.Hour); e.Value != "v2" || e.ExpiresAt != nil {
		s.Errorf("what never expires: %+v", e)
	}
	s.Clock.Add(3 * time.Hour)
	if e := extend("soon", "v4", time.Hour); !e.ExpiresAt.Equal(s.Clock.Now().Add(time.Hour)) {
		s.Errorf("one that had expired: %+v", e)
	}
	if e := extend("soon", "v5", 0); e.ExpiresAt != nil {
		s.Errorf("extended for ever: %+v", e)
	}
	if _, err := ctx.Extend(s.ctx, sharedctx.Entry{Namespace: "n", Key: "a\x00", Agent: "a"}); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
		s.Errorf("a NUL in a key: %v", err)
	}
}

func contextProlong(s *Suite) {
	ctx := s.Store.Context("")
	one, two := s.set("memory:coder", "one", "v", time.Hour), s.set("memory:coder", "two", "v", 0)
	long := s.set("memory:coder", "long", "v", 100*life)
	gone := s.set("memory:coder", "gone", "v", time.Second)
	task := s.task("one")
	s.in(task.ID, func(tx orchestrator.Tx) error {
		return tx.Prolong(s.ctx, []sharedctx.Entry{one, two, long, gone}, tx.Now().Add(sharedctx.ExtensionTTL))
	})
	for key, want := range map[string]*time.Time{"one": new(s.Clock.Now().Add(90 * life)), "two": nil, "long": long.ExpiresAt} {
		e, err := ctx.Get(s.ctx, "memory:coder", key)
		if err != nil || (e.ExpiresAt == nil) != (want == nil) || want != nil && !e.ExpiresAt.Equal(*want) {
			s.Errorf("%s: %+v %v, want %v", key, e, err, want)
		}
	}
	if e, err := ctx.Get(s.ctx, "memory:coder", "one"); err != nil || !e.UpdatedAt.Equal(one.UpdatedAt) {
		s.Errorf("a read made the entry newer: %+v %v", e, err)
	}
	_, err := ctx.Get(s.ctx, "memory:coder", "gone")
	s.is(err, orchestrator.ErrNotFound)
}

// given is what a run of coder in the task T would be given.
func (s *Suite) given(total int, reads []string) string {
	s.Helper()
	return keys(s.Store.Given(s.ctx, sharedctx.Rights{Agent: "coder", TaskID: "T", Reads: reads}, total))
}

func contextGiven(s *Suite) {
	for _, at := range []string{"memory:coder/m", "a/1", "handoff:T/brief", "handoff:other/brief", "memory:helper/secret", "b/1", "coder/delegation:helper:1-x", "a/2", "kik/delegation:coder:2-y", "coder/note"} {
		ns, key, _ := strings.Cut(at, "/")
		s.set(ns, key, "v", 0)
	}
	s.set("a", "short", "v", time.Millisecond)
	for _, c := range []struct {
		what  string
		reads []string
		total int
		want  string
	}{
		{"all", nil, 10, "[coder/note handoff:T/brief memory:coder/m a/2 b/1 a/1]"},
		{"no more than asked for, own first", nil, 4, "[coder/note handoff:T/brief memory:coder/m a/2]"},
		{"nothing else", []string{}, 10, "[coder/note handoff:T/brief memory:coder/m]"},
		{"one namespace", []string{"b"}, 10, "[coder/note handoff:T/brief memory:coder/m b/1]"},
		{"two namespaces", []string{"b", "a"}, 10, "[coder/note handoff:T/brief memory:coder/m a/2 b/1 a/1]"},
		{"twice the same", []string{"b", "b"}, 10, "[coder/note handoff:T/brief memory:coder/m b/1]"},
		{"another's memory by name", []string{"memory:helper"}, 10, "[coder/note handoff:T/brief memory:coder/m memory:helper/secret]"},
		{"another task's hand-over by name", []string{"handoff:other"}, 10, "[coder/note handoff:T/brief memory:coder/m]"},
		{"a name that no namespace has", []string{"x\x00", "%"}, 10, "[coder/note handoff:T/brief memory:coder/m]"},
	} {
		if got := s.given(c.total, c.reads); got != c.want {
			s.Errorf("%s: given %s, want %s", c.what, got, c.want)
		}
	}
}

func contextUses(s *Suite) {
	s.set("a", "k", "v", 0)
	task := s.task("one")
	d := s.delegation(task)
	use := func(kind sharedctx.Kind, by, key string) sharedctx.Use {
		return sharedctx.Use{Namespace: "a", Key: key, Kind: kind, Agent: by, DelegationID: d.ID}
	}
	fresh := func(uses ...sharedctx.Use) (n int) {
		s.in(task.ID, func(tx orchestrator.Tx) error {
			found, err := tx.NoteUses(s.ctx, uses)
			n = len(found)
			return err
		})
		return n
	}
	if n := fresh(use(sharedctx.Read, "coder", "k"), use(sharedctx.Read, "coder", "k2"), use(sharedctx.Read, "coder", "k")); n != 2 {
		s.Errorf("%d of three reads were new, want 2", n)
	}
	if n := fresh(use(sharedctx.Read, "coder", "k")); n != 0 { // coalesced by delegation and key
		s.Errorf("a read again was new")
	}
	for range 2 { // writes are never coalesced: the last one wins, both are on record
		if n := fresh(use(sharedctx.Write, "coder", "k")); n != 1 {
			s.Errorf("%d of one write", n)
		}
	}
	no := errors.New("no")
	s.is(s.Store.InTask(s.ctx, task.ID, func(tx orchestrator.Tx) error {
		_, err := tx.NoteUses(s.ctx, []sharedctx.Use{use(sharedctx.Touch, "coder", "k")})
		return errors.Join(err, no)
	}), no)
	_, err := s.Store.Context("bob").Touch(s.ctx, "a", "k", 0)
	s.must(err)
	s.must(s.Store.Context("bob").Delete(s.ctx, "a", "k"))
	history := func(before int64, limit int) (lines []string, last int64) {
		found, err := s.Store.Context("").Uses(s.ctx, "a", "k", before, limit)
		s.must(err)
		for _, u := range found {
			lines, last = append(lines, fmt.Sprint(u.Kind, " ", u.Agent)), u.N
			if (u.DelegationID == d.ID) != (u.Agent == "coder") || (u.TaskID == task.ID) != (u.Agent == "coder") || u.At.IsZero() {
				s.Errorf("use %+v", u)
			}
		}
		return lines, last
	}
	page, last := history(0, 3)
	rest, _ := history(last, 10)
	if got := fmt.Sprint(page, rest); got != "[delete bob touch bob write coder] [write coder read coder write ann]" {
		s.Errorf("history %s", got)
	}
	s.Clock.Add(sharedctx.KeepUses + time.Hour)
	s.set("a", "k2", "v", 0) // k2 lives, k is gone
	_, err = s.Store.Context("").Cleanup(s.ctx, s.Clock.Now())
	s.must(err)
	if gone, _ := history(0, 10); len(gone) != 0 {
		s.Errorf("the uses of what is long gone stay: %q", gone)
	}
	if kept, err := s.Store.Context("").Uses(s.ctx, "a", "k2", 0, 10); err != nil || len(kept) != 2 {
		s.Errorf("the uses of what lives: %+v %v", kept, err)
	}
}

func contextMany(s *Suite) {
	const n = 10_000
	task := s.task("many")
	s.in(task.ID, func(tx orchestrator.Tx) error {
		var uses []sharedctx.Use
		for i := range n {
			e, err := sharedctx.New(tx.Now(), fmt.Sprintf("ns%d", i%500), fmt.Sprintf("k%04d", i), "v", "kik", time.Hour)
			s.must(err)
			if _, err := tx.PutEntry(s.ctx, e); err != nil {
				return err
			}
			uses = append(uses, sharedctx.Use{Namespace: e.Namespace, Key: e.Key, Kind: sharedctx.Read, Agent: "kik", DelegationID: "dlg_x"})
		}
		fresh, err := tx.NoteUses(s.ctx, uses)
		if len(fresh) != n {
			s.Errorf("%d of %d reads are new", len(fresh), n)
		}
		return err
	})
	found, err := s.Store.Given(s.ctx, sharedctx.Rights{Agent: "coder", TaskID: "T"}, 200)
	if err != nil || len(found) != 200 {
		s.Errorf("given %d of %d, %v", len(found), n, err)
	}
	for limit, want := range map[int]int{0: 20, 7: 7, 1 << 40: 20} {
		if got, err := s.Store.Context("").Query(s.ctx, "ns7", limit); err != nil || len(got) != want {
			s.Errorf("limit %d gives %d, %v", limit, len(got), err)
		}
	}
	if got, err := s.Store.Context("").Cleanup(s.ctx, s.Clock.Now().Add(2*time.Hour)); err != nil || got != n {
		s.Errorf("cleaned up %d, %v", got, err)
	}
}

func contextTopics(s *Suite) {
	for _, ns := range []string{"b_x", "a", "bax", "B_x", "memory:coder"} {
		s.set(ns, "1", "v", 0)
	}
	last := s.set("a", "2", "v", 0)
	s.set("short", "1", "v", time.Millisecond)
	names := func(prefix, after string, limit int) string {
		found, err := s.Store.Context("").Topics(s.ctx, prefix, after, limit)
		s.must(err)
		var all []string
		for _, topic := range found {
			all = append(all, fmt.Sprintf("%s %d", topic.Namespace, topic.Entries))
			if topic.Namespace == "a" && !topic.UpdatedAt.Equal(last.UpdatedAt) {
				s.Errorf("newest of a: %s", topic.UpdatedAt)
			}
		}
		return fmt.Sprint(all)
	}
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          string
	}{
		{"", "", 0, "[B_x 1 a 2 b_x 1 bax 1 memory:coder 1]"}, {"", "a", 2, "[b_x 1 bax 1]"}, {"b_", "", 0, "[b_x 1]"}, {"%", "", 0, "[]"}, {"a\x00", "", 0, "[]"},
	} {
		if got := names(c.prefix, c.after, c.limit); got != c.want {
			s.Errorf("%q after %q: %s, want %s", c.prefix, c.after, got, c.want)
		}
	}
}
