package stream

import (
	"cmp"
	"context"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// chat makes a task of a message and streams what happens to it as chat messages. The
// first one back carries the message's key and its task: from then on it is stored,
// and the same key sent again, on this connection or a later one, is the same task.
// A message that names a task and has no text follows that one, after n.
func (w *socket) chat(ctx context.Context, in incoming) error {
	if in.Text == "" && in.TaskID != "" {
		return w.followChat(ctx, in)
	}
	if !w.who.Has(people.TasksWrite) {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "Sending tasks needs the right tasks:write.")
	}
	if rest, begins := handlers.NewThread(in.Text); begins {
		in.Text, in.Thread = rest, ""
	}
	follows, err := w.streams.Ids.Follows(ctx, w.who, in.Thread)
	if err != nil {
		return err
	}
	if follows == "" {
		in.Agent = cmp.Or(in.Agent, handlers.DefaultAgent(w.streams.Engine.Config().Agents))
	}
	w.inOrder(ctx)
	said, err := w.streams.Engine.Say(ctx, orchestrator.Submission{
		Agent: in.Agent, Text: in.Text, Repository: in.Repository, Key: in.Key, Handoffs: in.Handoffs, Follows: follows, Via: origin.From(origin.Chat), Chat: w.who.User.ID,
		RequesterID: w.who.User.ID, Requester: w.who.User.Name,
	}, w.who.User)
	if err != nil {
		return err
	}
	if err := w.json(handlers.Stored(said, in.Key)); err != nil || said.Message != nil {
		return err // whoever sent what was told to an agent follows its task already
	}
	t, root := said.Task, said.Root
	in.TaskID = t.ID
	if err := w.streamChat(ctx, in, root.ID); err != nil {
		// The message is stored all the same: its sender must not take this for a refusal.
		in.Key = ""
		return w.refuseMessage(err, in)
	}
	return nil
}

// inOrder lets the messages of one connection fall into different milliseconds: ids are
// in the order of time no finer than that, and a conversation is in the order of ids.
func (w *socket) inOrder(ctx context.Context) {
	if wait := time.Until(w.next); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	w.next = time.Now().Truncate(time.Millisecond).Add(time.Millisecond)
}

// followChat goes on with the messages of a task that was sent before.
func (w *socket) followChat(ctx context.Context, in incoming) error {
	if !w.who.Has(people.DelegationsRead) {
		return notReadable
	}
	t, err := w.streams.Ids.Task(ctx, w.who, in.TaskID)
	if err != nil {
		return err
	}
	in.TaskID, in.After = t.ID, min(max(in.After, 0), t.LastN)
	return w.streamChat(ctx, in, t.RootID)
}

func (w *socket) streamChat(ctx context.Context, in incoming, rootID string) error {
	out := &chatSink{w: w, rootID: rootID, key: in.Key}
	root, err := w.streams.Reader.Delegation(ctx, rootID)
	if err != nil {
		return err
	}
	t, err := w.streams.Reader.Task(ctx, in.TaskID)
	if err != nil {
		return err
	}
	// Somebody who has seen the last event of an ended task waits for nothing more.
	if last, ended := handlers.ChatEnd(root, t.LastN); ended && in.After >= t.LastN {
		return out.say(last...)
	}
	return w.subscribe(reader{taskID: in.TaskID, cursor: in.After, who: w.who}, out, maxSubscriptions)
}

// chatSink turns events into chat messages, until the root has ended.
type chatSink struct {
	w      *socket
	rootID string
	key    string
}

func (o *chatSink) gap(e event.Event) error { return o.w.json(e) }
func (o *chatSink) flush() error            { return o.w.write(nil) }

func (o *chatSink) say(messages ...handlers.ChatMessage) error {
	for _, m := range messages {
		m.Key = o.key
		if err := o.w.json(m); err != nil {
			return err
		}
	}
	return nil
}

func (o *chatSink) frame(f frame) error {
	if handlers.EndsTask(f.event, o.rootID) {
		return o.end(f.event)
	}
	if m, ok := handlers.ChatLine(f.event); ok {
		return o.say(m)
	}
	return nil
}

// end sends the answer or the error, then done. A task that was tried again since
// lives on: its old end is one more step.
func (o *chatSink) end(e event.Event) error {
	root, err := o.w.streams.Reader.Delegation(o.w.ctx, o.rootID)
	if err != nil {
		return err
	}
	last, ended := handlers.ChatEnd(root, e.N)
	if !ended {
		m, _ := handlers.ChatLine(e)
		return o.say(m)
	}
	if err := o.say(last...); err != nil {
		return err
	}
	return errDone
}
