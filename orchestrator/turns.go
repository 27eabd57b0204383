package orchestrator

import (
	"context"
	"sync"
)

// turns lets landings in one repository go one after the other on this node: each moves
// the branch away from under the next, which would plan and check anew for nothing.
// Other nodes may land in between, so a landing still looks where the branch is.
type turns struct {
	mu sync.Mutex
	of map[string]chan struct{} // by repository; full while somebody has the turn
}

// take waits for the turn in a repository. done gives it back.
func (t *turns) take(ctx context.Context, repository string) (done func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[string]chan struct{}{}
	}
	turn, ok := t.of[repository]
	if !ok {
		turn = make(chan struct{}, 1)
		t.of[repository] = turn
	}
	t.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
