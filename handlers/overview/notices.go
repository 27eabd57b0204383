package overview

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// The most that one answer has.
const (
	noticeTasks = 20 // tasks that are asked about
	noticeItems = 50 // requests, the newest
)

// notices is what the script of open pages asks for after an event: the number in the tab's
// title, and what a notice of the browser may say.
type notices struct {
	Waiting int      `json:"waiting"`
	Items   []notice `json:"items"`
}

// notice is one of them; the same id is the same notice.
type notice struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"` // request or end
	Title string `json:"title"`
	Text  string `json:"text"` // "" where the title is all that a locked screen may show
	Href  string `json:"href"`
}

// waits are the words for what waits for the reader, by what is asked.
var waits = map[approval.Kind]string{
	approval.Patch: "A request waits for you", approval.Handover: "A hand-over waits for you",
	approval.Action: "A tool call waits for you", approval.Question: "A question waits for you",
}

// Notices answers GET /notices: what waits for the reader, and how those of the tasks that
// ?task= names ended that the reader sent.
func (p *Pages) Notices(c echo.Context) error {
	f, err := p.Begin(c, views.SectionOverview, "")
	if err != nil {
		return err
	}
	said := notices{Waiting: f.Chrome.ToDecide, Items: []notice{}}
	for _, r := range f.Pending {
		if f.MayDecide(r) && len(said.Items) < noticeItems {
			said.Items = append(said.Items, waiting(r))
		}
	}
	tasks := c.QueryParams()["task"]
	for _, id := range tasks[:min(len(tasks), noticeTasks)] {
		if !handlers.IsID(id, orchestrator.TaskPrefix) {
			continue
		}
		t, err := p.Reader.Task(f.Ctx, id)
		if errors.Is(err, orchestrator.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if t.EndedAt == nil || t.RequesterID != f.Who.User.ID || t.ByTrigger() {
			continue
		}
		root, err := p.Reader.Delegation(f.Ctx, t.RootID)
		if err != nil {
			return err
		}
		said.Items = append(said.Items, ended(t, root))
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, said)
}

// waiting is the notice of a request; of a careful one it says nothing but that it waits.
func waiting(r approval.Request) notice {
	n := notice{ID: r.ID + "@" + strconv.Itoa(r.Revision.N), Kind: "request", Href: views.ApprovalHref(r.ID)}
	n.Title = cmp.Or(waits[r.Kind], waits[approval.Patch])
	if r.Kind == approval.Patch && approval.RiskOf(r).Level == approval.Plain {
		n.Text = views.OneLine(orchestrator.Title(r.Title), 80)
	}
	return n
}

// ended is the notice of the end of a task.
func ended(t orchestrator.Task, root orchestrator.Delegation) notice {
	return notice{
		ID: t.ID + "@" + strconv.FormatInt(t.EndedAt.UnixMicro(), 10), Kind: "end", Href: views.DelegationHref(t.ID),
		Title: "Your task is " + badge.Of(root.State).Word + " · " + views.OneLine(root.To, 40),
		Text:  views.OneLine(orchestrator.Title(t.Text), 80),
	}
}
