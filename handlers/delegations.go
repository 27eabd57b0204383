package handlers

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// Delegations answers GET /delegations: tasks, newest first; with an agent in the
// filter also what that agent did below others.
func (p *Pages) Delegations(c echo.Context) error {
	q := c.QueryParams()
	filter := views.DelegationFilter{Query: strings.TrimSpace(q.Get("q")), State: q.Get("state"), Agent: q.Get("agent"),
		Repository: q.Get("repository"), Requester: q.Get("requester")}
	if href, err := p.jump(c, filter.Query); err != nil || href != "" {
		if err != nil {
			return err
		}
		return c.Redirect(http.StatusSeeOther, href)
	}
	f, err := p.begin(c, views.SectionDelegations, "Delegations")
	if err != nil {
		return err
	}
	f.chrome.Search = filter.Query
	list := orchestrator.Filter{Agent: filter.Agent, Repository: filter.Repository, Requester: filter.Requester, Query: filter.Query,
		RootsOnly: filter.Agent == "", After: q.Get("after"), Limit: 50}
	if filter.State != "" {
		if list.States = statesOf(filter.State); list.States == nil {
			return Refuse(orchestrator.CodeBadRequest, "There is no state of that name. Choose one of the list.")
		}
	}
	if list.After != "" && !IsID(list.After, orchestrator.DelegationPrefix) {
		return Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the first page.")
	}
	found, err := p.Reader.List(f.ctx, list)
	if err != nil {
		return err
	}
	page := views.DelegationsPage{Chrome: f.chrome, Filter: filter, Later: list.After != "", Send: p.sendForm(views.SendForm{})}
	for _, d := range found.Items {
		var tree []orchestrator.Delegation
		if d.ParentID == "" {
			if tree, err = p.Reader.Tree(f.ctx, d.TaskID); err != nil {
				return err
			}
		}
		page.Rows = append(page.Rows, f.delegationRow(d, tree))
	}
	if found.Next != "" {
		page.NextHref = withParam(f.chrome.Path, "after", found.Next)
	}
	if len(page.Rows) == 0 && filter.Any() {
		all, err := p.Reader.List(f.ctx, orchestrator.Filter{RootsOnly: true, Limit: 200})
		if err != nil {
			return err
		}
		page.Total = len(all.Items)
	}
	conf := p.Engine.Config()
	for _, s := range conf.Agents.All() {
		page.Agents = append(page.Agents, s.Name)
	}
	for name := range conf.Repositories {
		page.Repos = append(page.Repos, name)
	}
	slices.Sort(page.Repos)
	return render(c, http.StatusOK, views.Delegations(page))
}

// statesOf reads the filter for states: one of them, or what the overview's blocks
// hold together; nil is a word that is neither.
func statesOf(word string) []orchestrator.State {
	switch word {
	case views.FilterLive:
		return liveStates()
	case views.FilterWrong:
		return wrongStates()
	}
	if state := orchestrator.State(word); slices.Contains(orchestrator.States(), state) {
		return []orchestrator.State{state}
	}
	return nil
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
	if _, err = p.Engine.Cancel(c.Request().Context(), d.ID, who.Name()); err != nil {
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
	if _, err = p.Engine.Retry(c.Request().Context(), d.ID, who.Name()); err != nil {
		return err
	}
	return seeOther(c, views.DelegationHref(d.ID), "retried")
}
