package event

import (
	"maps"
	"slices"
	"sync"
)

// Relay carries parts between the processes of one installation. Neither method waits.
type Relay interface {
	// Want tells the others that somebody here listens to a task.
	Want(taskID string)
	// Send shows a part of this process to those who want it.
	Send(p Part)
}

// parts is what passes by in a Hub: nothing of it is ever stored.
type parts struct {
	mu     sync.Mutex
	listen map[string]map[*Listener]struct{}
	drafts map[string]*Draft // by task; what runs of this process are writing
	relay  Relay
}

// Listener gets what passes by: parts of messages that are being written.
type Listener struct {
	C      <-chan Part
	c      chan Part
	hub    *Hub
	taskID string
}

// Listen hears what passes by in one task. Who does not keep up misses some; the whole
// message is stored once it is complete.
func (h *Hub) Listen(taskID string, buffer int) *Listener {
	c := make(chan Part, buffer)
	l := &Listener{C: c, c: c, hub: h, taskID: taskID}
	h.parts.mu.Lock()
	if h.parts.listen == nil {
		h.parts.listen = map[string]map[*Listener]struct{}{}
	}
	if h.parts.listen[taskID] == nil {
		h.parts.listen[taskID] = map[*Listener]struct{}{}
	}
	h.parts.listen[taskID][l] = struct{}{}
	h.parts.mu.Unlock()
	return l
}

// SoFar is what is being written here, and asks other processes for the same: theirs
// comes through C. Parts that came through C since Listen may be in it, too; a Draft
// tells them apart.
func (l *Listener) SoFar() []Part {
	p := &l.hub.parts
	p.mu.Lock()
	relay := p.relay
	p.mu.Unlock()
	if relay != nil {
		relay.Want(l.taskID)
	}
	return l.hub.Drafts(l.taskID)
}

// Close ends the listening. It may be called more than once.
func (l *Listener) Close() {
	p := &l.hub.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.listen[l.taskID], l)
	if len(p.listen[l.taskID]) == 0 {
		delete(p.listen, l.taskID)
	}
}

// Listened lists the tasks that somebody here listens to.
func (h *Hub) Listened() []string {
	h.parts.mu.Lock()
	defer h.parts.mu.Unlock()
	tasks := slices.Sorted(maps.Keys(h.parts.listen))
	return tasks
}

// Connect lets parts reach other processes.
func (h *Hub) Connect(r Relay) {
	h.parts.mu.Lock()
	defer h.parts.mu.Unlock()
	h.parts.relay = r
}

// Pass shows a part that a run of this process wrote, here and elsewhere. It never
// waits. Parts of one delegation have to be passed one after the other.
func (h *Hub) Pass(p Part) {
	h.parts.mu.Lock()
	if h.parts.drafts == nil {
		h.parts.drafts = map[string]*Draft{}
	}
	d := h.parts.drafts[p.TaskID]
	if d == nil {
		d = &Draft{}
		h.parts.drafts[p.TaskID] = d
	}
	d.Add(p)
	h.forgetEmpty(p.TaskID)
	h.parts.fan(p)
	relay := h.parts.relay
	h.parts.mu.Unlock()
	if relay != nil {
		relay.Send(p)
	}
}

// PassOn shows a part that another process wrote.
func (h *Hub) PassOn(p Part) {
	h.parts.mu.Lock()
	defer h.parts.mu.Unlock()
	h.parts.fan(p)
}

func (p *parts) fan(part Part) {
	for l := range p.listen[part.TaskID] {
		select {
		case l.c <- part:
		default:
		}
	}
}

// Over says that a run of this process writes no more of the message that it began.
func (h *Hub) Over(taskID, delegationID string) {
	h.parts.mu.Lock()
	defer h.parts.mu.Unlock()
	if d := h.parts.drafts[taskID]; d != nil {
		d.Over(delegationID)
		h.forgetEmpty(taskID)
	}
}

func (h *Hub) forgetEmpty(taskID string) {
	if h.parts.drafts[taskID].Empty() {
		delete(h.parts.drafts, taskID)
	}
}

// Drafts is what runs of this process are writing in a task.
func (h *Hub) Drafts(taskID string) []Part {
	h.parts.mu.Lock()
	defer h.parts.mu.Unlock()
	if d := h.parts.drafts[taskID]; d != nil {
		return d.Parts()
	}
	return nil
}
