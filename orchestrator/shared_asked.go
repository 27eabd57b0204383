package orchestrator

import (
	"maps"
	"slices"
	"strings"

	"gatehouse/orchestrator/sharedctx"
)

// Pinned is what people said yes to before work was handed on, as the run is given it. The
// shared context is anybody's: whoever handed the work on could write there after the yes,
// and nobody would have read it. So such a run has the context of its question in place of
// the task's namespace, its own memory, and of the rest only what its reads name.
type Pinned struct {
	Context map[string]string `json:"context,omitempty"`
}

// pins reports whether this run has the namespace as it was asked.
func (r *run) pins(namespace string) bool {
	return r.d.Work.Pinned != nil && namespace == sharedctx.Handoff(r.task.ID)
}

// asked are the entries of the question that begin with prefix.
func (r *run) asked(prefix string) []sharedctx.Entry {
	found := []sharedctx.Entry{}
	for _, key := range slices.Sorted(maps.Keys(r.d.Work.Pinned.Context)) {
		if strings.HasPrefix(key, prefix) {
			found = append(found, sharedctx.Entry{Namespace: sharedctx.Handoff(r.task.ID), Key: key, Value: r.d.Work.Pinned.Context[key],
				Agent: r.d.From, CreatedAt: r.d.CreatedAt, UpdatedAt: r.d.CreatedAt})
		}
	}
	return found
}

// askedOnly replaces what the shared context holds for a run by what it may be given of it.
func (r *run) askedOnly(entries []sharedctx.Entry) []sharedctx.Entry {
	if r.d.Work.Pinned == nil {
		return entries
	}
	rights := r.rights()
	return append(r.asked(""), slices.DeleteFunc(entries, func(e sharedctx.Entry) bool {
		return r.pins(e.Namespace) || rights.MayRead(e.Namespace) != nil
	})...)
}
