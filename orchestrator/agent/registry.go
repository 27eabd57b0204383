package agent

import (
	"fmt"
	"sort"
)

// Registry is the set of agents that are configured. It is immutable; loading a
// configuration again makes a new one. A nil Registry has no agents (P11).
type Registry struct {
	byKey map[string]Spec
	names []string
}

// NewRegistry makes a registry. It refuses names that a reader could take for one
// another: identity is the name after NFKC, case folding and confusables.
func NewRegistry(specs []Spec) (*Registry, error) {
	r := &Registry{byKey: make(map[string]Spec, len(specs))}
	for _, s := range specs {
		if err := CheckName(s.Name); err != nil {
			return nil, err
		}
		key := Key(s.Name)
		if other, ok := r.byKey[key]; ok {
			return nil, fmt.Errorf("agents %q and %q cannot be told apart: rename one", other.Name, s.Name)
		}
		r.byKey[key] = s
		r.names = append(r.names, s.Name)
	}
	sort.Strings(r.names)
	return r, nil
}

// Get finds an agent under any spelling of its name.
func (r *Registry) Get(name string) (Spec, bool) {
	if r == nil {
		return Spec{}, false
	}
	s, ok := r.byKey[Key(name)]
	return s, ok
}

// All returns the agents by name (P10).
func (r *Registry) All() []Spec {
	if r == nil {
		return nil
	}
	all := make([]Spec, 0, len(r.names))
	for _, n := range r.names {
		all = append(all, r.byKey[Key(n)])
	}
	return all
}

// ByCapability returns the agents that have the capability, by name (P11). Where none has
// it, a role's name stands for who has the role, and a repository's for who works in it (A20).
func (r *Registry) ByCapability(capability string) []Spec {
	var able, other []Spec
	for _, s := range r.All() {
		switch {
		case s.Can(capability):
			able = append(able, s)
		case capability != "" && (string(s.Role) == capability || s.Repository == capability):
			other = append(other, s)
		}
	}
	if len(able) > 0 {
		return able
	}
	return other
}
