package team

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/views"
	view "gatehouse/views/team"

	"github.com/labstack/echo/v4"
)

// Agents answers GET /agents: the registry, and the dry run of the guards.
func (p *Pages) Agents(c echo.Context) error {
	f, err := p.Begin(c, views.SectionAgents, "Agents")
	if err != nil {
		return err
	}
	all, err := p.Engine.Agents(f.Ctx)
	if err != nil {
		return err
	}
	failed, err := p.failedToday(f, "")
	if err != nil {
		return err
	}
	page := view.AgentsPage{Chrome: f.Chrome}
	for _, s := range all {
		page.Agents = append(page.Agents, agentRow(s, failed, p.Now()))
	}
	if f.Who.Has(people.AdminScope) {
		page.Add = p.addAgent(c.QueryParam("add"))
	}
	if page.Check, err = p.checkForm(f, c); err != nil {
		return err
	}
	return handlers.Render(c, http.StatusOK, view.Agents(page))
}

// failedToday counts what has failed since midnight UTC, by agent; with a name only its.
func (p *Pages) failedToday(f *handlers.Frame, name string) (map[string]int, error) {
	today := insight.Day(p.Now())
	sums, err := p.Sums.Insight(f.Ctx, today, today, insight.ByAgent, insight.Filter{Agent: name})
	failed := map[string]int{}
	for k, s := range sums {
		if k.Measure == insight.Ended && k.Code == string(orchestrator.Failed) {
			failed[agent.Key(k.Agent)] += int(s.N)
		}
	}
	return failed, err
}

func agentRow(s orchestrator.AgentStatus, failed map[string]int, now time.Time) view.AgentRow {
	return view.AgentRow{
		Name: s.Spec.Name, Kind: string(s.Spec.Kind), Role: string(s.Spec.Role), Description: s.Spec.Prompt,
		Capabilities: s.Spec.Capabilities, DelegatesTo: handsTo(s), Repository: s.Spec.Repository, AnalysisOnly: s.Spec.AnalysisOnly,
		AskFirst: s.Spec.AskFirst, TrustCheckout: s.Spec.TrustCheckout,
		Running: s.Running, Waiting: s.Waiting, Queued: s.Queued, InboxSize: s.Inbox.Size, InboxPercent: s.Inbox.Percent(), LastAt: handlers.At(s.LastAt), LastError: s.LastError, FailedToday: failed[agent.Key(s.Spec.Name)],
		Resting: s.Breaker.Resting(), Breaker: s.Breaker.Sentence(now), BreakerReason: s.Breaker.Reason,
	}
}

// handsTo is the allow-list; without one an agent may hand to anyone.
func handsTo(s orchestrator.AgentStatus) []string {
	if !s.Spec.Restricted {
		return []string{"anyone"}
	}
	return s.Spec.DelegatesTo
}

// checkForm asks the guards when both names are in the address.
func (p *Pages) checkForm(f *handlers.Frame, c echo.Context) (view.CheckForm, error) {
	form := view.CheckForm{From: c.QueryParam("from"), To: c.QueryParam("to"), Task: c.QueryParam("task")}
	form.Names = each.Of(p.Engine.Config().Agents.All(), func(s agent.Spec) string { return s.Name })
	if form.From == "" || form.To == "" {
		return form, nil
	}
	taskID := ""
	if form.Task != "" {
		t, err := p.Ids.Task(f.Ctx, f.Who, form.Task)
		if err != nil {
			return form, err
		}
		taskID = t.ID
	}
	verdicts, refused, err := p.Engine.Check(f.Ctx, form.From, form.To, taskID)
	if err != nil {
		return form, err
	}
	form.Asked, form.Allowed, form.Verdicts = true, refused == nil, verdicts
	if refused != nil {
		form.Code, form.Message = refused.Code, refused.Message
	}
	return form, nil
}

// Agent answers GET /agents/{name}.
func (p *Pages) Agent(c echo.Context) error {
	f, err := p.Begin(c, views.SectionAgents, c.Param("name"))
	if err != nil {
		return err
	}
	status, err := p.agentStatus(f, c.Param("name"))
	if err != nil {
		return err
	}
	failed, err := p.failedToday(f, status.Spec.Name)
	if err != nil {
		return err
	}
	page := view.AgentPage{Chrome: f.Chrome, Agent: agentRow(status, failed, p.Now()), Facts: facts(status), Send: p.SendForm(views.SendForm{Agent: status.Spec.Name})}
	page.Title = status.Spec.Name
	recent, err := p.Reader.List(f.Ctx, orchestrator.Filter{Agent: status.Spec.Name, Limit: 10})
	if err != nil {
		return err
	}
	page.Recent = each.Of(recent.Items, f.OnlyRow)
	if f.Who.Has(people.ApprovalsRead) {
		if err := p.agentRequests(f, &page); err != nil {
			return err
		}
	}
	if page.Check, err = p.checkForm(f, c); err != nil {
		return err
	}
	page.Check.From = cmp.Or(page.Check.From, status.Spec.Name)
	return handlers.Render(c, http.StatusOK, view.Agent(page))
}

func (p *Pages) agentStatus(f *handlers.Frame, name string) (orchestrator.AgentStatus, error) {
	spec, ok := p.Engine.Config().Agents.Get(name)
	all, err := p.Engine.Agents(f.Ctx)
	if err != nil {
		return orchestrator.AgentStatus{}, err
	}
	for _, s := range all {
		if ok && s.Spec.Name == spec.Name {
			return s, nil
		}
	}
	return orchestrator.AgentStatus{}, handlers.Refuse(orchestrator.CodeNotFound, "There is no agent of that name. See the list of agents.")
}

// mostRequests is how far the requests of one agent are counted.
const mostRequests = 10_000

func (p *Pages) agentRequests(f *handlers.Frame, page *view.AgentPage) (err error) {
	count := func(state approval.State) (n int) {
		if err == nil {
			n, err = p.Requests.CountRequests(f.Ctx, approval.Filter{Agent: page.Agent.Name, States: []approval.State{state}}, mostRequests)
		}
		return n
	}
	page.Judged, page.Landed, page.Refused = true, count(approval.Landed), count(approval.Rejected)
	return err
}

// facts lists the declaration; values of the environment are never shown.
func facts(s orchestrator.AgentStatus) []view.Fact {
	spec := s.Spec
	var out []view.Fact
	add := func(name, value string, code bool) {
		if value != "" {
			out = append(out, view.Fact{Name: name, Value: value, Code: code})
		}
	}
	add("command", strings.Join(spec.Command, " "), true)
	add("protocol", spec.Protocol, false)
	add("model", spec.Model, true)
	add("repository", spec.Repository, true)
	add("may write", strings.Join(spec.Writes, ", "), true)
	add("approval", spec.Approval, false)
	if spec.Timeout > 0 {
		add("timeout", views.Duration(spec.Timeout), false)
	}
	add("sandbox", spec.Sandbox, false)
	if spec.Network == agent.NetworkOff {
		add("network", spec.Network, false)
	}
	add("limits", spec.Limits.String(), false)
	for _, sentence := range spec.Caveats() {
		add("how they hold", sentence, false)
	}
	if len(spec.Steps) > 0 {
		add("steps", strconv.Itoa(len(spec.Steps)), false)
	}
	return out
}
