package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator"
)

// line is a delegation in a transaction: as its row is, and as the transaction has it.
type line struct {
	d   *orchestrator.Delegation // as given out; nil before, and after a move that was lost
	row stored                   // as of the last Insert or Move, else as read
	was fence                    // what the database has
	// Inserted and moved rows are written with the others, in one statement where that goes.
	fresh, dirty bool
	relisted     bool  // something that lists show has changed
	seq          int64 // of a fresh one
}

// fence is what a move compares, and the lease that it keeps where nobody changed it.
type fence struct {
	state   orchestrator.State
	attempt int
	lease   time.Time
}

func fenceOf(s *stored) fence { return fence{s.plain.State, s.plain.Attempt, s.plain.LeaseUntil} }

// insertArgs are the arguments of insertDelegation behind the task.
func (l *line) insertArgs() []any {
	d := &l.row.plain
	args := []any{d.ID, l.seq, d.ParentID, d.From, d.To, d.Text, d.Depth, l.row.chain, d.HopKey, d.Generation,
		d.Repository, d.Requester, micros(d.CreatedAt), d.Spawned, d.Taken, d.ContextHash}
	return append(append(args, l.row.mutable()...), micros(d.LeaseUntil))
}

// moveArgs are the arguments of moveDelegation before the task.
func (l *line) moveArgs() []any {
	lease := sql.NullInt64{Int64: micros(l.row.plain.LeaseUntil), Valid: !l.row.plain.LeaseUntil.Equal(l.was.lease)}
	return append(l.row.mutable(), lease, l.row.plain.ID, string(l.was.state), l.was.attempt)
}

// write writes a row by a statement of its own, if there is anything to write.
func (l *line) write(ctx context.Context, b bound, taskID string) error {
	if !l.fresh && !l.dirty {
		return nil
	}
	text, args := moveDelegation, append(l.moveArgs(), taskID)
	if l.fresh {
		text, args = insertDelegation, append([]any{taskID}, l.insertArgs()...)
	}
	n, err := changed(b.exec(ctx, text, args...))
	if err != nil {
		return fmt.Errorf("write delegation %s: %w", l.row.plain.ID, err)
	}
	if n == 0 {
		return orchestrator.ErrLost
	}
	return nil
}

// hop is what no two children of a delegation have in common.
type hop struct {
	parent     string
	generation int
	key        string
}

func hopOf(d *orchestrator.Delegation) hop { return hop{d.ParentID, d.Generation, d.HopKey} }

// add takes a row into the transaction, unless it has it already.
func (t *Tx) add(row stored) *line {
	if l := t.lines[row.plain.ID]; l != nil {
		return l
	}
	return t.hold(&line{row: row, was: fenceOf(&row)})
}

func (t *Tx) hold(l *line) *line {
	if t.lines == nil {
		t.lines = map[string]*line{}
	}
	t.lines[l.row.plain.ID] = l
	t.order = append(t.order, l)
	return l
}

// given is the one delegation that is given out for l.
func (l *line) given() (*orchestrator.Delegation, error) {
	if l.d == nil {
		d, err := l.row.delegation()
		if err != nil {
			return nil, err
		}
		l.d = &d
	}
	return l.d, nil
}

// several adds the rows of a query and gives them out.
func (t *Tx) several(rows *sql.Rows, err error) ([]*orchestrator.Delegation, error) {
	all, err := collect(rows, err, scanStored)
	if err != nil {
		return nil, err
	}
	found := make([]*line, len(all))
	for i := range all {
		found[i] = t.add(all[i])
	}
	return giveAll(found)
}

func giveAll(lines []*line) ([]*orchestrator.Delegation, error) {
	var all []*orchestrator.Delegation
	for _, l := range lines {
		d, err := l.given()
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// choose gives out the delegations that ok says: from memory where the transaction has the
// whole tree, else by a query, which sees what was written before it.
func (t *Tx) choose(ok func(*orchestrator.Delegation) bool, text string, args ...any) (
	[]*orchestrator.Delegation, error,
) {
	if !t.complete {
		return t.several(t.find(text, args...))
	}
	var found []*line
	for _, l := range t.order {
		if ok(&l.row.plain) {
			found = append(found, l)
		}
	}
	return giveAll(found)
}

// one finds the line of a delegation of the task.
func (t *Tx) one(id string) (*line, error) {
	if l := t.lines[id]; l != nil {
		return l, nil
	}
	if t.complete {
		return nil, orchestrator.ErrNotFound
	}
	row, err := scanStored(t.read().row(t.ctx, selectDelegation+" where id = ? and task_id = ?", id, t.row.ID))
	if err != nil {
		return nil, err
	}
	return t.add(row), nil
}

// Delegation returns a delegation of the task; ErrNotFound for one of another task.
func (t *Tx) Delegation(_ context.Context, id string) (*orchestrator.Delegation, error) {
	l, err := t.one(id)
	if err != nil {
		return nil, err
	}
	return l.given()
}

// Kept is a delegation of the task as the last Insert or Move has left it.
func (t *Tx) Kept(_ context.Context, id string) (orchestrator.Delegation, error) {
	l, err := t.one(id)
	if err != nil {
		return orchestrator.Delegation{}, err
	}
	return l.row.delegation()
}

// Tree returns every delegation of the task, oldest first.
func (t *Tx) Tree(context.Context) ([]*orchestrator.Delegation, error) {
	every := func(*orchestrator.Delegation) bool { return true }
	return t.choose(every, selectDelegation+" where task_id = ? order by seq", t.row.ID)
}

// Children returns the delegations that parentID has made, oldest first.
func (t *Tx) Children(_ context.Context, parentID string) ([]*orchestrator.Delegation, error) {
	below := func(d *orchestrator.Delegation) bool { return d.ParentID == parentID && parentID != "" }
	return t.choose(below, selectChildren, parentID, t.row.ID)
}

// Live returns the children of parentID that have not ended, oldest first.
func (t *Tx) Live(_ context.Context, parentID string) ([]*orchestrator.Delegation, error) {
	return t.choose(func(d *orchestrator.Delegation) bool {
		return d.ParentID == parentID && parentID != "" && d.EndedAt == nil
	},
		selectBelow, parentID, t.row.ID)
}

// Recent returns the task's last hand-overs, oldest first.
func (t *Tx) Recent(_ context.Context, limit int) ([]*orchestrator.Delegation, error) {
	if !t.complete {
		found, err := t.several(t.find(selectRecent, t.row.ID, limit))
		slices.Reverse(found)
		return found, err
	}
	found, err := t.choose(func(d *orchestrator.Delegation) bool { return d.ParentID != "" }, "")
	return found[max(0, len(found)-limit):], err
}

// UnderWay returns those of the task that live and were made by then, oldest first. The
// database's clock says when, so it is asked.
func (t *Tx) UnderWay(_ context.Context, until time.Time) ([]*orchestrator.Delegation, error) {
	return t.several(t.find(selectUnderWayIn, t.row.ID, micros(until)))
}

const selectUntold = `select count(*) from (select 1 from delegations
	where parent_id = cast(? as text) and parent_id <> '' and generation = ? and not taken and spawned
	and ended_at is not null limit 1) one`

// Untold reports whether a spawned child has ended that no turn has carried.
func (t *Tx) Untold(_ context.Context, parentID string, generation int) (bool, error) {
	if t.complete {
		return slices.ContainsFunc(t.order, func(l *line) bool {
			d := &l.row.plain
			return d.ParentID == parentID && d.Generation == generation && d.Spawned && !d.Taken && d.EndedAt != nil
		}), nil
	}
	if err := t.settled(); err != nil {
		return false, err
	}
	var n int
	err := t.read().row(t.ctx, selectUntold, parentID, generation).Scan(&n)
	return n > 0, err
}

// Child finds the child that was made under a key.
func (t *Tx) Child(_ context.Context, parentID string, generation int, hopKey string) (
	*orchestrator.Delegation, error,
) {
	l, err := t.childAt(hop{parentID, generation, clean(hopKey)})
	if err != nil {
		return nil, err
	}
	return l.given()
}

// childAt finds the line of a hop, ErrNotFound where there is none.
func (t *Tx) childAt(h hop) (*line, error) {
	if h.parent == "" {
		return nil, orchestrator.ErrNotFound
	}
	for _, l := range t.order {
		if hopOf(&l.row.plain) == h {
			return l, nil
		}
	}
	if t.complete || t.absent[h] {
		return nil, orchestrator.ErrNotFound
	}
	row, err := scanStored(t.read().row(t.ctx, selectChild, h.parent, h.generation, h.key, t.row.ID))
	if errors.Is(err, orchestrator.ErrNotFound) {
		if t.absent == nil {
			t.absent = map[hop]bool{}
		}
		t.absent[h] = true
	}
	if err != nil {
		return nil, err
	}
	return t.add(row), nil
}

// Insert adds a delegation; ErrExists when its hop key is taken.
func (t *Tx) Insert(_ context.Context, d *orchestrator.Delegation) error {
	if d.CreatedAt.IsZero() {
		d.CreatedAt = t.now
	}
	if d.Since.IsZero() {
		d.Since = t.now
	}
	d.TaskID, d.Text, d.HopKey = t.row.ID, clean(d.Text), clean(d.HopKey)
	switch _, err := t.childAt(hopOf(d)); {
	case err == nil:
		return orchestrator.ErrExists
	case !errors.Is(err, orchestrator.ErrNotFound):
		return fmt.Errorf("look for the hop of %s: %w", d.ID, err)
	}
	row, err := storedOf(d)
	if err != nil {
		return err
	}
	t.row.seq++
	t.hold(&line{d: d, row: row, was: fenceOf(&row), fresh: true, relisted: true, seq: t.row.seq})
	return nil
}

// Move writes d where the row still has that state and attempt; else ErrLost. The commit
// compares them once more.
func (t *Tx) Move(_ context.Context, d *orchestrator.Delegation, from orchestrator.State, attempt int) error {
	l, err := t.one(d.ID)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return orchestrator.ErrLost
	}
	if err != nil {
		return fmt.Errorf("move delegation %s: %w", d.ID, err)
	}
	if l.row.plain.State != from || l.row.plain.Attempt != attempt {
		l.d = nil // whoever asks again sees the row as it is
		return orchestrator.ErrLost
	}
	row, err := storedOf(d)
	if err != nil {
		return err
	}
	old := &l.row
	if p := &old.plain; (!t.locked || t.late) && p.Holder != "" && !p.LeaseUntil.After(t.now) {
		t.stale = true // it may have been renewed: whoever acts on an end of a lease looks under the lock
		return errStale
	}
	row.keep(old)
	l.relisted = l.relisted || row.relists(old)
	l.row, l.dirty = row, true
	if l.d != nil && l.d != d {
		*l.d = *d
	}
	return nil
}

// keep takes over from old what a move does not write.
func (s *stored) keep(old *stored) {
	p, o := &s.plain, &old.plain
	p.TaskID, p.ParentID, p.From, p.To, p.Text = o.TaskID, o.ParentID, o.From, o.To, o.Text
	p.Depth, p.HopKey, p.Generation = o.Depth, o.HopKey, o.Generation
	p.Repository, p.Requester = o.Repository, o.Requester
	p.CreatedAt, p.Spawned, p.Taken, p.ContextHash = o.CreatedAt, o.Spawned, o.Taken, o.ContextHash
	s.chain = old.chain
}

// The live ones are few, and the index of what lives finds them.
const selectSpawnedBy = "select count(*) from delegations where ended_at is null and spawned and from_agent = ?"

// SpawnedBy counts the live children that all delegations of an agent have spawned, in all
// tasks. Another transaction that counts them waits until this one has ended.
func (t *Tx) SpawnedBy(_ context.Context, agent string) (int, error) {
	if t.s.dialect.counting != "" {
		if _, err := t.q.exec(t.ctx, t.s.dialect.counting, agent); err != nil {
			return 0, fmt.Errorf("wait to count what %s has spawned: %w", agent, err)
		}
	}
	var n int
	if err := t.q.row(t.ctx, selectSpawnedBy, agent).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what %s has spawned: %w", agent, err)
	}
	return n, nil
}
