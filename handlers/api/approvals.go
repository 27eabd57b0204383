package api

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// shape fills the published shape of a request.
func shape(e approval.Electorate, r approval.Request) wire.Request {
	v := r.Revision
	s := wire.Request{
		ID: r.ID, TaskID: r.TaskID, DelegationID: r.DelegationID, Kind: string(r.Kind), State: string(r.State), Revision: v.N, Digest: v.Digest,
		Repository: r.Repository, Target: r.Target(), Branch: v.Branch, Deliver: cmp.Or(v.Deliver, patch.DeliverMerge), Base: v.Base.Commit, Tree: v.Tree, Commit: v.Commit,
		Agent: r.Agent, Title: r.Title, Text: mask.Text(v.Text), Files: []wire.File{}, Added: v.Added, Removed: v.Removed,
		Warnings: []wire.Warning{}, Notes: []wire.Note{}, Checks: []wire.Check{},
		Rule: wire.Rule{Name: r.Rule.Name, Need: r.Rule.Need, From: append([]string{}, r.Rule.From...)},
		Made: v.Made, MadeFrom: v.MadeFrom, Declined: append([]string{}, v.Declined...), Mode: r.Mode,
		Cards: []wire.Card{}, ExpiresAt: utc(r.ExpiresAt), CreatedAt: r.CreatedAt.UTC(),
		BaseAt: known(v.Base.At), DecidedAt: utc(r.DecidedAt), Requester: r.Requester, Risk: riskOf(r), Needs: needsOf(e, r), RevertOf: wire.Maybe(r.RevertOf), RevertedBy: wire.Maybe(r.RevertedBy), Read: howRead(r),
	}
	s.Question = questionOf(r.Handover)
	askedOf(&s, r)
	if r.IsHandover() {
		s.Commit = "" // that of a snapshot is nothing to look at
		masked := maskedQuestion(r.Handover)
		s.Context, s.Artifacts, s.Handover = masked.Context, r.Handover.Artifacts(), masked.Handover
	}
	if r.Landed != "" {
		s.Commit = r.Landed
	}
	if v.Editor != nil {
		s.Editor = wire.Maybe(v.Editor.User)
	}
	if r.Overtaken() != "" {
		o := v.Overtaken
		s.Overtaken = &wire.Overtaken{Branch: o.Branch, Head: o.Head, Files: o.Files, Why: o.Why, Message: r.Overtaken(), Brief: r.OvertakenBriefly()}
	}
	for _, f := range v.Files {
		s.Files = append(s.Files, wire.File{
			Path: f.Path, OldPath: f.OldPath, Status: string(f.Status), Added: f.Added, Removed: f.Removed, Binary: f.Binary,
			OldMode: f.OldMode, NewMode: f.NewMode,
		})
	}
	for _, w := range v.Warnings {
		s.Warnings = append(s.Warnings, wire.Warning(w))
	}
	for _, n := range v.Notes {
		s.Notes = append(s.Notes, wire.Note(n))
	}
	for _, c := range v.Checks {
		s.Checks = append(s.Checks, wire.Check{Command: c.Command, OK: c.OK, Output: c.Output})
	}
	s.Decisions = wire.Items(each.Of(r.Decisions, decisionOf))
	for _, card := range r.Cards {
		s.Cards = append(s.Cards, wire.Card{Channel: card.Channel, State: cardState(r, card)})
	}
	return s
}

func decisionOf(d approval.Decision) wire.Decision {
	seen := wire.Seen{
		Surface: d.Seen.Surface, Files: d.Seen.Files, FilesViewed: d.Seen.FilesViewed, FilesOpened: d.Seen.FilesOpened,
		WarningsTicked: append([]string{}, d.Seen.WarningsTicked...), Read: readsOf(d.Seen.Read), OpenedAt: d.Seen.OpenedAt,
	}
	return wire.Decision{
		ID: d.ID, User: d.User, Channel: d.Channel, Verdict: string(d.Verdict), Comment: mask.Text(d.Comment), Digest: d.Digest, At: d.At.UTC(),
		Revision: d.Revision, Seen: seen, For: d.For, Files: d.Files, Comments: maskedComments(d.Comments), StartOver: d.StartOver,
	}
}

// readsOf is what was before a person; nil, as where that was not kept yet, stays nil.
func readsOf(all []approval.Read) []wire.Read {
	if all == nil {
		return nil
	}
	reads := make([]wire.Read, len(all))
	for i, read := range all {
		reads[i] = wire.Read(read)
	}
	return reads
}

func howRead(r approval.Request) wire.HowRead {
	read := wire.HowRead{Text: r.HowRead()}
	if all := r.ReadBy(); all != nil {
		read.By = []wire.Reader{}
	}
	for _, one := range r.ReadBy() {
		read.By = append(read.By, wire.Reader{User: one.User, Of: one.Of, Reads: readsOf(one.Reads), Decided: one.Decided})
	}
	return read
}

func riskOf(r approval.Request) wire.Risk {
	risk := approval.RiskOf(r)
	return wire.Risk{Level: string(risk.Level), Reasons: risk.Reasons}
}

func needsOf(e approval.Electorate, r approval.Request) wire.Needs {
	n := e.Needs(r)
	return wire.Needs{Count: n.Count, Have: n.Have, From: n.From, Missing: approval.Names(n.Missing), Problem: e.TooFew(r)}
}

// cardState says how far a channel is behind the request.
func cardState(r approval.Request, c approval.Card) string {
	switch {
	case c.Dead:
		return "dead"
	case c.Shown >= r.Version:
		return "sent"
	case c.Error != "":
		return "failed"
	default:
		return "due"
	}
}

// requestID understands a request's id and, while exactly one of its requests is
// pending, a task's.
func (a *API) requestID(c echo.Context) (string, error) {
	ctx, id := c.Request().Context(), c.Param("id")
	if !strings.HasPrefix(id, orchestrator.TaskPrefix) && !strings.HasPrefix(id, orchestrator.DelegationPrefix) {
		return a.Ids.Request(ctx, id)
	}
	t, err := a.Ids.Task(ctx, caller(c), id)
	if err != nil {
		return "", err
	}
	pending, err := a.Requests.PendingOf(ctx, t.ID)
	switch {
	case err != nil:
		return "", err
	case len(pending) == 0:
		return "", orchestrator.Errorf(orchestrator.CodeNotFound, "No request of the task %s is pending.", t.ID)
	case len(pending) > 1:
		return "", orchestrator.Errorf(orchestrator.CodeAmbiguous, "The task %s has more than one pending request: %s. Name one of them.", t.ID, strings.Join(pending, ", "))
	}
	return pending[0], nil
}

// request reads the request that the address names.
func (a *API) request(c echo.Context) (approval.Request, error) {
	id, err := a.requestID(c)
	if err != nil {
		return approval.Request{}, err
	}
	r, err := a.Requests.Request(c.Request().Context(), id)
	if isNotFound(err) {
		err = orchestrator.Errorf(orchestrator.CodeNotFound, "No request has the id %q.", c.Param("id"))
	}
	return r, err
}

// Approvals answers GET /approvals.
func (a *API) Approvals(c echo.Context) error {
	ctx, q := c.Request().Context(), asked(c, "state", "task_id", "repository", "agent", "after", "limit")
	f := approval.Filter{Repository: q.Get("repository"), Agent: q.Get("agent"), States: statesOf(q,
		handlers.RequestStates()),
		Limit: q.limit(), After: q.id(orchestrator.RequestPrefix)}
	if q.err != nil {
		return q.err
	}
	if id := q.Get("task_id"); id != "" {
		t, err := a.Ids.Task(ctx, caller(c), id)
		if err != nil {
			return err
		}
		f.TaskID = t.ID
	}
	page, err := a.Requests.Requests(ctx, f)
	if err != nil {
		return err
	}
	e, err := a.Gateway.Electorate(ctx)
	if err != nil {
		return err
	}
	if err := a.Gateway.WithReaders(ctx, caller(c).Principal, page.Items); err != nil {
		return err
	}
	items := each.Of(page.Items, func(r approval.Request) wire.Request { return shape(e, r) })
	return c.JSON(http.StatusOK, wire.ListOf(items, page.Next))
}

// Approval answers GET /approvals/{id}.
func (a *API) Approval(c echo.Context) error {
	r, err := a.request(c)
	if err != nil {
		return err
	}
	if who := caller(c); !r.MayAnswer(who.User.ID) { // which those may read who read no other requests
		if err := who.Require([]handlers.Right{handlers.ApprovalsRead}); err != nil {
			return err
		}
	}
	ctx := c.Request().Context()
	if moved, err := a.Gateway.Moved(ctx, r); err == nil && moved.Overtaken != r.Overtaken() { // else what is known will do
		if r, err = a.Requests.Request(ctx, r.ID); err != nil {
			return err
		}
	}
	return a.answer(c, r)
}

func (a *API) answer(c echo.Context, r approval.Request) error {
	e, err := a.Gateway.Electorate(c.Request().Context())
	if err != nil {
		return err
	}
	s, err := a.whole(c, e, r)
	if err != nil {
		return err
	}
	if s.Missed, err = a.Gateway.MissedBy(c.Request().Context(), r, caller(c).User.ID); err != nil {
		return err
	}
	if r.State == approval.Pending {
		for _, v := range []approval.Verdict{approval.Approve, approval.Reject, approval.RequestChanges, approval.Renew, approval.Edit, approval.Respond} {
			if !r.Takes(v) || v == approval.Renew && r.Overtaken() == "" {
				continue
			}
			if v == approval.Approve && r.Overtaken() != "" {
				s.Refused = r.Overtaken()
				continue
			}
			switch refused := e.May(caller(c).Principal, r, v); {
			case refused == nil:
				s.May = append(s.May, string(v))
			case v == approval.Approve:
				s.Refused = refused.Message
			}
		}
	}
	return c.JSON(http.StatusOK, s)
}

// whole is the shape of one request with its comments, and with all who read it.
func (a *API) whole(c echo.Context, e approval.Electorate, r approval.Request) (wire.Request, error) {
	r, err := a.Gateway.ReadersOf(c.Request().Context(), caller(c).Principal, r)
	if err != nil {
		return wire.Request{}, err
	}
	s := shape(e, r)
	s.Comments, err = a.comments(c, r)
	return s, err
}

// Patch answers GET /approvals/{id}/patch with the unified diff of the current
// revision, of the one that ?rev= names, or from the one that ?since= names to it. Whoever takes
// all of it has read it, but with ?read=later: then POST /approvals/{id}/read says so.
func (a *API) Patch(c echo.Context) error {
	ctx, q := c.Request().Context(), asked(c, "rev", "since", "read")
	if q.err != nil {
		return q.err
	}
	r, err := a.request(c)
	if err != nil {
		return err
	}
	if !r.IsPatch() && !r.IsHandover() {
		return orchestrator.Errorf(orchestrator.CodeNotFound, "The request %s asks about no change of files. What it asks is in its text.", r.ID)
	}
	if r.IsHandover() && !r.Travels() {
		return orchestrator.Errorf(orchestrator.CodeNotFound, "The request %s asks whether work may be handed on, and no files go with it. What would be handed on is in its question.", r.ID)
	}
	shown, err := a.revision(c, r, q.Get("rev"))
	if err != nil {
		return err
	}
	c.Response().Header().Set("Gatehouse-Digest", shown.Digest)
	if q.Get("since") != "" {
		from, err := a.revision(c, r, q.Get("since"))
		if err != nil {
			return err
		}
		if _, err := a.Reviewer.Between(ctx, from, shown, r.Repository); err != nil { // also brings in both trees
			return err
		}
		shown.Base.Tree = from.Tree
	}
	diff, err := a.Reviewer.Diff(ctx, shown, r.Repository)
	if err != nil {
		return err
	}
	if err := c.Blob(http.StatusOK, "text/x-diff; charset=utf-8", diff); err != nil || q.Get("since") != "" || q.Get("read") == "later" {
		return err
	}
	a.Gateway.ReadWhole(ctx, caller(c).Principal, r, shown.N, handlers.Channel(c))
	return nil
}

// HasRead answers POST /approvals/{id}/read: the whole diff of a revision was before the caller.
func (a *API) HasRead(c echo.Context) error {
	var in wire.Shown
	if err := read(c, &in); err != nil {
		return err
	}
	r, err := a.request(c)
	if err != nil {
		return err
	}
	shown, err := a.revision(c, r, strconv.Itoa(in.Revision))
	switch {
	case err != nil:
		return err
	case shown.Digest != in.Digest:
		return bad("Revision %d of %s has another digest. Send that of the revision that was read.", in.Revision, r.ID)
	}
	a.Gateway.ReadWhole(c.Request().Context(), caller(c).Principal, r, shown.N, handlers.Channel(c))
	return c.NoContent(http.StatusNoContent)
}

// revision is the one of that number, the current one where none is named.
func (a *API) revision(c echo.Context, r approval.Request, number string) (approval.Revision, error) {
	n, err := strconv.Atoi(number)
	if number == "" || err == nil && n == r.Revision.N {
		return r.Revision, nil
	}
	all, readErr := a.Requests.Revisions(c.Request().Context(), r.ID)
	if readErr != nil {
		return r.Revision, readErr
	}
	if i := slices.IndexFunc(all, func(v approval.Revision) bool { return err == nil && v.N == n }); i >= 0 {
		return all[i], nil
	}
	return r.Revision, orchestrator.Errorf(orchestrator.CodeNotFound, "This request has %d revisions, and none of number %.20q.", len(all), number)
}
