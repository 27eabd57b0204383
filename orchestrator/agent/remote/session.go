package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/strictjson"
	"gatehouse/orchestrator/textcut"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

// provider marks the blocks of a turn that are this package's own.
const provider = "a2a"

// session is one run. It is used by one goroutine; the library streams in the same one.
type session struct {
	o        Options
	job      agent.Job
	host     agent.Host
	patience time.Duration // see Options.Ack

	card    *a2a.AgentCard
	client  *a2aclient.Client
	streams bool

	id    a2a.TaskID // of the task elsewhere, once it acknowledged
	state a2a.TaskState
	ended bool         // a stream said that the task has ended
	final *a2a.Task    // the whole task, once it has ended
	reply *a2a.Message // an answer without a task
	said  string       // the last line of progress, to say each once
	shown int          // bytes that were shown as they were written
}

// mark is what turn 1 remembers of the acknowledgement.
type mark struct {
	Task a2a.TaskID `json:"task"`
}

// acknowledged takes over what the first turn remembers.
func (s *session) acknowledged(turns []agent.Turn) error {
	if len(turns) == 0 {
		return nil
	}
	for _, b := range turns[0].Message.Blocks {
		if b.Type == agent.OpaqueBlock && b.Provider == provider {
			var m mark
			if err := json.Unmarshal(b.Opaque, &m); err != nil {
				return fmt.Errorf("read the first turn: %w", err)
			}
			s.id = m.Task
		}
	}
	return nil
}

// acknowledge notes that the agent has the task, and stores it.
func (s *session) acknowledge(ctx context.Context, by a2a.Event) error {
	info, how := by.TaskInfo(), "answered at once"
	blocks := []agent.Block{{Type: agent.TextBlock, Text: s.text()}}
	if _, at := by.(*a2a.Message); !at {
		if info.TaskID == "" || len(info.TaskID) > 256 {
			return s.strange("its task has no usable id")
		}
		s.id = info.TaskID
		opaque, err := json.Marshal(mark{Task: s.id})
		if err != nil {
			return fmt.Errorf("write the first turn: %w", err)
		}
		blocks, how = append(blocks, agent.Block{Type: agent.OpaqueBlock, Provider: provider, Opaque: opaque}), "took it on as task "+title(string(s.id))
	}
	line := s.job.Agent.Name + " at " + s.where() + " " + how
	if name := title(s.card.Name); name != "" {
		line += " (" + name + ")"
	}
	if err := s.host.Progress(ctx, line); err != nil {
		return hostError{err}
	}
	return s.save(ctx, agent.Turn{N: 1, Message: agent.Message{Role: agent.FromUser, Blocks: blocks}})
}

// take looks at one event of the task. The first one acknowledges it.
func (s *session) take(ctx context.Context, ev a2a.Event) error {
	if s.reply != nil || s.final != nil {
		return nil
	}
	if s.id == "" {
		if err := s.acknowledge(ctx, ev); err != nil {
			return err
		}
	}
	if id := ev.TaskInfo().TaskID; id != s.id && id != "" {
		return s.strange("it spoke of task %s instead of %s", title(string(id)), title(string(s.id)))
	}
	switch e := ev.(type) {
	case *a2a.Message:
		if s.id != "" { // a word beside the task; the task has the answer
			return s.progress(ctx, textOf(e.Parts))
		}
		s.reply = e
		return nil
	case *a2a.Task:
		if err := s.moved(ctx, e.Status); err != nil {
			return err
		}
		if s.ended {
			s.final = e
		}
		return nil
	case *a2a.TaskStatusUpdateEvent:
		return s.moved(ctx, e.Status)
	case *a2a.TaskArtifactUpdateEvent:
		if e.Artifact != nil {
			s.show(textOf(e.Artifact.Parts))
		}
	}
	return nil
}

// moved notes the state of the task and shows what the agent says with it.
func (s *session) moved(ctx context.Context, st a2a.TaskStatus) error {
	switch st.State {
	case a2a.TaskStateSubmitted, a2a.TaskStateWorking:
		s.ended = false
	case a2a.TaskStateCompleted, a2a.TaskStateFailed, a2a.TaskStateCanceled, a2a.TaskStateRejected, a2a.TaskStateInputRequired, a2a.TaskStateAuthRequired:
		s.ended = true
	default:
		return s.strange("its task is in a state that A2A does not have, %q", title(string(st.State)))
	}
	line := ""
	if st.Message != nil {
		line = textOf(st.Message.Parts)
	}
	if strings.TrimSpace(line) == "" && st.State != s.state {
		line = s.job.Agent.Name + " is " + word(st.State)
	}
	s.state = st.State
	return s.progress(ctx, line)
}

// maxLine is how much of one message is shown as progress, in characters.
const maxLine = 2000

// progress shows a line that was not shown just before.
func (s *session) progress(ctx context.Context, text string) error {
	text = strings.TrimSpace(textcut.Characters(s.hide(clean(text)), maxLine))
	if text == "" || text == s.said {
		return nil
	}
	s.said = text
	if err := s.host.Progress(ctx, text); err != nil {
		return hostError{err}
	}
	return nil
}

// maxShown is how much of an answer that is being written is shown, in bytes.
const maxShown = 1 << 20

// show passes on a part of the answer that is being written.
func (s *session) show(text string) {
	if text = s.hide(clean(text)); text == "" || s.shown > maxShown {
		return
	}
	s.shown += len(text)
	s.host.Delta(agent.Delta{Turn: 2, Kind: agent.DeltaText, Text: text})
}

func (s *session) save(ctx context.Context, t agent.Turn) error {
	t.At = s.o.Now().UTC()
	if err := s.host.SaveTurn(ctx, t, false); err != nil {
		return hostError{err}
	}
	return nil
}

// hostError is what the engine answered: it ends the run, where an error of the
// connection may heal.
type hostError struct{ error }

func (e hostError) Unwrap() error { return e.error }

func ofHost(err error) bool {
	_, is := errors.AsType[hostError](err)
	return is
}

// strange is an answer that is not of the protocol.
func (s *session) strange(format string, args ...any) *agent.Failure {
	return agent.Fail(agent.CodeProtocol, "%s does not keep to A2A: %s. Ask those who run it.", s.job.Agent.Name, fmt.Sprintf(format, args...))
}

// pause waits for the time between two tries, or for the end of ctx.
func (s *session) pause(ctx context.Context) error {
	t := time.NewTimer(s.o.Poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// permanent reports whether trying again would not help.
func permanent(err error) bool {
	if _, ok := errors.AsType[*agent.Failure](err); ok {
		return true
	}
	if status, ok := errors.AsType[refusedStatus](err); ok {
		return status < 500 && status != 408 && status != 425 && status != 429
	}
	if errors.Is(err, errElsewhere) || errors.Is(err, errTooMuch) || errors.Is(err, strictjson.Err) {
		return true
	}
	return slices.ContainsFunc([]error{a2a.ErrTaskNotFound, a2a.ErrUnauthenticated, a2a.ErrUnauthorized, a2a.ErrMethodNotFound, a2a.ErrInvalidParams, a2a.ErrInvalidRequest,
		a2a.ErrUnsupportedOperation, a2a.ErrUnsupportedContentType, a2a.ErrVersionNotSupported, a2a.ErrExtensionSupportRequired}, func(e error) bool {
		return errors.Is(err, e)
	})
}
