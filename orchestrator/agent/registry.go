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
// another: see reads. Identity is the name after NFKC, case
// folding and confusables.
func NewRegistry(specs []Spec) (*Registry, error) {
	r := &Registry{byKey: make(map[string]Spec, len(specs))}
	read, taken := map[string]string{}, map[string]string{}
	for _, word := range reserved {
		taken[reads(word)] = word
	}
	for _, s := range specs {
		if err := CheckName(s.Name); err != nil {
			return nil, err
		}
		seen := reads(s.Name)
		if word, ok := taken[seen]; ok {
			return nil, fmt.Errorf("agent %q reads like %s, who is no agent: rename it", s.Name, word)
		}
		if other, ok := read[seen]; ok {
			return nil, fmt.Errorf("agents %q and %q cannot be told apart: rename one", other, s.Name)
		}
		read[seen] = s.Name
		r.byKey[Key(s.Name)] = s
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
