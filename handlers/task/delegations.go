package task

import (
	"net/http"
	"net/url"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// delegationRows is how many rows one page has.
const delegationRows = 50

// onlyTasks is the filter that the list begins with: what people and triggers asked for,
// without the work below.
var onlyTasks = history.Term{Key: history.Is, Values: []string{"root"}}

// Delegations answers GET /delegations: what the line of filters takes, newest first. The
// line begins with tasks only; with an agent in the address also what it did below others.
func (p *Pages) Delegations(c echo.Context) error {
	q := c.QueryParams()
	line := handlers.ReadLine(views.SendPath, history.Delegations, taskLine(q), p.Now(), p.ReaderZone(c))
	if href := line.Picked(q); href != "" {
		return handlers.RedirectTo(c, href)
	}
	if href, err := p.jump(c, line.SoleWord()); err != nil || href != "" {
		if err != nil {
			return err
		}
		return handlers.RedirectTo(c, href)
	}
	f, err := p.Begin(c, views.SectionDelegations, "Delegations")
	if err != nil {
		return err
	}
	f.Chrome.Search = strings.Join(line.Query.Words, " ")
	after, status := q.Get("after"), http.StatusOK
	page := view.DelegationsPage{Chrome: f.Chrome, Later: after != "", Send: p.SendForm(views.SendForm{})}
	if line.Problem == nil {
		err := p.delegationList(f, line, after, &page)
		if err != nil && handlers.FaultOf(err).Status != http.StatusBadRequest {
			return err
		}
		if err != nil { // a cursor that no page gave
			line.Problem = &views.FilterProblem{Text: handlers.FaultOf(err).Message}
		}
	}
	if line.Problem != nil {
		status = http.StatusBadRequest
	}
	page.Filters = line.Bar(p.Suggestions())
	page.Filters.Clear = views.SendPath
	page.Filtered = line.Problem != nil || line.Line != onlyTasks.String()
	return handlers.Render(c, status, view.Delegations(page))
}

// taskLine is the line that the address asks with: as a line, or by single parameters.
func taskLine(q url.Values) string {
	if q.Has("filter") {
		return q.Get("filter")
	}
	query := history.Query{List: history.Delegations, Words: strings.Fields(q.Get("q"))}
	for _, key := range []history.Key{history.State, history.Agent, history.Repository, history.Requester} {
		if v := strings.TrimSpace(q.Get(string(key))); v != "" {
			query = query.With(history.Term{Key: key, Values: []string{v}})
		}
	}
	if q.Get("agent") == "" {
		query = query.With(onlyTasks)
	}
	return query.String()
}

// delegationList fills the rows of the page.
func (p *Pages) delegationList(f *handlers.Frame, line handlers.FilterLine, after string, page *view.DelegationsPage) error {
	if after != "" && !handlers.IsID(after, orchestrator.DelegationPrefix) {
		return handlers.UnknownPlace
	}
	found, err := p.Reader.List(f.Ctx, orchestrator.Filter{Line: line.Query, After: after, Limit: delegationRows})
	if err != nil {
		return err
	}
	var tasks []string
	for _, d := range found.Items {
		if d.ParentID == "" {
			tasks = append(tasks, d.TaskID)
		}
	}
	trees, err := p.History.Paths(f.Ctx, tasks)
	if err != nil {
		return err
	}
	for _, d := range found.Items {
		var tree []orchestrator.Delegation
		if d.ParentID == "" {
			tree = trees[d.TaskID]
		}
		page.Rows = append(page.Rows, f.DelegationRow(d, tree))
	}
	page.NextHref = handlers.NextHref(f.Chrome.Path, found.Next)
	if len(page.Rows) == 0 {
		page.All, err = p.History.HistoryCount(f.Ctx, history.Query{List: history.Delegations}.With(onlyTasks), handlers.CountUpTo)
	}
	return err
}

// jump leads a search for an id straight to its page; a word that is none is searched.
func (p *Pages) jump(c echo.Context, q string) (href string, err error) {
	if len(q) < 6 || strings.ContainsAny(q, " \t") {
		return "", nil
	}
	id, err := p.Ids.Any(c.Request().Context(), q)
	switch {
	case orchestrator.CodeOf(err) == orchestrator.CodeNotFound:
		return "", nil
	case err != nil:
		return "", err
	}
	return handlers.HrefOf(id), nil
}

// Retry answers POST /delegations/{id}/retry.
func (p *Pages) Retry(c echo.Context) error {
	who, _ := handlers.Who(c)
	d, err := p.Ids.Delegation(c.Request().Context(), who, c.Param("id"))
	if err != nil {
		return err
	}
	if d, err = p.Engine.Retry(c.Request().Context(), d.ID, who.Name()); err != nil {
		return err
	}
	if d.LandsNow() {
		return handlers.SeeOther(c, views.DelegationHref(d.ID), "lands_now")
	}
	return handlers.SeeOther(c, views.DelegationHref(d.ID), "retried")
}
