package audit

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"
	view "gatehouse/views/audit"

	"github.com/labstack/echo/v4"
)

// Sizes of the auditor's lists.
const (
	auditRows  = 50
	columnsFor = 365 * 24 * 60 * 60
)

// auditLists are the tabs, in their order.
var auditLists = []history.List{history.Requests, history.Delegations, history.Events}

// auditAsked is what somebody wants to see of the log.
type auditAsked struct {
	list    history.List
	line    string
	columns []string
	after   string
	live    bool
	refused refusedView
}

// refusedView is a view that was not saved, with the reason.
type refusedView struct{ name, problem string }

// Audit answers GET /audit: requests, delegations or events, newest first, as far as the
// line of filters takes them.
func (p *Pages) Audit(c echo.Context) error {
	q := c.QueryParams()
	asked := auditAsked{list: listOf(q), line: q.Get("filter"), columns: q["columns"], after: q.Get("after"), live: q.Get("live") == "1"}
	if !slices.Contains(auditLists, asked.list) {
		return handlers.Refuse(orchestrator.CodeBadRequest, "There is no list of that name. Choose requests, delegations or events.")
	}
	if !q.Has("filter") {
		asked.line = handlers.DefaultPeriod
	}
	f := p.auditLine(c, asked)
	if href := f.Picked(q); href != "" {
		return handlers.RedirectTo(c, href)
	}
	rememberColumns(c, asked.list, asked.columns)
	return p.audit(c, asked, f)
}

// listOf is the list that the address names, else the requests.
func listOf(q url.Values) history.List {
	if list := history.List(q.Get("list")); list != "" {
		return list
	}
	return history.Requests
}

func (p *Pages) auditLine(c echo.Context, a auditAsked) handlers.FilterLine {
	return handlers.ReadLine(views.AuditPath, a.list, a.line, p.Now(), p.ReaderZone(c), auditKeep(a.list, a.columns, a.live)...)
}

// audit draws the page. What is wrong with the line is said beside it, and nothing is listed.
func (p *Pages) audit(c echo.Context, a auditAsked, line handlers.FilterLine) error {
	f, err := p.Begin(c, views.SectionAudit, "Audit")
	if err != nil {
		return err
	}
	zone := p.ReaderZone(c)
	page := view.AuditPage{Chrome: f.Chrome, List: a.list, Zone: zone.String(), Loc: zone, Live: a.live && a.after == "", Later: a.after != "",
		Columns: view.AuditColumns(a.list, columnsOf(c, a)), MaySave: f.Who.User.ID != "", MayShare: f.Who.Has(people.AdminScope), SaveName: a.refused.name, SaveBad: a.refused.problem}
	page.Path = line.Href(line.Line)
	if a.after != "" {
		page.Path = handlers.WithParam(page.Path, "after", a.after)
	}
	if !page.Live {
		page.StreamURL = "" // a list that stands still shows no dot that says live
	}
	page.LiveHref = views.WithQuery(views.WithQuery(page.Path, "after", ""), "live", map[bool]string{true: "", false: "1"}[page.Live])
	status := http.StatusOK
	if line.Problem == nil {
		err := p.auditRows(f, line, a.after, &page)
		if err != nil && handlers.FaultOf(err).Status != http.StatusBadRequest {
			return err
		}
		if err != nil { // a cursor that no page gave, or a filter that only the store can judge
			line.Problem = &views.FilterProblem{Text: handlers.FaultOf(err).Message}
		}
	}
	if line.Problem != nil || a.refused.problem != "" {
		status = http.StatusBadRequest
	}
	page.Filters = line.Bar(p.Suggestions())
	for _, l := range auditLists {
		page.Tabs = append(page.Tabs, view.AuditTab{List: l, Href: views.FilterHref(views.AuditPath, l, keptLine(line, l))})
	}
	page.Ready = ready(line)
	if page.Views, err = p.auditViews(f); err != nil {
		return err
	}
	if page.Proof, err = p.auditProof(f.Ctx); err != nil {
		return err
	}
	return handlers.Render(c, status, view.Audit(page))
}

// auditKeep is what the forms of the page carry on beside the line.
func auditKeep(list history.List, columns []string, live bool) []views.FilterParam {
	keep := []views.FilterParam{{Name: "list", Value: string(list)}}
	if len(columns) > 0 {
		keep = append(keep, views.FilterParam{Name: "columns", Value: strings.Join(columns, ",")})
	}
	if live {
		keep = append(keep, views.FilterParam{Name: "live", Value: "1"})
	}
	return keep
}

// keptLine is the part of the line that another list understands.
func keptLine(f handlers.FilterLine, list history.List) string {
	if list == f.List || f.Problem != nil {
		return f.Line
	}
	q := f.Query
	q.Terms = slices.DeleteFunc(slices.Clone(q.Terms), func(t history.Term) bool {
		if !slices.Contains(history.KeysOf(list), t.Key) {
			return true
		}
		values := history.ValuesOf(list, t.Key)
		return values != nil && slices.ContainsFunc(t.Values, func(v string) bool { return !slices.Contains(values, v) })
	})
	return q.String()
}

// columnsOf are the columns that the address names, else those that were chosen last.
func columnsOf(c echo.Context, a auditAsked) []string {
	named := a.columns
	if len(named) == 0 {
		if cookie, err := c.Cookie(columnsCookie(a.list)); err == nil {
			named = []string{cookie.Value}
		}
	}
	var all []string
	for _, n := range named {
		all = append(all, strings.FieldsFunc(n, func(r rune) bool { return r == ',' || r == '.' })...)
	}
	return all
}

func columnsCookie(list history.List) string { return "gatehouse_columns_" + string(list) }

// rememberColumns keeps a choice in the browser. Only names of columns get there.
func rememberColumns(c echo.Context, list history.List, named []string) {
	if len(named) == 0 {
		return
	}
	var keys []string
	for _, col := range view.AuditColumns(list, strings.Split(strings.Join(named, ","), ",")) {
		if col.On {
			keys = append(keys, col.Key)
		}
	}
	c.SetCookie(&http.Cookie{Name: columnsCookie(list), Value: strings.Join(keys, "."), Path: views.AuditPath, MaxAge: columnsFor, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// auditRows fills the rows and counts of the page.
func (p *Pages) auditRows(f *handlers.Frame, line handlers.FilterLine, after string, page *view.AuditPage) error {
	var err error
	switch line.List {
	case history.Requests:
		var found history.Page
		if found, err = p.History.History(f.Ctx, line.Query, after, auditRows); err == nil {
			page.Requests, page.NextHref = found.Rows, handlers.NextHref(page.Path, found.Next)
		}
	case history.Delegations:
		err = p.auditTasks(f, line, after, page)
	default:
		err = p.auditEvents(f, line, after, page)
	}
	if err != nil {
		return err
	}
	page.Count.N = int64(len(page.Requests) + len(page.Tasks) + len(page.Events))
	switch {
	case len(line.Query.Words) > 0: // to count them is to search once more, and farther
		page.Count.Least = after != "" || page.NextHref != ""
	case after != "" || page.NextHref != "": // else these are all
		if page.Count, err = p.History.HistoryCount(f.Ctx, line.Query, handlers.CountUpTo); err != nil {
			return err
		}
	}
	page.All = page.Count
	if !line.Query.Empty() {
		page.All, err = p.History.HistoryCount(f.Ctx, history.Query{List: line.List}, handlers.CountUpTo)
	}
	return err
}

// readyQuestions are what auditors ask again and again, as filters.
var readyQuestions = []struct {
	text string
	term history.Term
}{
	{"without four eyes", history.Term{Key: history.FourEyes, Values: []string{"no"}}},
	{"approved by rule", history.Term{Key: history.Is, Values: []string{"auto"}}},
	{"within 10 s of opening", history.Term{Key: history.Fast, Values: []string{"yes"}}},
	{"without all files viewed", history.Term{Key: history.Viewed, Values: []string{"no"}}},
	{"warnings overruled", history.Term{Key: history.Warnings, Values: []string{"overruled"}}},
	{"failed checks overruled", history.Term{Key: history.Checks, Values: []string{"overruled"}}},
	{"refused by guard", history.Term{Key: history.Is, Values: []string{"refused"}}},
	{"expired", history.Term{Key: history.Is, Values: []string{"expired"}}},
	{"reverted", history.Term{Key: history.Is, Values: []string{"reverted"}}},
}

// ready are these questions over the period of the line; one that is asked is taken back.
// What a guard refused never became a request: that question is one to the delegations.
func ready(f handlers.FilterLine) []view.AuditQuestion {
	period := history.Query{From: f.Query.From, To: f.Query.To, Last: f.Query.Last}
	all := make([]view.AuditQuestion, 0, len(readyQuestions))
	for _, q := range readyQuestions {
		one := view.AuditQuestion{Text: q.text, On: f.Asks(q.term)}
		asked := period
		if !one.On {
			asked = asked.With(q.term)
		}
		one.Href = f.Href(asked.String())
		if q.term.Values[0] == "refused" {
			one.Href = views.FilterHref(views.AuditPath, history.Delegations, period.With(q.term).String())
		}
		all = append(all, one)
	}
	return all
}

// auditBack is the page of a list and line, for redirects.
func auditBack(list history.List, line, columns string) string {
	q := url.Values{"list": {string(list)}, "filter": {line}}
	if columns != "" {
		q.Set("columns", columns)
	}
	return views.AuditPath + "?" + q.Encode()
}

// auditTasks lists delegations.
func (p *Pages) auditTasks(f *handlers.Frame, line handlers.FilterLine, after string, page *view.AuditPage) error {
	if after != "" && !handlers.IsID(after, orchestrator.DelegationPrefix) {
		return handlers.UnknownPlace
	}
	found, err := p.Reader.List(f.Ctx, orchestrator.Filter{Line: line.Query, After: after, Limit: auditRows})
	if err != nil {
		return err
	}
	page.Tasks = each.Of(found.Items, f.OnlyRow)
	page.NextHref = handlers.NextHref(page.Path, found.Next)
	return nil
}

// auditEvents lists events. A search through many may end before it has found a page full;
// it goes on there.
func (p *Pages) auditEvents(f *handlers.Frame, line handlers.FilterLine, after string, page *view.AuditPage) error {
	found, err := p.History.HistoryEvents(f.Ctx, line.Query, after, auditRows)
	if err != nil {
		return err
	}
	for _, r := range found.Rows {
		e := event.Event{TaskID: r.TaskID, N: r.N, ID: r.ID, Type: event.Type(r.Type), DelegationID: r.DelegationID, Actor: r.Actor, At: r.At, Data: r.Data}
		page.Events = append(page.Events, view.AuditEvent{Found: r, Text: handlers.EventLine(e)})
	}
	page.NextHref = handlers.NextHref(page.Path, found.Next)
	if len(found.Rows) < auditRows && found.Next != "" {
		page.LookedTo = found.To
	}
	return nil
}

// AuditExport answers GET /audit/export: it says what a file will have. The file itself is
// made under /api/v1/audit/export.
func (p *Pages) AuditExport(c echo.Context) error {
	q := c.QueryParams()
	asked := auditAsked{list: listOf(q), line: q.Get("filter")}
	if !slices.Contains(auditLists, asked.list) {
		return handlers.Refuse(orchestrator.CodeBadRequest, "There is no list of that name. Choose requests, delegations or events.")
	}
	f, err := p.Begin(c, views.SectionAudit, "Export")
	if err != nil {
		return err
	}
	f.Chrome.StreamURL = ""
	line, status := p.auditLine(c, asked), http.StatusOK
	page := view.AuditExportPage{Chrome: f.Chrome, List: asked.list, Line: asked.line, Problem: line.Problem,
		Zone: p.ReaderZone(c).String(), Back: auditBack(asked.list, asked.line, "")}
	if line.Problem != nil {
		status = http.StatusBadRequest
	} else if page.Count.N, err = p.History.HistoryTotal(f.Ctx, line.Query); err != nil {
		return err
	}
	return handlers.Render(c, status, view.AuditExport(page))
}
