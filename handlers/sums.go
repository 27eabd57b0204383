package handlers

import (
	"context"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
)

// eventsAtOnce is how many events of a task are held while all of them are read.
const eventsAtOnce = 1000

// TaskLog reads the tree and the events of one task; the store does.
type TaskLog interface {
	// Outline is the whole tree, oldest first, without texts, chains, results and work.
	Outline(ctx context.Context, taskID string) ([]orchestrator.Delegation, error)
	EventsOf(ctx context.Context, taskID string, f orchestrator.EventFilter) ([]event.Event, error)
}

// TaskSums folds all events of a task, however many: only some are held at once.
func TaskSums(ctx context.Context, log TaskLog, taskID string) (insight.Sums, error) {
	tree, err := log.Outline(ctx, taskID)
	if err != nil {
		return nil, err
	}
	return SumsOf(ctx, log, taskID, tree)
}

func SumsOf(ctx context.Context, log TaskLog, taskID string, tree []orchestrator.Delegation) (insight.Sums, error) {
	f := insight.NewFold()
	for _, d := range tree {
		f.Subjects[d.ID] = insight.Subject{Agent: d.To, Repository: d.Repository, CreatedAt: d.CreatedAt, Hop: d.ParentID != ""}
	}
	story := Tale{Log: log, TaskID: taskID, Filter: orchestrator.EventFilter{Types: insight.Types()}}
	for {
		e, more, err := story.Next(ctx)
		if err != nil || !more {
			return f.Sums, err
		}
		f.Add(e)
	}
}

// Tale walks the events of a task that a filter names, oldest first. Only some are held at once.
type Tale struct {
	Log    TaskLog
	TaskID string
	Filter orchestrator.EventFilter // without After and Limit
	page   []event.Event
	whole  bool // the log has no more than page
}

// Peek is the next event, without going on; false: there is none.
func (t *Tale) Peek(ctx context.Context) (event.Event, bool, error) {
	if len(t.page) == 0 && !t.whole {
		var err error
		t.Filter.Limit = eventsAtOnce
		t.page, err = t.Log.EventsOf(ctx, t.TaskID, t.Filter)
		if err != nil {
			return event.Event{}, false, err
		}
		t.whole = len(t.page) < eventsAtOnce
	}
	if len(t.page) == 0 {
		return event.Event{}, false, nil
	}
	return t.page[0], true, nil
}

// Next is the next event, and goes on behind it.
func (t *Tale) Next(ctx context.Context) (event.Event, bool, error) {
	e, ok, err := t.Peek(ctx)
	if ok {
		t.page, t.Filter.After = t.page[1:], e.N
	}
	return e, ok, err
}
