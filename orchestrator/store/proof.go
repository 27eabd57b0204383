package store

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/proof"
)

// verificationPrefix begins the ids of verifications.
const verificationPrefix = "vrf_"

// SaveSealKey makes a node's public key known, so that every node and every bundle can
// check what it signs. A key that is known keeps its first time.
func (s *Store) SaveSealKey(ctx context.Context, key ed25519.PublicKey) error {
	_, err := s.w.exec(ctx, "insert into seal_keys (id, key, node, at) values (?, ?, ?, ?) on conflict do nothing", proof.Fingerprint(key), []byte(key), s.node, micros(s.now()))
	return s.explain(err)
}

// SealKeys lists the keys that seal, or did, oldest first.
func (s *Store) SealKeys(ctx context.Context) ([]proof.Key, error) {
	return ReadAll(ctx, s, func(row scanner) (k proof.Key, err error) {
		err = row.Scan(&k.ID, (*[]byte)(&k.Public), &k.Node, Time(&k.At))
		return k, err
	}, "select id, key, node, at from seal_keys order by at, id")
}

// CheckpointKeys lists the keys that signed checkpoints, by their fingerprints, sorted.
func (s *Store) CheckpointKeys(ctx context.Context) ([]string, error) {
	return ReadAll(ctx, s, Scalar[string], "select distinct key_id from checkpoints order by key_id")
}

// SealedUpTo is the newest checkpoint, the zero one where there is none.
func (s *Store) SealedUpTo(ctx context.Context) (proof.Checkpoint, error) {
	c, err := s.lastCheckpoint(ctx)
	return c, s.explain(err)
}

const selectVerification = "select id, who, at, took, pos, tasks, seals, problems from verifications order by id desc limit 1"

// LastVerified is the newest verification of the whole history; false: there was none.
func (s *Store) LastVerified(ctx context.Context) (proof.Verification, bool, error) {
	var v proof.Verification
	err := s.r.row(ctx, selectVerification).
		Scan(&v.ID, &v.Who, Time(&v.At), Took(&v.Took), &v.Pos, &v.Tasks, &v.Seals, JSON(&v.Problems))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return v, false, nil
	}
	return v, err == nil, s.explain(err)
}

// Verify follows every chain of hashes and every seal, tells how far it is, and records
// what it found with an event. Its memory does not grow with the history; when ctx ends it
// stops and records nothing.
func (s *Store) Verify(ctx context.Context, who string, progress func(proof.Progress)) (proof.Verification, error) {
	v := proof.Verification{Who: who, At: s.now(), Problems: []proof.Broken{}}
	v.ID = orchestrator.NewID(verificationPrefix, v.At)
	var err error
	if v.Pos, err = s.LastPosition(ctx); err != nil {
		return v, err
	}
	broken := func(taskID string, why error) {
		if len(v.Problems) < proof.MaxProblems {
			v.Problems = append(v.Problems, proof.Broken{TaskID: taskID, Message: why.Error()})
		}
	}
	if progress == nil {
		progress = func(proof.Progress) {}
	}
	m := &meter{tell: progress, Progress: proof.Progress{OfEvents: v.Pos}}
	if err := s.r.row(ctx, "select count(*) from tasks").Scan(&m.Of); err != nil {
		return v, s.explain(err)
	}
	m.say()
	if v.Tasks, err = s.verifyAll(ctx, broken, m); err != nil {
		return v, err
	}
	m.say()
	check, err := s.signatures(ctx)
	if err != nil {
		return v, err
	}
	if v.Seals, err = s.verifySeals(ctx, check, func(n int) { m.Seals = n; m.say() }); err != nil {
		if ctx.Err() != nil || s.dialect.classify(err) == away {
			return v, err
		}
		broken("", err)
	}
	v.Took = s.now().Sub(v.At)
	return v, s.saveVerification(ctx, v)
}

func (s *Store) saveVerification(ctx context.Context, v proof.Verification) error {
	problems, err := encode(v.Problems)
	if err != nil {
		return err
	}
	said := event.HistoryVerifiedData{Tasks: v.Tasks, Seals: v.Seals, Position: v.Pos, Problems: len(v.Problems)}
	return s.system(ctx, v.Who, said, func(t *Tx) error {
		_, err := t.q.exec(t.ctx, "insert into verifications (id, who, at, took, pos, tasks, seals, problems) values (?, ?, ?, ?, ?, ?, ?, ?)",
			v.ID, clean(v.Who), micros(v.At), v.Took.Microseconds(), v.Pos, v.Tasks, v.Seals, clean(problems))
		return err
	})
}

// signatures checks those of checkpoints by the keys that are known. Checkpoints by a key
// that was never made known, as before keys were, are only checked for what they cover.
func (s *Store) signatures(ctx context.Context) (func(message, signature []byte, keyID string) error, error) {
	keys, err := s.SealKeys(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]ed25519.PublicKey{}
	for _, k := range keys {
		if len(k.Public) != ed25519.PublicKeySize || proof.Fingerprint(k.Public) != k.ID {
			return nil, fmt.Errorf("the key %s of the seals is not what its name says: the table seal_keys was changed", k.ID)
		}
		known[k.ID] = k.Public
	}
	return func(message, signature []byte, keyID string) error {
		if key, ok := known[keyID]; ok && !ed25519.Verify(key, message, signature) {
			return fmt.Errorf("it is not by the key %s", keyID)
		}
		return nil
	}, nil
}

// Proofs returns, for each task that a checkpoint covers, the newest one that does, with
// the heads that it signs: at most most heads in all, those of the first tasks.
func (s *Store) Proofs(ctx context.Context, tasks []string, most int) ([]proof.Proof, error) {
	last, err := s.SealedUpTo(ctx)
	if err != nil || last.Pos == 0 {
		return nil, err
	}
	keys, err := s.SealKeys(ctx)
	if err != nil {
		return nil, err
	}
	var proofs []proof.Proof
	covered := map[string]bool{}
	for _, id := range tasks {
		if covered[id] {
			continue
		}
		p, err := s.proofOf(ctx, id, last.Pos, keys, most)
		if err != nil {
			return nil, s.explain(err)
		}
		if p == nil {
			continue
		}
		if most -= len(p.Heads); most < 0 {
			return proofs, nil
		}
		for _, h := range p.Heads {
			covered[h.TaskID] = true
		}
		proofs = append(proofs, *p)
	}
	return proofs, nil
}

// EachProof gives the checkpoints over the positions from to to, newest first and each with
// its heads, of which it holds one checkpoint's at a time: at most most heads in all.
func (s *Store) EachProof(ctx context.Context, from, to int64, most int, each func(proof.Proof) error) error {
	keys, err := s.SealKeys(ctx)
	if err != nil {
		return err
	}
	known := map[string]ed25519.PublicKey{}
	for _, k := range keys {
		known[k.ID] = k.Public
	}
	var first sql.NullInt64 // the oldest checkpoint that covers all of it; where none does, all are asked for
	if err := s.r.row(ctx, "select min(pos) from checkpoints where pos >= ?", to).Scan(&first); err != nil {
		return s.explain(err)
	}
	below := to
	if first.Valid {
		below = first.Int64 + 1
	}
	for {
		// One more than is used: a checkpoint begins where the one before it ends.
		rows, err := s.r.query(ctx, selectCheckpoints+" where pos < ? order by pos desc limit ?", below, verifyPage+1)
		page, err := collect(rows, err, scanCheckpoint)
		if err != nil {
			return s.explain(err)
		}
		for i, c := range page {
			if c.Pos < from || most <= 0 {
				return nil
			}
			if i == verifyPage {
				break
			}
			before := int64(0)
			if i+1 < len(page) {
				before = page[i+1].Pos
			}
			below = c.Pos
			p := proof.Proof{Checkpoint: c, Key: known[c.KeyID]}
			if p.Key == nil {
				continue
			}
			if p.Heads, err = s.headsWithin(ctx, before, c.Pos, most); errors.Is(err, errTooMany) {
				return nil
			}
			if err != nil {
				return s.explain(err)
			}
			most -= len(p.Heads)
			if err := each(p); err != nil {
				return err
			}
		}
		if len(page) <= verifyPage {
			return nil
		}
	}
}

// headsWithin are the heads of a checkpoint, or errTooMany.
func (s *Store) headsWithin(ctx context.Context, from, to int64, most int) (heads []proof.Head, err error) {
	err = s.eachHead(ctx, from, to, func(h proof.Head) error {
		if heads = append(heads, h); len(heads) > most {
			return errTooMany
		}
		return nil
	})
	return heads, err
}

// errTooMany ends the reading of heads of which nobody wants so many.
var errTooMany = errors.New("too many heads")

// proofOf is the newest checkpoint up to sealed with an event of the task; nil where there
// is none, or its key is not known, or it has more than most heads.
func (s *Store) proofOf(ctx context.Context, taskID string, sealed int64, keys []proof.Key, most int) (*proof.Proof, error) {
	var pos sql.NullInt64
	if err := s.r.row(ctx, "select max(pos) from event_order where task_id = ? and pos <= ?", taskID, sealed).Scan(&pos); err != nil || !pos.Valid {
		return nil, err
	}
	c, err := scanCheckpoint(s.r.row(ctx, selectCheckpoints+" where pos >= ? order by pos limit 1", pos.Int64))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &proof.Proof{Checkpoint: c}
	for _, k := range keys {
		if k.ID == c.KeyID {
			p.Key = k.Public
		}
	}
	var from sql.NullInt64
	if err := s.r.row(ctx, "select max(pos) from checkpoints where pos < ?", c.Pos).Scan(&from); err != nil || p.Key == nil {
		return nil, err
	}
	p.Heads, err = s.headsWithin(ctx, from.Int64, c.Pos, most)
	if errors.Is(err, errTooMany) {
		return nil, nil
	}
	return p, err
}
