package telegram

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// order is a command as somebody wrote it.
type order struct {
	update int64
	m      *message
	name   string // without the slash
	rest   string
	user   *people.User // nil: nobody's account
}

// What people read who write to the bot.
const (
	helpText = `/pending – what you can decide
/status ID – how a request or a task stands; the last 6 characters do
/send AGENT TEXT – give an agent a task (role operator)
/send --enable-handoffs AGENT TEXT – the same, and agents may hand on where that is opt-in
/new TEXT – begin another thread, with the agent of your last task here (role operator)
A reply to the message of a task of yours goes on with it
/cancel ID – stop a task (role operator)
/retry ID – run a task again that failed (role operator)
/mute, /unmute – whether the messages of your tasks go on until their ends
/link CODE – connect this account to yours in Gatehouse
/help – this list`
	unlinkedHelp = `/link CODE – connect this account to yours in Gatehouse
/help – this list
The code comes from Settings → Channels, or from: gatehouse link telegram YOUR-NAME`
)

// commanded acts on a message that answers no question. In groups, what is no command
// for this bot is none of its business.
func (d *Desk) commanded(ctx context.Context, updateID int64, m *message) error {
	o, ok, err := d.parse(ctx, m)
	if err != nil {
		return err
	}
	if !ok {
		return d.chatter(ctx, m)
	}
	o.update = updateID
	if o.user, err = d.who(ctx, m.From.ID); err != nil {
		return err
	}
	switch o.name {
	case "start", "link":
		return d.link(ctx, o)
	case "help":
		return d.help(ctx, o)
	}
	act, ok := map[string]func(context.Context, order) error{
		"pending": d.pending, "status": d.status, "send": d.sendTask, "cancel": d.cancel, "retry": d.retry,
		"new": d.begin, "mute": d.mute, "unmute": d.mute, "skip": d.skip,
	}[o.name]
	switch {
	case !ok && !m.private():
		return nil
	case o.user == nil:
		return d.tellStranger(ctx, m, notLinked)
	case !ok:
		return d.tell(ctx, m, "There is no /"+name(o.name)+". /help lists what you can write.")
	case !d.Channel.ours(m):
		return d.tell(ctx, m, elsewhere)
	default:
		return act(ctx, o)
	}
}

// parse reads "/name rest", "/name@bot rest" and "/status_ID", as lists have it to be
// tapped. A command for another bot is none.
func (d *Desk) parse(ctx context.Context, m *message) (order, bool, error) {
	word, rest := m.Text, ""
	if i := strings.IndexFunc(m.Text, unicode.IsSpace); i >= 0 {
		word, rest = m.Text[:i], strings.TrimSpace(m.Text[i:])
	}
	name, isCommand := strings.CutPrefix(word, "/")
	if !isCommand || name == "" {
		return order{}, false, nil
	}
	name, bot, addressed := strings.Cut(name, "@")
	if addressed {
		me, err := d.Bot(ctx)
		if err != nil {
			return order{}, false, fmt.Errorf("asking for the bot's name: %w", err)
		}
		if !strings.EqualFold(bot, me.Username) {
			return order{}, false, nil
		}
	}
	name = strings.ToLower(name)
	if short, id, ok := strings.Cut(name, "_"); ok && rest == "" {
		name, rest = short, id
	}
	return order{m: m, name: name, rest: rest}, true, nil
}

// chatter answers what is no command: in private, with what can be written.
func (d *Desk) chatter(ctx context.Context, m *message) error {
	if !m.private() || strings.HasPrefix(m.Text, "/") {
		return nil
	}
	u, err := d.who(ctx, m.From.ID)
	switch {
	case err != nil:
		return err
	case u == nil:
		return d.tellStranger(ctx, m, notLinked)
	}
	if _, err := d.Memory.OpenPrompt(ctx, m.Chat.ID, m.From.ID, d.Now().Add(-promptLife)); err == nil {
		return d.tell(ctx, m, "To give your reason, reply to the question. Nothing was decided.")
	}
	if d.asksHere(ctx, m.Chat.ID) {
		return d.tell(ctx, m, "To answer a question of an agent, reply to its message. Nothing was answered.")
	}
	return d.tell(ctx, m, "/help lists what you can write.")
}

func (d *Desk) skip(ctx context.Context, o order) error {
	return d.tell(ctx, o.m, "/skip is a reply to the question that follows Reject.")
}

func (d *Desk) help(ctx context.Context, o order) error {
	where := ""
	if !o.m.private() {
		where = "\n\n" + d.number(o.m)
	}
	if o.user == nil {
		return d.tellStranger(ctx, o.m, notLinked+"\n\n"+unlinkedHelp+where)
	}
	return d.tell(ctx, o.m, helpText+where)
}

// link connects the account to the person that the code was made for. Codes are for
// private chats: in a group others could be faster.
func (d *Desk) link(ctx context.Context, o order) error {
	tell := d.tell
	if o.user == nil {
		tell = d.tellStranger
	}
	switch {
	case !o.m.private() && o.rest != "":
		return tell(ctx, o.m, "Others can read this code here. Get a new one, and send it to me in a private chat.")
	case !o.m.private():
		return tell(ctx, o.m, "Send me /link CODE in a private chat. The code comes from Settings → Channels.\n\n"+d.number(o.m))
	case o.rest == "" && o.user != nil:
		return tell(ctx, o.m, d.welcome(ctx, *o.user)+"\n\n"+helpText)
	case o.rest == "":
		return tell(ctx, o.m, notLinked+"\n\n"+unlinkedHelp)
	}
	u, err := d.Linker.UseLinkCode(ctx, Name, o.rest, o.m.From.ID, o.m.From.name())
	if err == nil {
		d.Gateway.PeopleChanged()
		return d.tell(ctx, o.m, d.welcome(ctx, u)+"\n\n"+helpText)
	}
	e, ok := known(err)
	if !ok {
		return fmt.Errorf("linking an account: %w", err)
	}
	text := oneLine(e.Message)
	if o.user != nil {
		text += " This account is linked to " + o.user.Name + "."
	}
	return tell(ctx, o.m, text)
}

// enableHandoffs is the word before the agent that lets a task's agents hand on; the command
// line has the same one. Phones make one long dash of the two.
var enableHandoffs = []string{"--enable-handoffs", "—enable-handoffs", "–enable-handoffs"}

// sendTask gives an agent a task, whose message the outbox sends and keeps up to date. The
// same update twice is the same task and the same message.
func (d *Desk) sendTask(ctx context.Context, o order) error {
	if !d.may(o, people.TasksWrite) {
		return d.tell(ctx, o.m, "Sending tasks needs the role operator. Ask an admin.")
	}
	to, text := firstWord(o.rest)
	handoffs := slices.Contains(enableHandoffs, to)
	if handoffs {
		to, text = firstWord(text)
	}
	if to == "" || text == "" {
		return d.tell(ctx, o.m, "Write the agent and what to do, as in: /send kik Fix the retry loop")
	}
	return d.submit(ctx, o, orchestrator.Submission{Agent: to, Text: text, Handoffs: handoffs})
}

// submit makes a task of what somebody sent, and has its message kept up to date. What goes on
// with work that is under way is told to its agent, which is said.
func (d *Desk) submit(ctx context.Context, o order, s orchestrator.Submission) error {
	me, err := d.Bot(ctx)
	if err != nil {
		return fmt.Errorf("asking for the bot's number: %w", err)
	}
	s.Via, s.Chat, s.Key = origin.From(Name), strconv.FormatInt(o.m.Chat.ID, 10), fmt.Sprintf("%s:%d:%d", Name, me.ID, o.update)
	s.RequesterID, s.Requester = o.user.ID, o.user.Name
	said, err := d.Engine.Say(ctx, s, *o.user)
	if err != nil {
		return d.sorry(ctx, o, err)
	}
	t := said.Task
	if said.Message != nil {
		return d.tell(ctx, o.m, "Said to "+name(said.Root.To)+", which reads it before its next step.")
	}
	told := approval.Report{TaskID: t.ID, Channel: Name, Address: o.m.place().String(), Kind: approval.LiveReport}
	if !o.m.private() {
		told.Answers = int64(o.m.ID)
	}
	return d.Gateway.Follow(ctx, told)
}

func firstWord(s string) (word, rest string) {
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// cancel stops a task or a part of it.
func (d *Desk) cancel(ctx context.Context, o order) error {
	if !d.may(o, people.DelegationsControl) {
		return d.tell(ctx, o.m, "Cancelling needs the role operator. Ask an admin.")
	}
	if o.rest == "" {
		return d.tell(ctx, o.m, "Write which task, as in: /cancel 7f3k9q. The last 6 characters of its id do.")
	}
	id, err := d.find(ctx, o.rest, orchestrator.TaskPrefix, orchestrator.DelegationPrefix)
	if err != nil {
		return d.sorry(ctx, o, err)
	}
	got, err := d.Engine.Cancel(ctx, id, o.user.Name)
	if err != nil {
		return d.sorry(ctx, o, err)
	}
	s := &sheet{}
	s.put("■ Cancelled: ")
	s.as(asCode, title(got.Text))
	s.put(" · ", name(got.To), ". Everything below it stops, too.")
	return d.say(ctx, o.m, s)
}

// retry runs a task again that did not complete.
func (d *Desk) retry(ctx context.Context, o order) error {
	if !d.may(o, people.DelegationsControl) {
		return d.tell(ctx, o.m, "Running a task again needs the role operator. Ask an admin.")
	}
	if o.rest == "" {
		return d.tell(ctx, o.m, "Write which task, as in: /retry 7f3k9q. The last 6 characters of its id do.")
	}
	id, err := d.find(ctx, o.rest, orchestrator.TaskPrefix, orchestrator.DelegationPrefix)
	if err != nil {
		return d.sorry(ctx, o, err)
	}
	got, err := d.Engine.Retry(ctx, id, *o.user)
	if err != nil {
		return d.sorry(ctx, o, err)
	}
	s := &sheet{}
	s.put("It runs again: ")
	s.as(asCode, title(got.Text))
	s.put(" · ", name(got.To))
	return d.say(ctx, o.m, s)
}

// mute keeps whether the messages of somebody's tasks go on.
func (d *Desk) mute(ctx context.Context, o order) error {
	muted := o.name == "mute"
	if err := d.Muter.SetMuted(ctx, o.user.Name, o.user.ID, muted); err != nil {
		return fmt.Errorf("muting the messages of somebody's tasks: %w", err)
	}
	if muted {
		return d.tell(ctx, o.m, "Muted: the messages of your tasks stay as they are. "+
			"/status ID says how one stands; /unmute ends this.")
	}
	return d.tell(ctx, o.m, "The messages of your tasks go on until their ends.")
}

// title is the first line of a task's text.
func title(text string) string {
	if t := cut(oneLine(orchestrator.Title(text)), titleLimit); t != "" {
		return t
	}
	return "(no title)"
}

func (d *Desk) may(o order, right people.Scope) bool { return people.As(*o.user, nil).Has(right) }

// sorry says why a command did nothing; what may go away by itself comes again.
func (d *Desk) sorry(ctx context.Context, o order, err error) error {
	if e, ok := known(err); ok {
		return d.tell(ctx, o.m, cut(oneLine(e.Message), 1000))
	}
	return err
}
