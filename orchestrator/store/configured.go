package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/event"
)

// maxChanges is how many changed settings one event names; the digests cover all.
const maxChanges = 200

// RecordConfiguration records what is in force now. Where it differs from what was recorded
// last, the event that says how is written in the same transaction; else nothing is, so each
// node may record the same.
func (s *Store) RecordConfiguration(ctx context.Context, by event.Taken, now []event.Configured) error {
	now = slices.Clone(now)
	slices.SortFunc(now, func(x, y event.Configured) int { return strings.Compare(x.Key, y.Key) })
	text, err := encode(now)
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	return s.inTask(ctx, event.System, func(t *Tx) error {
		var was, settings string
		err := t.q.row(t.ctx, "select digest, settings from configuration where id = 1").Scan(&was, &settings)
		if err != nil && !errors.Is(err, sql.ErrNoRows) || was == digest {
			return err
		}
		var before []event.Configured
		if settings != "" {
			if err := json.Unmarshal([]byte(settings), &before); err != nil {
				return fmt.Errorf("read the settings that were recorded last: %w", err)
			}
		}
		if _, err := t.q.exec(t.ctx, `insert into configuration (id, digest, settings, recorded_at) values (1, ?, ?, ?)
			on conflict (id) do update set digest = excluded.digest, settings = excluded.settings, recorded_at = excluded.recorded_at`, digest, text, micros(s.now())); err != nil {
			return err
		}
		changes := configuredChanges(before, now)
		data := map[string]any{"how": by.How, "node": by.Node, "file": by.File, "was": was, "is": digest, "count": len(changes), "changes": changes[:min(len(changes), maxChanges)]}
		return t.Append(ctx, event.Event{Type: event.ConfigurationChanged, Actor: by.Actor, Data: event.Data(data)})
	})
}

// Configuration is what some node took last.
func (s *Store) Configuration(ctx context.Context) (approval.Taken, error) {
	t, err := taken(s.r.row(ctx, selectConfiguration))
	return t, s.explain(err)
}

// Configuration is the same within the transaction.
func (t *Tx) Configuration(context.Context) (approval.Taken, error) {
	return taken(t.q.row(t.ctx, selectConfiguration))
}

const selectConfiguration = "select settings, recorded_at from configuration where id = 1"

func taken(row scanner) (t approval.Taken, err error) {
	var settings string
	var at int64
	err = row.Scan(&settings, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return t, nil
	}
	if err == nil {
		t.At, err = fromMicros(at), json.Unmarshal([]byte(settings), &t.Settings)
	}
	if err != nil {
		return t, fmt.Errorf("read the configuration that was taken last: %w", err)
	}
	return t, nil
}

// configuredChanges lists what differs, rules first. The first record has no before and
// names the rules alone.
func configuredChanges(before, now []event.Configured) []event.ConfiguredChange {
	rules, others := []event.ConfiguredChange{}, []event.ConfiguredChange{}
	was := map[string]string{}
	for _, v := range before {
		was[v.Key] = v.Value
	}
	for _, v := range now {
		old, known := was[v.Key]
		delete(was, v.Key)
		c := event.ConfiguredChange{Key: v.Key, Was: old, Is: v.Value}
		switch {
		case known && old == v.Value:
		case v.Rule:
			rules = append(rules, c)
		case before != nil:
			others = append(others, c)
		}
	}
	gone := []event.ConfiguredChange{}
	for _, v := range before {
		if _, left := was[v.Key]; left {
			gone = append(gone, event.ConfiguredChange{Key: v.Key, Was: v.Value})
		}
	}
	return slices.Concat(rules, gone, others)
}
