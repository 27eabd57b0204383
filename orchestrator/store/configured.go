package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

const (
	maxChanges  = 200              // changed settings that one event names; the digests cover all
	untold      = "•••"            // stands for a value that no event tells
	silentAfter = 30 * time.Second // a node that says nothing for as long does not work; they say that they live each 5 s
)

// RecordConfiguration records what is in force now. Where it differs from what was recorded
// last, the event that says how is written in the same transaction; else nothing is, so each
// node may record the same.
//
// counts is false, and nothing is recorded, where a node starts with rules that were in force
// before while another node works by those that took their place: a start is nobody's word
// that the old ones shall count again. A reload is.
func (s *Store) RecordConfiguration(ctx context.Context, by event.Taken, now []event.Configured) (counts bool, err error) {
	now = byKey(now)
	text, digest, err := sum(now)
	if err != nil {
		return false, err
	}
	rules, err := rulesOf(now)
	if err != nil {
		return false, err
	}
	err = s.inTask(ctx, event.System, func(t *Tx) error {
		counts = true
		var was, settings, wasRules string
		err := t.q.row(t.ctx, "select digest, settings, rules from configuration where id = 1").Scan(&was, &settings, &wasRules)
		if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
		if err := t.worksBy(by.Node, rules); err != nil || was == digest && wasRules == rules {
			return err
		}
		since, err := rulesTaken(t.q.row(t.ctx, selectRulesTaken, rules))
		if err != nil {
			return err
		}
		// The same settings are in force, whatever a node of another version calls a rule in them.
		again := was != digest && wasRules != "" && wasRules != rules && !since.IsZero()
		if again && by.How == event.AtStart {
			if others, err := t.othersWorkBy(by.Node, wasRules); err != nil || others {
				counts = false
				return err
			}
		}
		if err := t.putConfiguration(text, digest, rules); err != nil || was == digest {
			return err
		}
		var before []event.Configured
		if settings != "" {
			if err := json.Unmarshal([]byte(settings), &before); err != nil {
				return fmt.Errorf("read the settings that were recorded last: %w", err)
			}
		}
		changes := configuredChanges(before, now)
		said := event.ConfigurationChangedData{How: by.How, Node: by.Node, File: by.File, Was: was, Is: digest,
			Count: len(changes), Changes: changes[:min(len(changes), maxChanges)]}
		if again { // the rules of then are in force again
			said.AsOf = event.Given(since)
		}
		return t.Append(ctx, event.Of("", by.Actor, said))
	})
	return counts, err
}

// sum is settings as they are stored, and their digest.
func sum(settings []event.Configured) (text, digest string, err error) {
	if text, err = encode(list(settings)); err != nil {
		return "", "", fmt.Errorf("write the settings: %w", err)
	}
	hash := sha256.Sum256([]byte(text))
	return text, hex.EncodeToString(hash[:]), nil
}

// worksBy notes which rules a node has, and that it lives.
func (t *Tx) worksBy(node, rules string) error {
	at, err := t.clock()
	if err != nil {
		return err
	}
	if _, err := t.q.exec(t.ctx, `insert into nodes (name, seen, rules, alive_at) values (?, ?, ?, ?)
		on conflict (name) do update set seen = excluded.seen, rules = excluded.rules, alive_at = excluded.alive_at`, node, micros(t.now), rules, micros(at)); err != nil {
		return fmt.Errorf("note the rules of node %s: %w", node, err)
	}
	return nil
}

// othersWorkBy reports whether a node other than this one lives and has these rules.
func (t *Tx) othersWorkBy(node, rules string) (bool, error) {
	at, err := t.clock()
	if err != nil {
		return false, err
	}
	n, err := Scalar[int](t.q.row(t.ctx, "select count(*) from nodes where name <> ? and rules = ? and alive_at >= ?", node, rules, micros(at.Add(-silentAfter))))
	if err != nil {
		return false, fmt.Errorf("look which nodes work by the rules in force: %w", err)
	}
	return n > 0, nil
}

// rulesOf is the digest of the rules among sorted settings.
func rulesOf(settings []event.Configured) (string, error) {
	_, digest, err := sum(slices.DeleteFunc(slices.Clone(settings), func(v event.Configured) bool { return !v.Rule }))
	return digest, err
}

// RulesTaken is when the rules among these settings were taken last, zero for never.
func (s *Store) RulesTaken(ctx context.Context, settings []event.Configured) (time.Time, error) {
	rules, err := rulesOf(byKey(settings))
	if err != nil {
		return time.Time{}, err
	}
	at, err := rulesTaken(s.r.row(ctx, selectRulesTaken, rules))
	return at, s.explain(err)
}

const selectRulesTaken = "select taken_at from rules_taken where digest = ?"

func rulesTaken(row scanner) (time.Time, error) {
	at, err := Scalar[int64](row)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("look whether the rules were in force before: %w", err)
	}
	return fromMicros(at), nil
}

// byKey is settings in the order of their keys.
func byKey(settings []event.Configured) []event.Configured {
	return slices.SortedFunc(slices.Values(settings), func(x, y event.Configured) int { return strings.Compare(x.Key, y.Key) })
}

// putConfiguration puts what is in force now in the place of what was.
func (t *Tx) putConfiguration(text, digest, rules string) error {
	_, err := t.q.exec(t.ctx, `insert into configuration (id, digest, settings, rules, recorded_at) values (1, ?, ?, ?, ?)
		on conflict (id) do update set digest = excluded.digest, settings = excluded.settings, rules = excluded.rules,
		recorded_at = case when configuration.digest = excluded.digest then configuration.recorded_at else excluded.recorded_at end`, digest, text, rules, micros(t.now))
	if err == nil {
		_, err = t.q.exec(t.ctx, `insert into rules_taken (digest, taken_at) values (?, ?)
			on conflict (digest) do update set taken_at = excluded.taken_at`, rules, micros(t.now))
	}
	if err != nil {
		return fmt.Errorf("write the configuration in force: %w", err)
	}
	return nil
}

// Taken is the configuration that some node took last, as it was recorded.
type Taken struct {
	Settings []event.Configured // nothing where none was recorded
	At       time.Time
}

// recorded keeps what was recorded last as it was read last: a node asks each second.
type recorded struct{ is atomic.Pointer[recording] }

type recording struct {
	digest string
	taken  Taken
}

// Configuration is what some node took last. Callers share its settings and must not change
// them.
func (s *Store) Configuration(ctx context.Context) (Taken, error) {
	t, err := s.recorded.read(func(known string) scanner { return s.r.row(ctx, selectConfiguration, known) })
	return t, s.explain(err)
}

// Configuration is the same within the transaction.
func (t *Tx) Configuration(context.Context) (Taken, error) {
	return t.s.recorded.read(func(known string) scanner { return t.q.row(t.ctx, selectConfiguration, known) })
}

// The settings are long, and read only where they are not those that are known.
const selectConfiguration = "select digest, recorded_at, case when digest = ? then '' else settings end from configuration where id = 1"

func (r *recorded) read(row func(known string) scanner) (Taken, error) {
	known := r.is.Load()
	if known == nil {
		known = &recording{}
	}
	var digest, settings string
	var at int64
	err := row(known.digest).Scan(&digest, &at, &settings)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return Taken{}, nil
	}
	now := recording{digest: digest, taken: Taken{Settings: known.taken.Settings, At: fromMicros(at)}}
	if err == nil && digest != known.digest {
		now.taken.Settings = nil
		if err = json.Unmarshal([]byte(settings), &now.taken.Settings); err == nil {
			r.is.Store(&now)
		}
	}
	if err != nil {
		return Taken{}, fmt.Errorf("read the configuration that was taken last: %w", err)
	}
	return now.taken, nil
}

// configuredChanges lists what differs, rules first. The first record has no before and
// names the rules alone.
func configuredChanges(before, now []event.Configured) []event.ConfiguredChange {
	rules, others := []event.ConfiguredChange{}, []event.ConfiguredChange{}
	was := map[string]event.Configured{}
	for _, v := range before {
		was[v.Key] = v
	}
	for _, v := range now {
		old, known := was[v.Key]
		delete(was, v.Key)
		switch {
		case known && old.Value == v.Value:
		case v.Rule:
			rules = append(rules, configuredChange(old, v))
		case before != nil:
			others = append(others, configuredChange(old, v))
		}
	}
	gone := []event.ConfiguredChange{}
	for _, v := range before {
		if _, left := was[v.Key]; left {
			gone = append(gone, configuredChange(v, event.Configured{Key: v.Key}))
		}
	}
	return slices.Concat(rules, gone, others)
}

// configuredChange is one of them. Where a digest stands for one of the values, neither is
// told: the other may be of before, when what the environment gave stood there.
func configuredChange(was, is event.Configured) event.ConfiguredChange {
	c := event.ConfiguredChange{Key: is.Key, Was: was.Value, Is: is.Value}
	if was.Sealed || is.Sealed {
		for _, value := range []*string{&c.Was, &c.Is} {
			if *value != "" {
				*value = untold
			}
		}
	}
	return c
}
