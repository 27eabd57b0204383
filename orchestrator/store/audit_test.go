package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func now() time.Time { return time.Now() }

func TestEventsAreImmutable(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		newTask(t, s, 3)
		for _, text := range []string{"update events set data = '{}'", "delete from events", "update events set actor = 'x' where n = 1", "delete from events where n = 3"} {
			if err := s.Exec(t.Context(), text); err == nil || !strings.Contains(err.Error(), "immutable") {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

// TestTampering changes history as somebody with the database's password could.
func TestTampering(t *testing.T) {
	disarm := map[string][]string{
		"SQLite":     {"drop trigger events_no_update", "drop trigger events_no_delete"},
		"PostgreSQL": {"alter table events disable trigger all"},
	}
	for _, c := range []struct{ name, text, want string }{
		{"an edit", `update events set data = '{"text":"other"}' where n = 2`, "(%s n 2) was changed"},
		{"an edit of the actor", "update events set actor = 'bob' where n = 2", "(%s n 2) was changed"},
		{"a deletion", "delete from events where n = 2", "event 2 is missing"},
		{"a truncation", "delete from events where n > 3", "4 to 5 are missing"},
		{"a reorder", "update events set n = 102 where n = 2; update events set n = 2 where n = 3; update events set n = 3 where n = 102", "(%s n 2) does not follow"},
		{"a forged end", "update tasks set last_hash = 'x' where id <> 'system'", "history was written anew"},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, url string) {
				s := open(t, url)
				task, _ := newTask(t, s, 5)
				for _, text := range append(disarm[s.Dialect()], strings.Split(c.text, "; ")...) {
					if err := s.Exec(t.Context(), text); err != nil {
						t.Fatal(err)
					}
				}
				want := strings.ReplaceAll(c.want, "%s", task.ID)
				if err := s.VerifyTask(t.Context(), task.ID); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("verify: %v, want %q", err, want)
				}
				broken := 0
				if _, err := s.VerifyAll(t.Context(), func(string, error) { broken++ }); err != nil || broken != 1 {
					t.Errorf("verify all: %d broken, %v", broken, err)
				}
			})
		})
	}
}

func TestTamperingWithSeals(t *testing.T) {
	s := open(t, sqliteURL(t))
	sign := func([]byte) ([]byte, string) { return []byte("s"), "k" }
	check := func([]byte, []byte, string) error { return nil }
	for range 3 {
		newTask(t, s, 2)
		if made, err := s.Seal(t.Context(), sign); err != nil || !made {
			t.Fatal(made, err)
		}
	}
	if n, err := s.VerifySeals(t.Context(), check); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if err := s.Exec(t.Context(), "delete from checkpoints where pos = 4"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifySeals(t.Context(), check); err == nil || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("a removed checkpoint: %v", err)
	}
	if err := errors.Join(s.Exec(t.Context(), "delete from checkpoints"), s.Exec(t.Context(), "drop trigger events_no_update")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Seal(t.Context(), sign); err != nil {
		t.Fatal(err)
	}
	// A whole chain that was written anew is consistent in itself; only the seal tells.
	if err := s.Exec(t.Context(), "update events set hash = 'x' where pos = 6"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifySeals(t.Context(), check); err == nil || !strings.Contains(err.Error(), "not those that were sealed") {
		t.Errorf("history written anew: %v", err)
	}
}
