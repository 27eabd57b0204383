package bench

import (
	"context"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// Parked is what questions cost that wait for a person, and the time from a yes until the
// task has come to its end.
type Parked struct {
	Questions int     `json:"questions"`
	Bytes     float64 `json:"bytes_each"` // indexes and history included
	ResumeMS  float64 `json:"resume_p50_ms"`
}

// answered is how many of the questions get their yes.
const answered = 25

// Parked asks people count questions before hand-overs (nobody has a slot meanwhile), then
// says yes to some, one after the other.
func (n *Node) Parked(ctx context.Context, count int) (Parked, error) {
	p := Parked{Questions: count}
	before, err := n.store.Size(ctx)
	if err != nil {
		return p, err
	}
	tasks := make(chan string, count)
	err = together(count, min(count, 8), func() error {
		root, sub, err := n.send(ctx, "asker")
		if err != nil {
			return err
		}
		defer sub.Close()
		tasks <- root.TaskID
		return n.reached(ctx, sub, root.ID, func(d orchestrator.Delegation) bool { return d.State == orchestrator.Waiting })
	})
	close(tasks)
	if err != nil {
		return p, err
	}
	after, err := n.store.Size(ctx)
	if err != nil {
		return p, err
	}
	p.Bytes = float64(after-before) / float64(count)
	var took []float64
	for id := range tasks {
		if len(took) == answered {
			break
		}
		one, err := n.yes(ctx, id)
		if err != nil {
			return p, err
		}
		took = append(took, float64(one.Microseconds())/1000)
	}
	p.ResumeMS = median(took)
	return p, nil
}

// yes answers the question of a task and returns how long the task then took to its end.
func (n *Node) yes(ctx context.Context, taskID string) (time.Duration, error) {
	ids, err := n.store.PendingOf(ctx, taskID)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	r, err := n.gateway.Request(ctx, ids[0])
	if err != nil {
		return 0, err
	}
	task, err := n.store.Task(ctx, taskID)
	if err != nil {
		return 0, err
	}
	sub := n.engine.Hub().Watch(taskID, 64)
	defer sub.Close()
	start := time.Now()
	if _, err := n.gateway.Decide(ctx, approval.Ballot{RequestID: r.ID, Principal: people.As(n.people.bob, nil), Channel: "cli",
		Verdict: approval.Approve, Digest: r.Revision.Digest}); err != nil {
		return 0, err
	}
	err = n.ended(ctx, sub, task.RootID)
	return time.Since(start), err
}
