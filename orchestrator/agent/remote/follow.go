package remote

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// listen takes the events of a stream until it ends, until it says that the task has
// ended, or until it is silent for too long: hangUp ends it then. begun is called with
// the first event.
func (s *session) listen(ctx context.Context, events iter.Seq2[a2a.Event, error], hangUp func(), begun func() bool) error {
	var idle *time.Timer
	for ev, err := range events {
		if err != nil {
			return err
		}
		if idle == nil {
			begun()
			idle = time.AfterFunc(s.o.Quiet, hangUp)
			defer idle.Stop()
		}
		idle.Reset(s.o.Quiet)
		if ev == nil {
			continue
		}
		if err := s.take(ctx, ev); err != nil {
			return err
		}
		if s.ended || s.reply != nil {
			return nil
		}
	}
	return nil
}

// follow watches the task until it has ended: by stream where there is one, and always
// by asking, because what counts is the task as its agent has it.
func (s *session) follow(ctx context.Context) error {
	met, hurry := s.o.Now(), false
	for {
		err := s.ask(ctx)
		switch {
		case err != nil && (ctx.Err() != nil || ofHost(err)):
			return err
		case s.final != nil:
			return nil
		case err == nil:
			met = s.o.Now()
		case permanent(err):
			return s.failed("does not tell how the task is", err)
		case s.o.Now().Sub(met) >= s.patience:
			return agent.Fail(agent.CodeRemote, "%s at %s took the task on and then was out of reach for %s: %s. Whether it goes on there is not known. Look there before you retry.",
				s.job.Agent.Name, s.where(), s.patience, strings.TrimRight(reason(err), "."))
		}
		if err == nil && s.streams {
			if err := s.subscribe(ctx); err != nil {
				return err
			}
			if s.final != nil {
				return nil
			}
		}
		if hurry = s.ended && !hurry; hurry {
			continue // the stream said so: the whole task is there to be read
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

// ask reads the whole task.
func (s *session) ask(ctx context.Context) error {
	limited, cancel := context.WithTimeout(quietly(ctx), askTime)
	defer cancel()
	if s.client == nil {
		if err := s.connect(limited); err != nil {
			return err
		}
	}
	s.ended = false
	task, err := s.client.GetTask(limited, &a2a.GetTaskRequest{ID: s.id})
	if err != nil {
		return err
	}
	if task.ID != s.id {
		return s.strange("asked for task %s it gave %s", title(string(s.id)), title(string(task.ID)))
	}
	return s.take(ctx, task)
}

// subscribe follows the task's stream while it lasts. An error of the connection is none
// of the run: the next question tells more.
func (s *session) subscribe(ctx context.Context) error {
	quiet, hangUp := context.WithCancel(quietly(ctx))
	defer hangUp()
	silent := time.AfterFunc(s.o.Quiet, hangUp) // until the first event
	defer silent.Stop()
	err := s.listen(ctx, s.client.SubscribeToTask(quiet, &a2a.SubscribeToTaskRequest{ID: s.id}), hangUp, silent.Stop)
	if _, failed := errors.AsType[*agent.Failure](err); failed || err != nil && (ctx.Err() != nil || ofHost(err)) {
		return err
	}
	if err != nil && permanent(err) {
		s.streams = false // there is no such stream, or it is endless: asking is enough
	}
	return nil
}
