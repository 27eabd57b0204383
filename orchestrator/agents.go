package orchestrator

import (
	"context"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
)

// AgentStatus is an agent with what it is doing now.
type AgentStatus struct {
	Spec      agent.Spec
	Running   int
	Queued    int
	Waiting   int // for children or people
	LastError string
	LastAt    *time.Time // when it last ended something, nil if never
	Breaker   guard.Breaker
	Inbox     Inbox
}

// Inbox is how full the queue of an agent is (A35). The size is what engine.inbox calls
// full: it is shown and measured, and nothing is refused because of it.
type Inbox struct {
	Waiting int // delegations that nobody has taken up
	Size    int
}

// Percent is how full it is; above 100 more wait than it should hold.
func (i Inbox) Percent() int { return (100*i.Waiting + i.Size - 1) / max(i.Size, 1) }

// defaultInbox is the size where the configuration says nothing: the source's buffer of 200
// messages is about 50 delegations.
const defaultInbox = 50

func (s Settings) inbox() int {
	if s.Inbox <= 0 {
		return defaultInbox
	}
	return s.Inbox
}

// Load counts the live delegations of one agent, and says how its last one ended.
type Load struct {
	Agent     string
	Running   int
	Queued    int
	Waiting   int
	LastError string
	LastAt    *time.Time
}

// Agents returns the registry with live state.
func (e *Engine) Agents(ctx context.Context) ([]AgentStatus, error) {
	loads, err := e.Store.Loads(ctx)
	if err != nil {
		return nil, err
	}
	breakers, err := e.breakers(ctx)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]Load, len(loads))
	for _, l := range loads {
		byKey[agent.Key(l.Agent)] = l
	}
	var all []AgentStatus
	for _, s := range e.Config().Agents.All() {
		l := byKey[agent.Key(s.Name)]
		all = append(all, AgentStatus{Spec: s, Running: l.Running, Queued: l.Queued, Waiting: l.Waiting, LastError: l.LastError, LastAt: l.LastAt, Breaker: breakers[s.Name],
			Inbox: Inbox{Waiting: l.Queued, Size: e.Config().Settings.inbox()}})
	}
	return all, nil
}
