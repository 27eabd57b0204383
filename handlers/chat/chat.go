package chat

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/chat"

	"github.com/labstack/echo/v4"
)

// How much of a conversation one page has.
const (
	chatPage   = 15
	chatMost   = 60 // with all that came since the page was loaded
	chatOthers = 8  // requests of others
	chatList   = 30 // threads in the list
	// chatRecent is how long a decided request of others stays, as one line.
	chatRecent = 15 * time.Minute
)

// chatRefusal is what was not taken, shown with what was typed.
type chatRefusal struct {
	status  int
	send    views.SendForm
	request string // the card that a verdict was refused on
	message string
	comment string
}

// Chat answers GET /chat: the person's own conversation, the newest at the bottom.
// ?thread= is one thread alone, ?before= goes back, ?from= is everything since a message,
// ?task= one message alone, ?request= one request of others, ?threads= lists older threads.
func (p *Pages) Chat(c echo.Context) error { return p.chat(c, chatRefusal{status: http.StatusOK}) }

func (p *Pages) chat(c echo.Context, no chatRefusal) error {
	f, err := p.Begin(c, views.SectionChat, "Chat")
	if err != nil {
		return err
	}
	page := view.ChatPage{Chrome: f.Chrome, PersonID: f.Who.User.ID, MayWrite: f.Who.Has(people.TasksWrite), LogPath: f.Chrome.Path}
	if err := p.thread(c, f, &page); err != nil {
		return err
	}
	switch {
	case c.QueryParam("task") != "" && no.send.Error == "":
		err = p.chatOne(c, f, &page)
	case c.QueryParam("request") != "":
		err = p.chatRequest(c, f, &page)
	default:
		if err = p.conversation(c, f, &page); err == nil && !page.Later && page.Thread == "" {
			page.Others, err = p.chatOthers(f)
		}
	}
	if err != nil {
		return err
	}
	page.Send = p.chatForm(page, no.send)
	if no.request != "" {
		showRefusal(&page, no)
	}
	return handlers.Render(c, no.status, view.Chat(page))
}

// conversation reads one page of the person's own messages.
func (p *Pages) conversation(c echo.Context, f *handlers.Frame, page *view.ChatPage) error {
	before, from := c.QueryParam("before"), c.QueryParam("from")
	if err := knownPlaces(before, from); err != nil {
		return err
	}
	list := orchestrator.Filter{Conversation: f.Who.User.ID, Thread: page.Thread, After: before, Limit: chatPage}
	if from != "" {
		list.Limit = chatMost
	}
	found, err := p.Reader.List(f.Ctx, list)
	if err != nil {
		return err
	}
	page.Later = before != ""
	roots := found.Items
	if from != "" {
		if i := slices.IndexFunc(roots, func(d orchestrator.Delegation) bool { return d.ID < from }); i >= 0 {
			found.Next, roots = from, roots[:i]
		}
	}
	for _, root := range slices.Backward(roots) {
		t, err := p.chatTask(f, root)
		if err != nil {
			return err
		}
		page.Tasks = append(page.Tasks, t)
	}
	if found.Next != "" {
		page.OlderHref = page.Within("before=" + found.Next)
	}
	if !page.Later && len(roots) > 0 {
		// What comes later is added below: the first message shown stays the first.
		page.LogPath = page.Within("from=" + roots[len(roots)-1].ID)
	}
	return nil
}

// knownPlaces refuses cursors that no answer gave.
func knownPlaces(cursors ...string) error {
	for _, cursor := range cursors {
		if cursor != "" && !handlers.IsID(cursor, orchestrator.DelegationPrefix) {
			return handlers.Refuse(orchestrator.CodeBadRequest, "That place in the conversation is not known. Start at the newest message.")
		}
	}
	return nil
}

// thread finds the thread that is open, and lists the person's threads.
func (p *Pages) thread(c echo.Context, f *handlers.Frame, page *view.ChatPage) error {
	if !page.MayWrite {
		return nil
	}
	if id := c.FormValue("thread"); id != "" {
		t, err := p.Ids.Thread(f.Ctx, f.Who, id)
		if err == nil && t.Thread != "" {
			t, err = p.Reader.Task(f.Ctx, t.Thread)
		}
		if err != nil {
			return err
		}
		page.Thread, page.Title = t.ID, orchestrator.Title(t.Text)
		page.Chrome.Title = views.VisibleText(page.Title)
	}
	before := c.QueryParam("threads")
	if err := knownPlaces(before); err != nil {
		return err
	}
	all, err := p.Reader.Threads(f.Ctx, f.Who.User.ID, before, chatList+1)
	if len(all) > chatList {
		all = all[:chatList]
		page.MoreHref = views.MoreThreadsHref(all[chatList-1].RootID)
	}
	for _, t := range all {
		page.Threads = append(page.Threads, view.ThreadRow{ID: t.ID, Title: t.Title, State: string(t.State), At: t.UpdatedAt, Count: t.Count})
	}
	return err
}

// chatOne is one of the person's messages alone.
func (p *Pages) chatOne(c echo.Context, f *handlers.Frame, page *view.ChatPage) error {
	t, err := p.Ids.Task(f.Ctx, f.Who, c.QueryParam("task"))
	if err != nil {
		return err
	}
	if t.RequesterID != f.Who.User.ID { // from elsewhere it may be in a thread
		return handlers.NotFound("message", c.QueryParam("task"))
	}
	root, err := p.Reader.Delegation(f.Ctx, t.RootID)
	if err != nil {
		return err
	}
	one, err := p.chatTask(f, root)
	page.Tasks, page.Alone = []view.ChatTask{one}, true
	return err
}

// chatRequest is one request of others alone.
func (p *Pages) chatRequest(c echo.Context, f *handlers.Frame, page *view.ChatPage) error {
	if !f.Who.Has(people.ApprovalsRead) {
		return handlers.NotFound("request", c.QueryParam("request"))
	}
	id, err := p.Ids.Request(f.Ctx, c.QueryParam("request"))
	if err != nil {
		return err
	}
	r, err := p.Requests.Request(f.Ctx, id)
	if err != nil {
		return handlers.Known(err, "request", id)
	}
	page.Others, page.Alone = []view.ChatCard{p.chatCard(f, r)}, true
	return nil
}

// chatOthers are the requests of others that this person may decide and that have a
// card in the chat, with those that were decided a moment ago.
func (p *Pages) chatOthers(f *handlers.Frame) ([]view.ChatCard, error) {
	if !f.Who.Has(people.ApprovalsDecide) {
		return nil, nil
	}
	mine := func(r approval.Request) bool {
		own := r.Via.Kind == origin.Chat && r.RequesterID == f.Who.User.ID
		return !own && inChat(r) && f.Voters.May(f.Who.Principal, r, approval.Reject) == nil
	}
	recent, err := p.Requests.Requests(f.Ctx, approval.Filter{Limit: 50, States: []approval.State{approval.Approved, approval.Rejected,
		approval.ChangesRequested, approval.Answered, approval.Landed, approval.Expired, approval.Cancelled, approval.Failed, approval.Stale}})
	if err != nil {
		return nil, err
	}
	var found []approval.Request
	for _, r := range f.Pending {
		if mine(r) && len(found) < chatOthers {
			found = append(found, r)
		}
	}
	for _, r := range recent.Items {
		if r.DecidedAt != nil && f.Chrome.Now.Sub(*r.DecidedAt) < chatRecent && mine(r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b approval.Request) int { return strings.Compare(a.ID, b.ID) })
	var cards []view.ChatCard
	for _, r := range found {
		cards = append(cards, p.chatCard(f, r))
	}
	return cards, nil
}

// inChat reports whether the mode of a request's agent lets the chat in.
func inChat(r approval.Request) bool {
	return r.Mode == "" || r.Mode == "any" || r.Mode == "chat" || r.Mode == "auto" && !r.IsPatch()
}

// chatForm fills the composer. The agent and repository are those of the newest
// message, so that a person finds what they used last on every device.
func (p *Pages) chatForm(page view.ChatPage, typed views.SendForm) views.SendForm {
	conf := p.Engine.Config()
	if typed.Agent == "" {
		if n := len(page.Tasks); n > 0 {
			typed.Agent, typed.Repository = page.Tasks[n-1].Agent, page.Tasks[n-1].Repository
		}
		if s, ok := conf.Agents.Get(typed.Agent); !ok || s.Role == agent.CLI {
			typed.Agent = ""
		}
	}
	return p.SendForm(typed)
}

// Say answers POST /chat: a message sent by a form, or by the page's script where the
// WebSocket does not work. The same key again is the same message.
func (p *Pages) Say(c echo.Context) error {
	who, _ := handlers.Who(c)
	in := views.SendForm{Agent: c.FormValue("agent"), Text: c.FormValue("text"), Repository: c.FormValue("repository"), Handoffs: c.FormValue("handoffs") != "", Key: c.FormValue("key")}
	files, err := handlers.SentFiles(c)
	if err != nil {
		return err
	}
	rest, begins := handlers.NewThread(in.Text)
	if begins && rest == "" && !byScript(c) {
		return c.Redirect(http.StatusSeeOther, views.ChatPath+"#chat-text")
	}
	in.Text = rest
	said, err := p.said(c, who, &in, files, begins)
	switch {
	case err != nil && byScript(c):
		return scriptFault(c, err)
	case err != nil:
		f := handlers.FaultOf(err)
		if f.ID != "" {
			return err
		}
		handlers.RefuseSend(&in, f, len(files))
		return p.chat(c, chatRefusal{status: f.Status, send: in})
	case byScript(c):
		return c.JSON(http.StatusOK, handlers.Stored(said, in.Key))
	}
	return c.Redirect(http.StatusSeeOther, views.ThreadHref(said.Task.ThreadID())+"#chat-"+said.Task.ID)
}

// said sends a message, in the thread that the form names unless it begins another.
func (p *Pages) said(c echo.Context, who handlers.Caller, in *views.SendForm, files []agent.File, begins bool) (said orchestrator.Spoken, err error) {
	follows := ""
	if !begins {
		if follows, err = p.Ids.Follows(c.Request().Context(), who, c.FormValue("thread")); err != nil {
			return said, err
		}
	}
	if follows == "" {
		in.Agent = cmp.Or(in.Agent, handlers.DefaultAgent(p.Engine.Config().Agents))
	}
	return p.Engine.Say(c.Request().Context(), orchestrator.Submission{
		Agent: in.Agent, Text: in.Text, Repository: in.Repository, Key: in.Key, Handoffs: in.Handoffs, Follows: follows, Attachments: files,
		Via: origin.From(origin.Chat), Chat: who.User.ID, RequesterID: who.User.ID, Requester: who.User.Name,
	}, who.User)
}

// ChatDecide answers POST /chat/approvals/{id}/decision: a verdict given on a card of
// the chat, under the rules of that channel.
func (p *Pages) ChatDecide(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := p.Ids.Request(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	who, _ := handlers.Who(c)
	b := approval.Ballot{RequestID: id, Principal: who.Principal, Channel: "chat", Verdict: approval.Verdict(c.FormValue("verdict")),
		Digest: c.FormValue("digest"), Revision: handlers.Count(c.FormValue("revision")), Comment: c.FormValue("comment"), Seen: approval.Seen{Surface: approval.SurfaceChat}}
	shown, err := p.Requests.Request(ctx, id)
	if err != nil {
		return handlers.Known(err, "request", id)
	}
	if !handlers.OwnQuestion(who, shown) {
		if err := who.Require([]handlers.Right{handlers.ApprovalsDecide}); err != nil {
			handlers.TurnedAway(c, p.Ids, p.Gateway, err)
			return err
		}
	}
	if err := handlers.AskFields(c, &b); err != nil {
		return err
	}
	b.Whole = p.wholeOnCard(ctx, shown)
	r, err := p.Gateway.Decide(ctx, b)
	switch {
	case err != nil && byScript(c):
		return scriptFault(c, err)
	case err != nil:
		f := handlers.FaultOf(err)
		if f.ID != "" || f.Status == http.StatusNotFound {
			return err
		}
		return p.chat(c, chatRefusal{status: f.Status, request: id, message: f.Message, comment: b.Comment})
	case byScript(c):
		return c.JSON(http.StatusOK, map[string]string{"id": r.ID, "state": string(r.State)})
	}
	return c.Redirect(http.StatusSeeOther, views.ChatPath+"#card-"+id)
}

// byScript reports whether the page's own script sent the form.
func byScript(c echo.Context) bool { return c.Request().Header.Get("HX-Request") == "true" }

// scriptFault answers the page's script: the sentence, and whether trying again may help.
func scriptFault(c echo.Context, err error) error {
	f := handlers.FaultOf(err)
	if f.ID != "" {
		return err // the server's error handler logs it; any page with its status will do
	}
	return c.JSON(f.Status, map[string]string{"type": handlers.ChatError, "code": f.Code, "text": f.Message})
}

// showRefusal puts the reason beside the card that the verdict was on, or on top.
func showRefusal(page *view.ChatPage, no chatRefusal) {
	var cards []*view.ChatCard
	for i := range page.Others {
		cards = append(cards, &page.Others[i])
	}
	for i := range page.Tasks {
		for j := range page.Tasks[i].Turns {
			for k := range page.Tasks[i].Turns[j].Cards {
				cards = append(cards, &page.Tasks[i].Turns[j].Cards[k])
			}
		}
	}
	for _, card := range cards {
		if card.ID == no.request {
			card.Refused, card.Comment = no.message, no.comment
			return
		}
	}
	page.Flash = &views.Flash{Bad: true, Text: no.message, Href: views.ApprovalHref(no.request), Link: "Open the request"}
}
