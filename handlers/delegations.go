package handlers

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"
	taskview "gatehouse/views/task"

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
	line := readLine(views.SendPath, history.Delegations, taskLine(q), p.Now(), p.readerZone(c))
	if href := line.picked(q); href != "" {
		return redirectTo(c, href)
	}
	if href, err := p.jump(c, line.soleWord()); err != nil || href != "" {
		if err != nil {
			return err
		}
		return redirectTo(c, href)
	}
	f, err := p.begin(c, views.SectionDelegations, "Delegations")
	if err != nil {
		return err
	}
	f.chrome.Search = strings.Join(line.query.Words, " ")
	after, status := q.Get("after"), http.StatusOK
	page := taskview.DelegationsPage{Chrome: f.chrome, Later: after != "", Send: p.sendForm(views.SendForm{})}
	if line.problem == nil {
		err := p.delegationList(f, line, after, &page)
		if err != nil && FaultOf(err).Status != http.StatusBadRequest {
			return err
		}
		if err != nil { // a cursor that no page gave
			line.problem = &views.FilterProblem{Text: FaultOf(err).Message}
		}
	}
	if line.problem != nil {
		status = http.StatusBadRequest
	}
	page.Filters = line.bar(p.suggestions())
	page.Filters.Clear = views.SendPath
	page.Filtered = line.problem != nil || line.line != onlyTasks.String()
	return render(c, status, taskview.Delegations(page))
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

// soleWord is the one word of the line where it has nothing else, which may be an id.
func (f filterLine) soleWord() string {
	rest := f.query.Without(history.Is)
	if f.problem != nil || len(rest.Terms) > 0 || len(rest.Words) != 1 || says(rest, history.Time) {
		return ""
	}
	return rest.Words[0]
}

// delegationList fills the rows of the page.
func (p *Pages) delegationList(f *frame, line filterLine, after string, page *taskview.DelegationsPage) error {
	if after != "" && !IsID(after, orchestrator.DelegationPrefix) {
		return unknownPlace
	}
	found, err := p.Reader.List(f.ctx, orchestrator.Filter{Line: line.query, After: after, Limit: delegationRows})
	if err != nil {
		return err
	}
	var tasks []string
	for _, d := range found.Items {
		if d.ParentID == "" {
			tasks = append(tasks, d.TaskID)
		}
	}
	trees, err := p.History.Paths(f.ctx, tasks)
	if err != nil {
		return err
	}
	for _, d := range found.Items {
		var tree []orchestrator.Delegation
		if d.ParentID == "" {
			tree = trees[d.TaskID]
		}
		page.Rows = append(page.Rows, f.delegationRow(d, tree))
	}
	page.NextHref = nextHref(f.chrome.Path, found.Next)
	if len(page.Rows) == 0 {
		page.All, err = p.History.HistoryCount(f.ctx, history.Query{List: history.Delegations}.With(onlyTasks), countUpTo)
	}
	return err
}

// jump leads a search for an id straight to its page; a word that is none is searched.
func (p *Pages) jump(c echo.Context, q string) (href string, err error) {
	if len(q) < 6 || strings.ContainsAny(q, " \t") {
		return "", nil
	}
	id, err := p.Ids.Any(c.Request().Context(), q)
	if err != nil {
		return "", ignoreUnknown(err)
	}
	return hrefOf(id), nil
}

// ignoreUnknown drops the error of a word that names no id.
func ignoreUnknown(err error) error {
	var e *orchestrator.Error
	if errors.As(err, &e) && e.Code == orchestrator.CodeNotFound {
		return nil
	}
	return err
}

// withParam sets one parameter of an address of ours.
func withParam(path, key, value string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// Cancel answers POST /delegations/{id}/cancel.
func (p *Pages) Cancel(c echo.Context) error {
	who, _ := Who(c)
	d, err := p.Ids.Delegation(c.Request().Context(), who, c.Param("id"))
	if err != nil {
		return err
	}
	if _, err = p.Engine.CancelFor(c.Request().Context(), d.ID, who.Name(), c.FormValue("reason")); err != nil {
		return err
	}
	return seeOther(c, views.DelegationHref(d.ID), "cancelled")
}

// Retry answers POST /delegations/{id}/retry.
func (p *Pages) Retry(c echo.Context) error {
	who, _ := Who(c)
	d, err := p.Ids.Delegation(c.Request().Context(), who, c.Param("id"))
	if err != nil {
		return err
	}
	if d, err = p.Engine.Retry(c.Request().Context(), d.ID, who.Name()); err != nil {
		return err
	}
	if d.LandsNow() {
		return seeOther(c, views.DelegationHref(d.ID), "lands_now")
	}
	return seeOther(c, views.DelegationHref(d.ID), "retried")
}
