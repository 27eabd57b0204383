package web_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// streamsEnv makes TestStreamFigures a server for testdata/rivals, which `make bench-live` runs.
const streamsEnv = "GATEHOUSE_TEST_STREAMS"

// Of the figures: how large a message is, and how many a second are sent at a pace.
const (
	messageSize = 300 // bytes
	pace        = 5
)

// speak sends the n messages from the number first on: at a pace, or all in one transaction.
func (h *house) speak(taskID, delegationID string, first, n int, paced bool) {
	say := func(tx orchestrator.Tx, i int) error {
		text := fmt.Sprintf("@@%d %d@@", i, time.Now().UnixNano())
		return tx.Append(h.ctx, event.Event{Type: event.Progress, DelegationID: delegationID, Actor: "coder",
			Data: event.Data(map[string]any{"text": text + strings.Repeat("x", messageSize-len(text))})})
	}
	if !paced {
		h.must(h.store.InTask(h.ctx, taskID, func(tx orchestrator.Tx) error {
			for i := range n {
				if err := say(tx, first+i); err != nil {
					return err
				}
			}
			return nil
		}))
		return
	}
	tick := time.NewTicker(time.Second / pace)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		h.must(h.store.InTask(h.ctx, taskID, func(tx orchestrator.Tx) error { return say(tx, first+i) }))
	}
}

// serveFigures answers the commands that come in: "paced FIRST N", "burst FIRST N" and "gc".
func (h *house) serveFigures(in io.Reader, out io.Writer) {
	dora := h.user("dora", people.Operator)
	task, root := h.task(dora, "Fix")
	t, err := h.store.Task(h.ctx, task.ID)
	h.must(err)
	h.must(json.NewEncoder(out).Encode(map[string]any{
		"address": strings.TrimPrefix(h.url, "http://"), "token": h.token(dora),
		"sse": fmt.Sprintf("/delegation-stream?id=%s&after=%d", task.ID, t.LastN), "ws": "/ws",
		"hello": []string{fmt.Sprintf(`{"type":"subscribe","task_id":%q,"after":%d}`, task.ID, t.LastN)},
	}))
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var what string
		var first, n int
		_, _ = fmt.Sscan(lines.Text(), &what, &first, &n) // gc has no numbers
		if what == "gc" {
			debug.FreeOSMemory()
		} else {
			h.speak(task.ID, root.ID, first, n, what == "paced")
		}
		_, err := fmt.Fprintln(out, "ok")
		h.must(err)
	}
}

// TestStreamFigures sends many messages at once to many readers: each gets every one, once and
// in order. With GATEHOUSE_TEST_STREAMS it is the server beside which others are measured.
func TestStreamFigures(t *testing.T) {
	h := open(t)
	if os.Getenv(streamsEnv) != "" {
		h.serveFigures(os.Stdin, os.Stdout)
		return
	}
	dora := h.user("dora", people.Operator)
	token := h.token(dora)
	task, root := h.task(dora, "Fix")
	const readers, messages = 40, 250
	var wg, ready sync.WaitGroup
	for range readers {
		ready.Add(1)
		wg.Go(func() {
			next := 0
			h.sse("/delegation-stream?id="+task.ID+"&after=1", token, "", func(_, _ string, e event.Event) bool {
				var data struct{ Text string }
				if err := json.Unmarshal(e.Data, &data); err != nil || !strings.HasPrefix(data.Text, "@@") {
					ready.Done() // the task's own event: it listens
					return true
				}
				number, _, _ := strings.Cut(data.Text[2:], " ")
				if number != strconv.Itoa(next) {
					t.Errorf("message %s came, want %d", number, next)
					return false
				}
				next++
				return next < messages
			})
		})
	}
	ready.Wait()
	h.speak(task.ID, root.ID, 0, messages, false)
	wg.Wait()
}
