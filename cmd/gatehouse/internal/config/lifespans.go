package config

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/sharedctx"
)

// lifespans reads context.ttl. Without it a write that names no life span never expires.
func (b *builder) lifespans() sharedctx.Lifespans {
	spans := sharedctx.Lifespans{}
	for _, name := range slices.Sorted(maps.Keys(b.file.Context.TTL)) {
		where := at("context", "ttl", name)
		switch begin := strings.TrimSuffix(name, "*"); {
		case strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > sharedctx.MaxNamespace:
			b.bad(where, "the namespace %q has %d characters: use 1 to %d, or the beginning of names with * at its end", name, utf8.RuneCountInString(name), sharedctx.MaxNamespace)
		case strings.Contains(begin, "*"):
			b.bad(where, "the namespace %q has a * that is not at its end: write the beginning of names and one *", name)
		}
		d, err := sharedctx.Named(b.file.Context.TTL[name])
		if err != nil {
			b.bad(where, "%v", err)
		}
		spans[name] = d
	}
	return spans
}
