package store_test

import (
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store/storetest"
)

// severed is a way to a server that drops one of its answers, with the connection that
// would have brought it, each time when cut is set.
type severed struct {
	net.Listener
	to  string
	cut atomic.Bool
}

func (p *severed) serve() {
	for {
		client, err := p.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		go func() {
			defer client.Close()
			defer server.Close()
			for b := make([]byte, 64<<10); ; {
				n, err := server.Read(b)
				if err != nil || p.cut.CompareAndSwap(true, false) {
					return
				}
				if _, err := client.Write(b[:n]); err != nil {
					return
				}
			}
		}()
	}
}

// TestPostgresLosesAnAnswer: a step whose answer never comes is in the database once, and
// its caller learns that it is, also when others have written since.
func TestPostgresLosesAnAnswer(t *testing.T) {
	u, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &severed{Listener: l, to: u.Host}
	defer p.Close()
	go p.serve()
	direct := open(t, u.String())
	u.Host = l.Addr().String()
	s := open(t, u.String())
	task, d := newTask(t, s, 1)
	for i := range 8 {
		ends := 0
		err := s.InTask(t.Context(), task.ID, func(tx orchestrator.Tx) error {
			ends++
			tx.OnRollback(func(maybe bool) {
				if maybe {
					t.Error("a step that its event proves is called unknown")
				}
			})
			d, err := tx.Delegation(t.Context(), d.ID)
			if err != nil {
				return err
			}
			tx.Task().Handoffs++
			d.Losses++
			if err := tx.Move(t.Context(), d, orchestrator.Queued, 0); err != nil {
				return err
			}
			p.cut.Store(i%2 == 1) // the step before has prepared the statement on this connection
			return tx.Append(t.Context(), event.Event{Type: event.Progress, Actor: "kik"})
		})
		if err != nil || ends != 1 {
			t.Errorf("step %d ran %d times: %v", i, ends, err)
		}
		got, err := direct.Delegation(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		task, err := direct.Task(t.Context(), task.ID)
		if err != nil || task.Handoffs != i+1 || got.Losses != i+1 {
			t.Errorf("after step %d: %d hand-offs and %d losses, %v", i, task.Handoffs, got.Losses, err)
		}
	}
	if err := direct.VerifyTask(t.Context(), task.ID); err != nil {
		t.Error(err)
	}
}
