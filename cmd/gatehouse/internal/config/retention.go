package config

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/sharedctx"
)

// keepDeliveries is how long bodies of webhooks are kept where nothing is written: they
// are others' data, and nothing needs them after their task.
const keepDeliveries = 30 * 24 * time.Hour

// retention reads after which age things are removed. What is not written is kept for
// ever, but for the bodies of deliveries.
func (b *builder) retention() retention.Rules {
	r := b.file.Retention
	return retention.Rules{Data: b.age("data", r.Data, 0), Blobs: b.age("blobs", r.Blobs, 0), Deliveries: b.age("deliveries", r.Deliveries, keepDeliveries)}
}

// age reads one; never is 0.
func (b *builder) age(key, text string, fallback time.Duration) time.Duration {
	switch strings.TrimSpace(text) {
	case "":
		return fallback
	case sharedctx.Never:
		return 0
	}
	d, err := sharedctx.ParseTTL(text)
	if err != nil {
		b.bad(at("retention", key), "%q is no age. Write a number with a unit, such as 400d, or never.", text)
		return fallback
	}
	if err := retention.Check(d); err != nil {
		b.bad(at("retention", key), "%s: %v.", key, err)
	}
	return d
}

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
