package web

import (
	"net/http"
	"slices"

	"gatehouse/handlers"
	"gatehouse/handlers/api"
	"gatehouse/handlers/audit"
	"gatehouse/handlers/chat"
	"gatehouse/handlers/evidence"
	"gatehouse/handlers/overview"
	"gatehouse/handlers/review"
	"gatehouse/handlers/settings"
	"gatehouse/handlers/signin"
	"gatehouse/handlers/stream"
	"gatehouse/handlers/task"
	"gatehouse/handlers/team"
	"gatehouse/static"

	"github.com/labstack/echo/v4"
)

// route is one line of the table: what it answers, and who may ask. Several rights
// mean any of them.
type route struct {
	method, path string
	handler      echo.HandlerFunc
	rights       []handlers.Right
}

const (
	get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete

	v1 = "/api/v1"
)

// allowed are the rights that routes ask for, by short names.
type allowed struct {
	anyone, read, control, see, decide, talk, send, undo, land, know, write           []handlers.Right
	own, tell, answer, audit, hold, look, run, follow, person, admin, browser, keeper []handlers.Right
}

func rights() allowed {
	may := func(r ...handlers.Right) []handlers.Right { return r }
	return allowed{
		anyone: may(handlers.Anyone), run: may(handlers.ByRun), person: may(handlers.SignedIn), admin: may(handlers.AdminOnly),
		browser: may(handlers.InBrowser), keeper: may(handlers.AdminInBrowser),
		read: may(handlers.DelegationsRead), control: may(handlers.DelegationsControl), send: may(handlers.TasksWrite),
		see: may(handlers.ApprovalsRead), decide: may(handlers.ApprovalsDecide),
		talk: may(handlers.TasksWrite, handlers.ApprovalsDecide), undo: may(handlers.ApprovalsDecide, handlers.TasksWrite),
		own: may(handlers.ApprovalsRead, handlers.TasksWrite), answer: may(handlers.ApprovalsDecide, handlers.TasksWrite), tell: may(handlers.DelegationsControl, handlers.TasksWrite),
		land: may(handlers.DelegationsControl, handlers.ApprovalsDecide), follow: may(handlers.DelegationsRead, handlers.TasksWrite),
		know: may(handlers.ContextRead), write: may(handlers.ContextWrite),
		audit: may(handlers.AuditRead), hold: may(handlers.AuditHold), look: may(handlers.TasksWrite, handlers.AuditRead),
	}
}

// routes is every address of the server with the rights that it asks for.
func (s *Server) routes() []route {
	in, site := rights(), s.Site
	pages := slices.Concat(
		overviewPages(&overview.Pages{Site: site}, in), taskPages(&task.Pages{Site: site}, in),
		reviewPages(&review.Pages{Site: site}, in), evidencePages(&evidence.Pages{Site: site}, in),
		auditPages(&audit.Pages{Site: site}, in), chatPages(s.chat, in), teamPages(&team.Pages{Site: site}, in),
		settingsPages(&settings.Pages{Site: site}, in), signinPages(&signin.Pages{Site: site}, in))
	for i, r := range pages {
		if r.method == get && !slices.Contains(r.rights, handlers.Anyone) {
			pages[i].handler = site.OneMoment(r.handler)
		}
	}
	return slices.Concat(pages, workAPI(s.API, s.Streams, in), recordAPI(s.API, in), s.outside(in))
}

// overviewPages are the first page and the figures.
func overviewPages(p *overview.Pages, in allowed) []route {
	return []route{
		{get, "/", p.Overview, in.read},
		{post, "/delegations", p.Send, in.send},
		{post, "/tasks", p.Send, in.send},
		{get, "/insights", p.Insights, in.read},
		{get, "/insights/:by", p.InsightsCSV, in.read},
		{get, "/waits", p.Waits, in.read},
		{get, "/notices", p.Notices, in.person},
	}
}

// taskPages are tasks and their delegations.
func taskPages(p *task.Pages, in allowed) []route {
	return []route{
		{get, "/delegations", p.Delegations, in.read},
		{get, "/delegations/stop", p.StopPage, in.admin},
		{post, "/delegations/stop", p.StopAll, in.admin},
		{get, "/delegations/:id", p.Delegation, in.read},
		{post, "/delegations/:id/cancel", p.Cancel, in.control},
		{post, "/delegations/:id/retry", p.Retry, in.control},
		{post, "/delegations/:id/pause", p.Pause, in.control},
		{post, "/delegations/:id/resume", p.Resume, in.control},
		{post, "/delegations/:id/fork", p.Fork, in.control},
		{post, "/delegations/:id/messages", p.Tell, in.tell},
		{post, "/grants/:id/revoke", p.Revoke, in.answer},
		{get, "/delegations/:id/artifacts/:n", p.Artifact, in.read},
		{get, "/delegations/:id/attachments/:n", p.Attachment, in.read},
		{get, "/delegations/:id/flow", p.Flow, in.read},
		{get, "/delegations/:id/flow.svg", p.FlowSVG, in.read},
	}
}

// reviewPages are approval requests.
func reviewPages(p *review.Pages, in allowed) []route {
	return []route{
		{get, "/approvals", p.Approvals, in.see},
		{get, "/approvals/:id", p.Review, in.own},
		{get, "/approvals/:id/picture", p.Picture, in.see},
		{post, "/approvals/:id/decision", p.Decide, in.answer},
		{post, "/approvals/:id/drafts", p.Draft, in.decide},
		{post, "/approvals/:id/threads", p.Answer, in.decide},
		{post, "/approvals/:id/viewed", p.Viewed, in.see},
		{post, "/approvals/:id/opened", p.Opened, in.see},
		{post, "/approvals/:id/edit", p.Edit, in.decide},
		{post, "/approvals/:id/revert", p.Revert, in.undo},
		{post, "/approvals/:id/land", p.Land, in.land},
	}
}

// evidencePages is the document of one request.
func evidencePages(p *evidence.Pages, in allowed) []route {
	return []route{
		{get, "/approvals/:id/evidence", p.Evidence, in.see},
	}
}

// auditPages are the history, its proof and legal holds.
func auditPages(p *audit.Pages, in allowed) []route {
	return []route{
		{get, "/audit/holds", p.HoldsPage, in.audit},
		{post, "/audit/holds", p.SetHold, in.hold},
		{post, "/audit/holds/:id/lift", p.LiftHold, in.hold},
		{get, "/audit", p.Audit, in.audit},
		{get, "/audit/export", p.AuditExport, in.audit},
		{get, "/audit/verify", p.AuditVerify, in.audit},
		{post, "/audit/verify", p.RunVerify, in.audit},
		{post, "/audit/views", p.SaveView, in.audit},
		{post, "/audit/views/:id/delete", p.DeleteView, in.audit},
	}
}

// chatPages is the conversation with the team.
func chatPages(p *chat.Pages, in allowed) []route {
	return []route{
		{get, "/chat", p.Chat, in.talk},
		{post, "/chat", p.Say, in.send},
		{post, "/chat/approvals/:id/decision", p.ChatDecide, in.answer},
	}
}

// teamPages are agents, triggers and the shared context.
func teamPages(p *team.Pages, in allowed) []route {
	return []route{
		{get, "/context", p.ContextPage, in.know},
		{post, "/context", p.WriteContext, in.write},
		{get, "/agents", p.Agents, in.read},
		{get, "/agents/:name", p.Agent, in.read},
		{get, "/triggers", p.TriggersPage, in.read},
		{get, "/triggers/:name", p.Trigger, in.read},
		{post, "/triggers/:name", p.TryTrigger, in.send},
		{get, "/triggers/:name/deliveries/:id", p.Delivery, in.look},
		{post, "/triggers/:name/deliveries/:id", p.Redeliver, in.send},
	}
}

// settingsPages are accounts, people and what is in force.
func settingsPages(p *settings.Pages, in allowed) []route {
	return []route{
		{get, "/settings", p.Settings, in.person},
		{get, "/settings/you", p.You, in.person},
		{post, "/settings/you/password", p.SetPassword, in.browser},
		{post, "/settings/you/sessions", p.EndSessions, in.browser},
		{post, "/settings/you/zone", p.SetZone, in.browser},
		{post, "/settings/you/muted", p.SetMuted, in.browser},
		{get, "/settings/people", p.PeoplePage, in.admin},
		{post, "/settings/people", p.AddPerson, in.keeper},
		{get, "/settings/people/:name", p.Person, in.admin},
		{post, "/settings/people/:name", p.ChangePerson, in.keeper},
		{get, "/settings/tokens", p.TokensPage, in.person},
		{post, "/settings/tokens", p.MakeToken, in.browser},
		{post, "/settings/tokens/revoke", p.RevokeToken, in.browser},
		{get, "/settings/channels", p.ChannelsPage, in.person},
		{post, "/settings/channels/link", p.LinkAccount, in.person},
		{post, "/settings/channels/unlink", p.UnlinkAccount, in.person},
		{post, "/settings/channels/test", p.TestChannel, in.admin},
		{post, "/settings/channels/retry", p.RetryDelivery, in.admin},
		{get, "/settings/config", p.ConfigPage, in.look},
		{post, "/settings/config/reload", p.ReloadConfig, in.admin},
		{get, "/settings/policy", p.Policy, in.see},
		{post, "/settings/policy", p.TryPolicy, in.see},
	}
}

// signinPages are open to anyone.
func signinPages(p *signin.Pages, in allowed) []route {
	return []route{
		{get, "/login", p.Login, in.anyone},
		{post, "/login", p.SignIn, in.anyone},
		{get, "/login/link", p.Link, in.anyone},
		{post, "/login/link", p.UseLink, in.anyone},
		{post, "/logout", p.SignOut, in.anyone},
	}
}

// workAPI are tasks, delegations, agents and approvals.
func workAPI(a *api.API, st *stream.Streams, in allowed) []route {
	return []route{
		{post, v1 + "/tasks", a.CreateTask, in.send},
		{get, v1 + "/tasks/:id", a.Task, in.read},
		{get, v1 + "/tasks/:id/tree", a.Tree, in.read},
		{get, v1 + "/tasks/:id/insights", a.TaskInsights, in.read},
		{get, v1 + "/insights", a.Insights, in.read},
		{get, v1 + "/waits", a.Waits, in.read},
		{get, v1 + "/chat", a.Chat, in.talk},
		{get, v1 + "/chat/threads", a.ChatThreads, in.talk},
		{get, v1 + "/delegations", a.Delegations, in.read},
		{post, v1 + "/delegations", a.Delegate, in.run},
		{get, v1 + "/delegations/:id", a.Delegation, in.read},
		{get, v1 + "/delegations/:id/children", a.Children, in.read},
		{post, v1 + "/delegations/cancel", a.StopAll, in.admin},
		{post, v1 + "/delegations/:id/await", a.Await, in.run},
		{post, v1 + "/asks", a.Ask, in.run},
		{get, v1 + "/delegations/:id/grants", a.Grants, in.read},
		{del, v1 + "/grants/:id", a.Revoke, in.answer},
		{post, v1 + "/delegations/:id/cancel", a.Cancel, in.control},
		{post, v1 + "/delegations/:id/retry", a.Retry, in.control},
		{post, v1 + "/delegations/:id/pause", a.Pause, in.control},
		{post, v1 + "/delegations/:id/resume", a.Resume, in.control},
		{post, v1 + "/delegations/:id/fork", a.Fork, in.control},
		{post, v1 + "/delegations/:id/messages", a.Tell, in.tell},
		{get, v1 + "/delegations/:id/messages", a.Messages, in.read},
		{get, v1 + "/delegations/:id/events", either(st.Task, a.TaskEvents), in.read},
		{get, v1 + "/delegations/:id/turns", a.Turns, in.read},
		{get, v1 + "/delegations/:id/artifacts/*", a.Artifact, in.read},
		{get, v1 + "/delegations/:id/attachments/*", a.Attachment, in.read},
		{get, v1 + "/events", either(st.All, a.Events), in.read},
		{get, v1 + "/agents", a.Agents, in.read},
		{post, v1 + "/agents/check", a.CheckHop, in.read},
		{get, v1 + "/approvals", a.Approvals, in.see},
		{get, v1 + "/approvals/:id", a.Approval, in.own},
		{get, v1 + "/approvals/:id/patch", a.Patch, in.see},
		{post, v1 + "/approvals/:id/read", a.HasRead, in.see},
		{post, v1 + "/approvals/:id/decision", a.Decide, in.answer},
		{post, v1 + "/approvals/:id/comments/:comment", a.Answer, in.decide},
		{post, v1 + "/approvals/:id/revert", a.Revert, in.undo},
		{get, v1 + "/approvals/:id/evidence", a.Evidence, in.see},
		{get, v1 + "/policy/test", a.PolicyTest, in.see},
		{post, v1 + "/policy/test", a.PolicyTest, in.see},
	}
}

// recordAPI are the shared context, the audit, triggers, channels and the configuration.
func recordAPI(a *api.API, in allowed) []route {
	return []route{
		{get, v1 + "/context", a.Topics, in.know},
		{post, v1 + "/context/cleanup", a.CleanUp, in.write},
		{get, v1 + "/context/:ns", a.Entries, in.know},
		{get, v1 + "/context/:ns/:key", a.Entry, in.know},
		{put, v1 + "/context/:ns/:key", a.PutEntry, in.write},
		{del, v1 + "/context/:ns/:key", a.DeleteEntry, in.write},
		{post, v1 + "/context/:ns/:key/touch", a.TouchEntry, in.write},
		{get, v1 + "/context/:ns/:key/uses", a.Uses, in.know},
		{get, v1 + "/audit", a.Audit, in.audit},
		{get, v1 + "/audit/export", a.Export, in.audit},
		{get, v1 + "/audit/verify", a.Verify, in.audit},
		{get, v1 + "/audit/seal", a.Sealing, in.audit},
		{get, v1 + "/holds", a.GetHolds, in.audit},
		{post, v1 + "/holds", a.SetHold, in.hold},
		{del, v1 + "/holds/:id", a.LiftHold, in.hold},
		{get, v1 + "/triggers", a.Triggers, in.read},
		{get, v1 + "/triggers/:name", a.Trigger, in.read},
		{get, v1 + "/triggers/:name/deliveries", a.Deliveries, in.read},
		{get, v1 + "/triggers/:name/deliveries/:id", a.Delivery, in.look},
		{post, v1 + "/triggers/:name/deliveries/:id/redeliver", a.Redeliver, in.send},
		{get, v1 + "/deliveries/:id", a.Delivery, in.look},
		{post, v1 + "/deliveries/:id/redeliver", a.Redeliver, in.send},
		{post, v1 + "/triggers/:name/test", a.TryTrigger, in.send},
		{get, v1 + "/channels", a.Channels, in.see},
		{post, v1 + "/channels/retry", a.RetryChannels, in.admin},
		{post, v1 + "/config/reload", a.ReloadConfig, in.admin},
	}
}

// outside are the addresses of programs beside /api/v1.
func (s *Server) outside(in allowed) []route {
	return []route{
		{post, telegramPath, s.telegram, in.anyone},
		{post, hookPath, s.Hooks.Call, in.anyone},
		{get, "/ws", s.Streams.Socket, in.follow},
		{get, "/delegation-status", s.API.Status, in.read},
		{get, "/delegation-stream", s.Streams.Task, in.read},
		{get, "/healthz", s.healthz, in.anyone},
		{get, "/readyz", s.readyz, in.anyone},
		{get, "/metrics", s.metrics.serve, in.anyone},
		{get, static.Prefix + "*", echo.WrapHandler(static.Handler()), in.anyone},
	}
}

// mount registers the table; HEAD is answered wherever GET is.
func (s *Server) mount() {
	for _, r := range s.routes() {
		guarded := s.require(r.path, r.rights)
		s.access[r.method+" "+r.path] = r.rights
		s.echo.Add(r.method, r.path, r.handler, guarded)
		if r.method == http.MethodGet {
			s.echo.Add(http.MethodHead, r.path, r.handler, guarded)
		}
	}
}

// either streams where the client asks for SSE and answers JSON otherwise.
func either(sse, json echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if stream.Wanted(c) {
			return sse(c)
		}
		return json(c)
	}
}

// Entry is one line of the table as others may read it.
type Entry struct {
	Method, Path string
	Rights       []string
}

// Table lists every route with its rights, for documentation and tests.
func (s *Server) Table() []Entry {
	var all []Entry
	for _, r := range s.routes() {
		e := Entry{Method: r.method, Path: r.path}
		for _, right := range r.rights {
			e.Rights = append(e.Rights, string(right))
		}
		all = append(all, e)
	}
	return all
}
