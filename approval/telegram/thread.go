package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// about is the task that a message is about, where this person sent it: the message "" is the
// newest one of the place. nil where it is about none, or somebody else's.
func (d *Desk) about(ctx context.Context, m *message, message string, u *people.User) (*orchestrator.Task, error) {
	id, err := d.Gateway.Reported(ctx, Name, m.place().String(), message)
	if err == nil {
		var t orchestrator.Task
		if t, err = d.Reader.Task(ctx, id); err == nil && u != nil && t.RequesterID == u.ID {
			return &t, nil
		}
	}
	if errors.Is(err, orchestrator.ErrNotFound) {
		err = nil
	}
	return nil, err
}

// followed takes the reply of whoever sent a task to the message about it: it goes on with the
// task's thread. What others reply there is talk among people.
func (d *Desk) followed(ctx context.Context, updateID int64, m *message) (took bool, err error) {
	if strings.HasPrefix(m.Text, "/") {
		return false, nil
	}
	u, err := d.who(ctx, m.From.ID)
	if err != nil || u == nil {
		return false, err
	}
	t, err := d.about(ctx, m, strconv.Itoa(m.ReplyTo.ID), u)
	if err != nil || t == nil {
		return false, err
	}
	o := order{update: updateID, m: m, user: u}
	text := strings.TrimSpace(m.Text)
	switch {
	case !d.Channel.ours(m):
		return true, d.tell(ctx, m, elsewhere)
	case !d.may(o, people.TasksWrite):
		return true, d.tell(ctx, m, "Sending tasks needs the role operator. Ask an admin.")
	case text == "":
		return true, d.tell(ctx, m, "Send it as text, as a reply to the message of the task. Nothing was sent.")
	}
	return true, d.submit(ctx, o, orchestrator.Submission{Follows: t.ID, Text: text})
}

// begin starts another thread, with the agent of the task that is replied to, or of the newest
// that this person sent from here.
func (d *Desk) begin(ctx context.Context, o order) error {
	if !d.may(o, people.TasksWrite) {
		return d.tell(ctx, o.m, "Sending tasks needs the role operator. Ask an admin.")
	}
	replied := ""
	if o.m.ReplyTo != nil {
		replied = strconv.Itoa(o.m.ReplyTo.ID)
	}
	t, err := d.about(ctx, o.m, replied, o.user)
	switch {
	case err != nil:
		return err
	case t == nil:
		return d.tell(ctx, o.m, "Write the agent and what to do, as in: /send kik Fix the retry loop. After that, /new goes to the same agent.")
	case o.rest == "":
		return d.tell(ctx, o.m, "Write what to do, as in: /new Fix the retry loop. It goes to "+name(t.Agent)+", in a thread of its own.")
	}
	return d.submit(ctx, o, orchestrator.Submission{Agent: t.Agent, Text: o.rest})
}
