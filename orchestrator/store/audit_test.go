package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store"
)

func now() time.Time { return time.Now() }

func TestEventsAreImmutable(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		newTask(t, s, 3)
		for _, text := range []string{"update events set data = '{}'", "delete from events", "update events set actor = 'x' where n = 1", "delete from events where n = 3"} {
			if err := s.Spoil(t.Context(), text); err == nil || !strings.Contains(err.Error(), "immutable") {
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
					if err := s.Spoil(t.Context(), text); err != nil {
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
	if err := s.Spoil(t.Context(), "delete from checkpoints where pos = 4"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifySeals(t.Context(), check); err == nil || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("a removed checkpoint: %v", err)
	}
	if err := errors.Join(s.Spoil(t.Context(), "delete from checkpoints"), s.Spoil(t.Context(), "drop trigger events_no_update")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Seal(t.Context(), sign); err != nil {
		t.Fatal(err)
	}
	// A whole chain that was written anew is consistent in itself; only the seal tells.
	if err := s.Spoil(t.Context(), "update events set hash = 'x' where pos = 6"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifySeals(t.Context(), check); err == nil || !strings.Contains(err.Error(), "not those that were sealed") {
		t.Errorf("history written anew: %v", err)
	}
}

// TestOnlyDroppingIsAllowed: of an event nothing but its data may be replaced, by its
// digest, once, and not while the task lives or is held. The database itself refuses.
func TestOnlyDroppingIsAllowed(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		task, _ := newTask(t, s, 3)
		events, err := s.Events(t.Context(), task.ID, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		first := event.DropData(string(events[0].Data), now())
		drop := func(set string, args ...any) error {
			return s.Spoil(t.Context(), "update events set "+set+" where task_id = ? and n = 1", append(args, task.ID)...)
		}
		refused := func(what string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "immutable") {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused("of a task that lives", drop("data = ?", first))
		if err := s.Spoil(t.Context(), "update tasks set ended_at = 1 where id = ?", task.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.Spoil(t.Context(), "insert into holds (id, kind, subject, request_id, reason, set_by, set_at) values ('hld_1', 'task', ?, '', 'x', 'ann', 1)", task.ID); err != nil {
			t.Fatal(err)
		}
		refused("of a task that is held", drop("data = ?", first))
		if err := s.Spoil(t.Context(), "update holds set lifted_at = 2"); err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string]string{"other data": "{}", "no digest": `"dropped sha256:0 1"`, "capitals": strings.ToUpper(first), "a digest too long": first[:90] + "0" + first[90:], "empty": ""} {
			refused(what, drop("data = ?", text))
		}
		refused("another actor with it", drop("data = ?, actor = 'mallory'", first))
		refused("another hash with it", drop("data = ?, hash = ''", first))
		if err := drop("data = ?", first); err != nil {
			t.Errorf("as it should be: %v", err)
		}
		refused("a second time", drop("data = ?", first))
		if err := s.VerifyTask(t.Context(), task.ID); err != nil {
			t.Error(err)
		}
		// What no digest can be compared with in SQLite's trigger is found by the hash.
		if s.Dialect() == "SQLite" {
			wrong := event.DropData("{}", now())
			if err := s.Spoil(t.Context(), "update events set data = ? where task_id = ? and n = 2", wrong, task.ID); err != nil {
				t.Fatal(err)
			}
			if err := s.VerifyTask(t.Context(), task.ID); err == nil || !strings.Contains(err.Error(), "n 2) was changed") {
				t.Errorf("a wrong digest: %v", err)
			}
		}
	})
}

// TestABatchThatFailsInItsMiddleLeavesNothing: the disk is full, the server is killed: the
// batch is one transaction, and the next run does it all.
func TestABatchThatFailsInItsMiddleLeavesNothing(t *testing.T) {
	s := open(t, sqliteURL(t))
	task, _ := newTask(t, s, 6)
	later := now().Add(time.Hour)
	for _, text := range []string{"update delegations set ended_at = 1, state = 'completed'", "update tasks set ended_at = 1 where id <> 'system'",
		"create trigger fault before update on events when new.n = 4 begin select raise(abort, 'disk full'); end"} {
		if err := s.Spoil(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Retain(t.Context(), retention.Texts, later, store.After{}, 100); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Fatal(err)
	}
	if got, err := s.Task(t.Context(), task.ID); err != nil || got.Text != task.Text || got.DroppedAt != nil {
		t.Errorf("%+v %v", got, err)
	}
	events, err := s.Events(t.Context(), task.ID, 0, 10)
	if err != nil || events[0].Dropped != nil {
		t.Errorf("%+v %v", events, err)
	}
	if err := s.Spoil(t.Context(), "drop trigger fault"); err != nil {
		t.Fatal(err)
	}
	if done, _, err := s.Retain(t.Context(), retention.Texts, later, store.After{}, 100); err != nil || done.Events != 6 || done.More {
		t.Errorf("%+v %v", done, err)
	}
	if err := errors.Join(s.VerifyTask(t.Context(), task.ID), s.VerifyTask(t.Context(), event.System)); err != nil {
		t.Error(err)
	}
}
