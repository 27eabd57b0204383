package orchestrator

import (
	"context"

	"gatehouse/orchestrator/agent"
)

// Confined records the limits of the run, and at its end the most that it used. The row has
// it when the attempt ends, however it ends.
func (r *run) Confined(_ context.Context, c agent.Confinement) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.d.Work.Confined; was != nil && c.Most == (agent.Limits{}) {
		c.Most = was.Most // of another program of the same run, such as a tool server
	}
	r.d.Work.Confined = &c
	return nil
}

// confine copies what confined the attempt into the row.
func (r *run) confine(d *Delegation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.Work.Sandbox, d.Work.Confined = r.d.Work.Sandbox, r.d.Work.Confined
}
