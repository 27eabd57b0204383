package web

import (
	"net/http"
	"slices"

	"gatehouse/handlers"
	"gatehouse/handlers/stream"
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

// may lists rights.
func may(r ...handlers.Right) []handlers.Right { return r }

// routes is every address of the server with the rights that it asks for.
func (s *Server) routes() []route {
	p, a, st := s.Pages, s.API, s.Streams
	anyone, read, control := may(handlers.Anyone), may(handlers.DelegationsRead), may(handlers.DelegationsControl)
	see, decide := may(handlers.ApprovalsRead), may(handlers.ApprovalsDecide)
	talk := may(handlers.TasksWrite, handlers.ApprovalsDecide)
	send, undo, land := may(handlers.TasksWrite), may(handlers.ApprovalsDecide, handlers.TasksWrite), may(handlers.DelegationsControl, handlers.ApprovalsDecide)
	know, write, audit, run := may(handlers.ContextRead), may(handlers.ContextWrite), may(handlers.AuditRead), may(handlers.ByRun)
	person, admin := may(handlers.SignedIn), may(handlers.AdminOnly)
	browser, keeper := may(handlers.InBrowser), may(handlers.AdminInBrowser)
	const get, post, put, del, v1 = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, "/api/v1"
	pages := []route{
		{get, "/", p.Overview, read},
		{get, "/approvals", p.Approvals, see},
		{get, "/approvals/:id", p.Review, see},
		{get, "/approvals/:id/picture", p.Picture, see},
		{post, "/approvals/:id/decision", p.Decide, decide},
		{post, "/approvals/:id/drafts", p.Draft, decide},
		{post, "/approvals/:id/threads", p.Answer, decide},
		{post, "/approvals/:id/viewed", p.Viewed, see},
		{post, "/approvals/:id/opened", p.Opened, see},
		{post, "/approvals/:id/edit", p.Edit, decide},
		{post, "/approvals/:id/revert", p.Revert, undo},
		{get, "/approvals/:id/evidence", p.Evidence, see},
		{post, "/approvals/:id/land", p.Land, land},
		{get, "/delegations", p.Delegations, read},
		{post, "/delegations", p.Send, send},
		{post, "/tasks", p.Send, send},
		{get, "/delegations/stop", p.StopPage, admin},
		{post, "/delegations/stop", p.StopAll, admin},
		{get, "/delegations/:id", p.Delegation, read},
		{post, "/delegations/:id/cancel", p.Cancel, control},
		{post, "/delegations/:id/retry", p.Retry, control},
		{post, "/delegations/:id/pause", p.Pause, control},
		{post, "/delegations/:id/resume", p.Resume, control},
		{post, "/delegations/:id/fork", p.Fork, control},
		{get, "/delegations/:id/artifacts/:n", p.Artifact, read},
		{get, "/delegations/:id/flow", p.Flow, read},
		{get, "/delegations/:id/flow.svg", p.FlowSVG, read},
		{get, "/audit/holds", p.HoldsPage, audit},
		{post, "/audit/holds", p.SetHold, may(handlers.AuditHold)},
		{post, "/audit/holds/:id/lift", p.LiftHold, may(handlers.AuditHold)},
		{get, "/insights", p.Insights, read},
		{get, "/insights/:by", p.InsightsCSV, read},
		{get, "/waits", p.Waits, read},
		{get, "/audit", p.Audit, audit},
		{get, "/audit/export", p.AuditExport, audit},
		{get, "/audit/verify", p.AuditVerify, audit},
		{post, "/audit/verify", p.RunVerify, audit},
		{post, "/audit/views", p.SaveView, audit},
		{post, "/audit/views/:id/delete", p.DeleteView, audit},
		{get, "/chat", p.Chat, talk},
		{post, "/chat", p.Say, send},
		{post, "/chat/approvals/:id/decision", p.ChatDecide, decide},
		{get, "/settings", p.Settings, person},
		{get, "/settings/you", p.You, person},
		{post, "/settings/you/password", p.SetPassword, browser},
		{post, "/settings/you/sessions", p.EndSessions, browser},
		{post, "/settings/you/zone", p.SetZone, browser},
		{get, "/settings/people", p.PeoplePage, admin},
		{post, "/settings/people", p.AddPerson, keeper},
		{get, "/settings/people/:name", p.Person, admin},
		{post, "/settings/people/:name", p.ChangePerson, keeper},
		{get, "/settings/tokens", p.TokensPage, person},
		{post, "/settings/tokens", p.MakeToken, browser},
		{post, "/settings/tokens/revoke", p.RevokeToken, browser},
		{get, "/settings/channels", p.ChannelsPage, person},
		{post, "/settings/channels/link", p.LinkAccount, person},
		{post, "/settings/channels/unlink", p.UnlinkAccount, person},
		{post, "/settings/channels/test", p.TestChannel, admin},
		{post, "/settings/channels/retry", p.RetryDelivery, admin},
		{get, "/settings/config", p.ConfigPage, may(handlers.TasksWrite, handlers.AuditRead)},
		{post, "/settings/config/reload", p.ReloadConfig, admin},
		{get, "/settings/policy", p.Policy, see},
		{post, "/settings/policy", p.TryPolicy, see},
		{get, "/context", p.ContextPage, know},
		{post, "/context", p.WriteContext, write},
		{get, "/agents", p.Agents, read},
		{get, "/agents/:name", p.Agent, read},
		{get, "/triggers", p.TriggersPage, read},
		{get, "/triggers/:name", p.Trigger, read},
		{post, "/triggers/:name", p.TryTrigger, send},
		{get, "/triggers/:name/deliveries/:id", p.Delivery, may(handlers.TasksWrite, handlers.AuditRead)},
		{post, "/triggers/:name/deliveries/:id", p.Redeliver, send},
		{get, "/login", p.Login, anyone},
		{post, "/login", p.SignIn, anyone},
		{get, "/login/link", p.Link, anyone},
		{post, "/login/link", p.UseLink, anyone},
		{post, "/logout", p.SignOut, anyone},
	}
	for i, r := range pages {
		if r.method == get && !slices.Contains(r.rights, handlers.Anyone) {
			pages[i].handler = p.OneMoment(r.handler)
		}
	}
	return append(pages, []route{
		// Tasks and delegations.
		{post, v1 + "/tasks", a.CreateTask, send},
		{get, v1 + "/tasks/:id", a.Task, read},
		{get, v1 + "/tasks/:id/tree", a.Tree, read},
		{get, v1 + "/tasks/:id/insights", a.TaskInsights, read},
		{get, v1 + "/insights", a.Insights, read},
		{get, v1 + "/waits", a.Waits, read},
		{get, v1 + "/chat", a.Chat, talk},
		{get, v1 + "/delegations", a.Delegations, read},
		{post, v1 + "/delegations", a.Delegate, run},
		{get, v1 + "/delegations/:id", a.Delegation, read},
		{get, v1 + "/delegations/:id/children", a.Children, read},
		{post, v1 + "/delegations/cancel", a.StopAll, admin},
		{post, v1 + "/delegations/:id/await", a.Await, run},
		{post, v1 + "/delegations/:id/cancel", a.Cancel, control},
		{post, v1 + "/delegations/:id/retry", a.Retry, control},
		{post, v1 + "/delegations/:id/pause", a.Pause, control},
		{post, v1 + "/delegations/:id/resume", a.Resume, control},
		{post, v1 + "/delegations/:id/fork", a.Fork, control},
		{get, v1 + "/delegations/:id/events", either(st.Task, a.TaskEvents), read},
		{get, v1 + "/delegations/:id/turns", a.Turns, read},
		{get, v1 + "/delegations/:id/artifacts/*", a.Artifact, read},
		{get, v1 + "/events", either(st.All, a.Events), read},
		{get, v1 + "/agents", a.Agents, read},
		{post, v1 + "/agents/check", a.CheckHop, read},

		// Approvals.
		{get, v1 + "/approvals", a.Approvals, see},
		{get, v1 + "/approvals/:id", a.Approval, see},
		{get, v1 + "/approvals/:id/patch", a.Patch, see},
		{post, v1 + "/approvals/:id/decision", a.Decide, decide},
		{post, v1 + "/approvals/:id/comments/:comment", a.Answer, decide},
		{post, v1 + "/approvals/:id/revert", a.Revert, undo},
		{get, v1 + "/approvals/:id/evidence", a.Evidence, see},
		{get, v1 + "/policy/test", a.PolicyTest, see},
		{post, v1 + "/policy/test", a.PolicyTest, see},

		// Shared context, audit, configuration.
		{get, v1 + "/context", a.Topics, know},
		{post, v1 + "/context/cleanup", a.CleanUp, write},
		{get, v1 + "/context/:ns", a.Entries, know},
		{get, v1 + "/context/:ns/:key", a.Entry, know},
		{put, v1 + "/context/:ns/:key", a.PutEntry, write},
		{del, v1 + "/context/:ns/:key", a.DeleteEntry, write},
		{post, v1 + "/context/:ns/:key/touch", a.TouchEntry, write},
		{get, v1 + "/context/:ns/:key/uses", a.Uses, know},
		{get, v1 + "/audit", a.Audit, audit},
		{get, v1 + "/audit/export", a.Export, audit},
		{get, v1 + "/audit/verify", a.Verify, audit},
		{get, v1 + "/audit/seal", a.Sealing, audit},
		{get, v1 + "/holds", a.GetHolds, audit},
		{post, v1 + "/holds", a.SetHold, may(handlers.AuditHold)},
		{del, v1 + "/holds/:id", a.LiftHold, may(handlers.AuditHold)},
		{get, v1 + "/triggers", a.Triggers, read},
		{get, v1 + "/triggers/:name", a.Trigger, read},
		{get, v1 + "/triggers/:name/deliveries", a.Deliveries, read},
		{get, v1 + "/triggers/:name/deliveries/:id", a.Delivery, may(handlers.TasksWrite, handlers.AuditRead)},
		{post, v1 + "/triggers/:name/deliveries/:id/redeliver", a.Redeliver, send},
		{get, v1 + "/deliveries/:id", a.Delivery, may(handlers.TasksWrite, handlers.AuditRead)},
		{post, v1 + "/deliveries/:id/redeliver", a.Redeliver, send},
		{post, v1 + "/triggers/:name/test", a.TryTrigger, send},
		{get, v1 + "/channels", a.Channels, see},
		{post, v1 + "/channels/retry", a.RetryChannels, admin},
		{post, v1 + "/config/reload", a.ReloadConfig, admin},

		// Outside of /api/v1.
		{post, telegramPath, s.telegram, anyone},
		{post, hookPath, s.Hooks.Call, anyone},
		{get, "/ws", st.Socket, may(handlers.DelegationsRead, handlers.TasksWrite)},
		{get, "/delegation-status", a.Status, read},
		{get, "/delegation-stream", st.Task, read},
		{get, "/healthz", s.healthz, anyone},
		{get, "/readyz", s.readyz, anyone},
		{get, "/metrics", s.metrics.serve, anyone},
		{get, static.Prefix + "*", echo.WrapHandler(static.Handler()), anyone},
	}...)
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
