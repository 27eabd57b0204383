package store_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/store/pgtest"
)

func TestZZ(t *testing.T) {
	s := open(t, pgtest.NewServer(t, pgtest.Durable).URL("postgres"))
	for _, q := range strings.Split(os.Getenv("ZZ"), ";") {
		if strings.TrimSpace(q) != "" {
			if err := s.Exec(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
	}
	task, d := newTask(t, s, 1)
	for range 500 {
		if err := hop(s.Engine(), task.ID, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now()
	for range 3000 {
		if err := hop(s.Engine(), task.ID, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s per hop", time.Since(at)/3000)
}
