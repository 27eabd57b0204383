package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// Gateway is what taps and commands need of approval.Gateway.
type Gateway interface {
	Request(ctx context.Context, id string) (approval.Request, error)
	Requests(ctx context.Context, f approval.Filter) (approval.Page, error)
	Electorate(ctx context.Context) (approval.Electorate, error)
	Consider(ctx context.Context, b approval.Ballot) (approval.Request, error)
	Decide(ctx context.Context, b approval.Ballot) (approval.Request, error)
	Refused(ctx context.Context, f approval.Refusal) error
	Show(ctx context.Context, requestID string, channel origin.Channel, address string) error
	Follow(ctx context.Context, r approval.Report) error
	// Reported is the task that a message is about; ErrNotFound where it is about none.
	Reported(ctx context.Context, channel origin.Channel, address, message string) (taskID string, err error)
	// PeopleChanged says that an account was linked: what waits is shown there, too.
	PeopleChanged()
}

// Engine takes tasks, stops them and runs them again.
type Engine interface {
	Submit(ctx context.Context, s orchestrator.Submission) (orchestrator.Task, orchestrator.Delegation, bool, error)
	// Say is Submit for what goes on with a thread: an agent that still works there is told.
	Say(ctx context.Context, s orchestrator.Submission, by people.User) (orchestrator.Spoken, error)
	Cancel(ctx context.Context, id, actor string) (orchestrator.Delegation, error)
	Retry(ctx context.Context, id string, by people.User) (orchestrator.Delegation, error)
}

// Reader reads tasks by what people write for their ids.
type Reader interface {
	Task(ctx context.Context, id string) (orchestrator.Task, error)
	Delegation(ctx context.Context, id string) (orchestrator.Delegation, error)
	Resolve(ctx context.Context, ending string, limit int, prefixes ...string) ([]string, error)
}

// Linker uses one-time codes.
type Linker interface {
	UseLinkCode(ctx context.Context, channel origin.Channel, code string, account int64, name string) (people.User, error)
}

// Muter keeps whether somebody wants the messages of their tasks to go on.
type Muter interface {
	SetMuted(ctx context.Context, actor, userID string, muted bool) error
}

// Memory is what buttons and questions stand for.
type Memory interface {
	ButtonStore
	// Button returns what the button with this hash stands for; ErrNotFound when nothing.
	Button(ctx context.Context, hash string) (Bound, error)
	// Prompt returns the question that a message asked; ErrNotFound when it asked none.
	Prompt(ctx context.Context, chat int64, message int) (Prompt, error)
	// OpenPrompt returns the newest question to an account in a chat since then that has no answer; ErrNotFound.
	OpenPrompt(ctx context.Context, chat, account int64, since time.Time) (Prompt, error)
	// UsePrompt records that a question was answered, and reports whether this was the first answer.
	UsePrompt(ctx context.Context, chat int64, message int, at time.Time) (bool, error)
}

// DeskOptions is what a Desk is made of. All but Now and Log are needed.
type DeskOptions struct {
	Channel  *Channel
	Bot      func(ctx context.Context) (Me, error)
	Gateway  Gateway
	Engine   Engine
	Reader   Reader
	Accounts Accounts
	Linker   Linker
	Muter    Muter
	Memory   Memory
	Now      func() time.Time // time.Now when nil
	Log      *slog.Logger     // slog.Default when nil
}

// Desk acts on what people do in Telegram: taps, answers and commands. Handle is a
// Handler: the same update twice decides nothing twice. Who somebody is, is told by
// the number of their account alone, and what they may is looked up at each act.
type Desk struct {
	DeskOptions
	sender    Sender
	strangers strangers
	presses   presses
}

// NewDesk makes a desk. It asks nobody.
func NewDesk(o DeskOptions) *Desk {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Desk{DeskOptions: o, sender: o.Channel.sender}
}

var _ Handler = (*Desk)(nil).Handle

// update is what is read of one; everything else that Telegram writes is ignored.
type update struct {
	ID       int64       `json:"update_id"`
	Message  *message    `json:"message"`
	Callback *tap        `json:"callback_query"`
	Member   *membership `json:"my_chat_member"`
}

type account struct {
	ID        int64  `json:"id"`
	Bot       bool   `json:"is_bot"`
	Username  string `json:"username"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
}

// name is how people call the account; it proves nothing.
func (a account) name() string {
	if a.Username != "" {
		return a.Username
	}
	return strings.TrimSpace(a.FirstName + " " + a.LastName)
}

type message struct {
	ID      int      `json:"message_id"`
	Thread  int      `json:"message_thread_id"`
	Topic   bool     `json:"is_topic_message"`
	From    *account `json:"from"`
	As      *chat    `json:"sender_chat"` // written in the name of a group or channel: nobody's account
	Chat    chat     `json:"chat"`
	Text    string   `json:"text"`
	ReplyTo *message `json:"reply_to_message"`
}

type chat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

// place is where an answer to the message goes.
func (m *message) place() Place {
	p := Place{Chat: m.Chat.ID}
	if m.Topic { // answers in other groups have thread numbers as well, which are no topics
		p.Thread = m.Thread
	}
	return p
}

func (m *message) private() bool { return m.Chat.Type == "private" && m.Chat.ID > 0 }

type tap struct {
	ID      string   `json:"id"`
	From    account  `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

// codeMalformed is an update that can be read in two ways.
const codeMalformed = "malformed_update"

// Handle acts on one update. An error means that it should come again. One that could be
// read in two ways does nothing and is recorded; it would not be better the next time.
func (d *Desk) Handle(ctx context.Context, body []byte) error {
	var u update
	if err := json.Unmarshal(body, &u); err != nil {
		return fmt.Errorf("reading an update of Telegram: %w", err)
	}
	if err := strict(body); err != nil {
		d.Log.Warn("an update from Telegram is not read", "update", u.ID, "err", err)
		if ok, _ := d.presses.take(crowd, d.Now()); !ok {
			return nil
		}
		return d.audit(ctx, account{}, nil, Bound{}, codeMalformed, err.Error())
	}
	switch {
	case u.Callback != nil:
		return d.tapped(ctx, *u.Callback)
	case u.Message != nil && u.Message.From != nil && !u.Message.From.Bot && u.Message.As == nil:
		return d.said(ctx, u.ID, u.Message)
	case u.Member != nil:
		return d.joined(ctx, *u.Member)
	default:
		return nil
	}
}

// said acts on a message: a reason that was asked for, an answer to a question of an agent, what
// goes on with a task, a command, or neither.
func (d *Desk) said(ctx context.Context, updateID int64, m *message) error {
	if m.ReplyTo != nil {
		p, err := d.Memory.Prompt(ctx, m.Chat.ID, m.ReplyTo.ID)
		switch {
		case err == nil && p.Account != 0:
			return d.answered(ctx, p, m)
		case err == nil && !isCommand(m.Text):
			return d.replied(ctx, p, m)
		case err != nil && !errors.Is(err, orchestrator.ErrNotFound):
			return err
		}
		if took, err := d.followed(ctx, updateID, m); took || err != nil {
			return err
		}
	}
	return d.commanded(ctx, updateID, m)
}

// who returns the person whose account it is; nil when nobody's.
func (d *Desk) who(ctx context.Context, accountID int64) (*people.User, error) {
	u, err := d.Accounts.UserByAccount(ctx, Name, accountID)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading whose account this is: %w", err)
	}
	return &u, nil
}

// say answers a message. People who ask are not held up as new cards are.
func (d *Desk) say(ctx context.Context, m *message, s *sheet) error {
	out := s.message()
	if !m.private() {
		out.ReplyTo = m.ID
	}
	return d.send(ctx, m.place(), out)
}

func (d *Desk) send(ctx context.Context, to Place, out Message) error {
	_, err := d.sender.Send(ctx, to, out)
	d.Channel.pace.note(to, d.Now())
	if approval.IsGone(err) {
		d.Log.Info("an answer has nowhere to go", "chat", to.String(), "err", err)
		return nil // coming again changes nothing
	}
	return err
}

// tell is say with plain text.
func (d *Desk) tell(ctx context.Context, m *message, text string) error {
	s := &sheet{}
	s.put(text)
	return d.say(ctx, m, s)
}

// known returns the sentence of an error that people can act on; others come again.
func known(err error) (*orchestrator.Error, bool) {
	var e *orchestrator.Error
	return e, errors.As(err, &e)
}
