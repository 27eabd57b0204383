package api

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"

	"github.com/labstack/echo/v4"
)

// requestShape is the published shape of an approval request.
type requestShape struct {
	ID           string        `json:"id"`
	TaskID       string        `json:"task_id"`
	DelegationID string        `json:"delegation_id"`
	Kind         approval.Kind `json:"kind"` // patch or handover
	// Question is what a hand-over would hand on; null for a patch.
	Question *orchestrator.Question `json:"question"`
	// The same of a hand-over, beside tree and files; null for a patch.
	Context    map[string]string `json:"context"`
	Artifacts  []string          `json:"artifacts"` // names
	Handover   *agent.Handover   `json:"handover"`  // the command object
	State      approval.State    `json:"state"`
	Revision   int               `json:"revision"`
	Digest     string            `json:"digest"`
	Made       string            `json:"made"`      // how people made the revision: files, edit, or "" by the agent
	MadeFrom   int               `json:"made_from"` // from which revision, 0 by the agent
	Editor     *string           `json:"editor"`    // who edited it
	Declined   []string          `json:"declined"`  // files of made_from that were left out
	Mode       string            `json:"mode"`      // where a yes may be given: any, web, chat or telegram
	Repository string            `json:"repository"`
	Target     string            `json:"target"`
	Branch     string            `json:"branch"`
	Deliver    string            `json:"deliver"` // merge: a yes lands it on target; branch: a yes pushes branch
	Base       string            `json:"base"`
	BaseAt     *time.Time        `json:"base_at"` // when that commit was made; null in old requests and without files
	Tree       string            `json:"tree"`
	Commit     string            `json:"commit"`
	Agent      string            `json:"agent"`
	Title      string            `json:"title"`
	Text       string            `json:"text"`
	Files      []fileShape       `json:"files"`
	Added      int               `json:"added"`
	Removed    int               `json:"removed"`
	Warnings   []patch.Warning   `json:"warnings"`
	Notes      []patch.Note      `json:"notes"`
	Checks     []checkShape      `json:"checks"`
	Rule       ruleShape         `json:"rule"`
	Decisions  []decisionShape   `json:"decisions"`
	Read       readShape         `json:"read"`
	Risk       approval.Risk     `json:"risk"`
	Needs      needsShape        `json:"needs"`
	ExpiresAt  *time.Time        `json:"expires_at"`
	CreatedAt  time.Time         `json:"created_at"`
	DecidedAt  *time.Time        `json:"decided_at"`
	Cards      []cardShape       `json:"cards"`
	Requester  string            `json:"requester"`
	RevertOf   *string           `json:"revert_of"`
	RevertedBy *string           `json:"reverted_by"`
	// Comments are the line comments of all revisions; only where one request is read.
	Comments []commentShape `json:"comments,omitempty"`
	// Refused is why the yes of who asks would not be taken; only where one request is read.
	Refused string `json:"refused,omitempty"`
	// Overtaken says that the target changed so that a yes lands nothing; null: it may land,
	// or nobody knows. Its message is what every place shows; the verdict renew makes the next
	// revision on the target as it is today.
	Overtaken *overtakenShape `json:"overtaken"`
	// Missed is what became of their newest yes where it landed nothing; only where one
	// request is read or decided.
	Missed string `json:"missed,omitempty"`
	// May are the verdicts that they may give; only there, too.
	May []approval.Verdict `json:"may,omitempty"`
}

// readShape is how the revision was read: by those who decided on it, and by those who did not.
type readShape struct {
	Text string            `json:"text"`
	By   []approval.Reader `json:"by"`
}

// overtakenShape is how the target branch changed.
type overtakenShape struct {
	patch.Overtaken
	Message string `json:"message"`
	Brief   string `json:"brief"` // for a line of a list: what happened, and what to do
}

// needsShape is how far a request is, and why it cannot get there.
type needsShape struct {
	approval.Needs
	Problem string `json:"problem,omitempty"` // there are too few people for a yes, and what to do
}

type fileShape struct {
	Path    string       `json:"path"`
	OldPath string       `json:"old_path"`
	Status  patch.Status `json:"status"`
	Added   int          `json:"added"`
	Removed int          `json:"removed"`
	Binary  bool         `json:"binary"`
	OldMode string       `json:"old_mode"`
	NewMode string       `json:"new_mode"`
}

type checkShape struct {
	Command string `json:"command"`
	OK      bool   `json:"ok"`
	Output  string `json:"output"`
}

type ruleShape struct {
	Name string   `json:"name"`
	Need int      `json:"need"`
	From []string `json:"from"`
}

type decisionShape struct {
	ID       string           `json:"id"`
	User     string           `json:"user"`
	Channel  string           `json:"channel"`
	Verdict  approval.Verdict `json:"verdict"`
	Comment  string           `json:"comment"`
	Digest   string           `json:"digest"`
	At       time.Time        `json:"at"`
	Revision int              `json:"revision"`
	Seen     approval.Seen    `json:"seen"`
	// For is the absent person in whose place it was made.
	For      string              `json:"for,omitempty"`
	Files    []string            `json:"files,omitempty"`
	Comments []agent.LineComment `json:"comments,omitempty"`
	// StartOver: with request_changes, the agent begins from the base.
	StartOver bool `json:"start_over,omitempty"`
}

type cardShape struct {
	Channel string `json:"channel"`
	State   string `json:"state"` // due, sent, failed or dead
}

// shape fills the published shape of a request.
func shape(e approval.Electorate, r approval.Request) requestShape {
	v := r.Revision
	s := requestShape{
		ID: r.ID, TaskID: r.TaskID, DelegationID: r.DelegationID, Kind: r.Kind, Question: maskedQuestion(r.Question), State: r.State, Revision: v.N, Digest: v.Digest,
		Repository: r.Repository, Target: r.Target(), Branch: v.Branch, Deliver: cmp.Or(v.Deliver, patch.DeliverMerge), Base: v.Base.Commit, Tree: v.Tree, Commit: v.Commit,
		Agent: r.Agent, Title: r.Title, Text: mask.Text(v.Text), Files: []fileShape{}, Added: v.Added, Removed: v.Removed,
		Warnings: append([]patch.Warning{}, v.Warnings...), Notes: append([]patch.Note{}, v.Notes...), Checks: []checkShape{},
		Rule: ruleShape{Name: r.Rule.Name, Need: r.Rule.Need, From: append([]string{}, r.Rule.From...)},
		Made: v.Made, MadeFrom: v.MadeFrom, Declined: append([]string{}, v.Declined...), Mode: r.Mode,
		Decisions: []decisionShape{}, Cards: []cardShape{}, ExpiresAt: utc(r.ExpiresAt), CreatedAt: r.CreatedAt.UTC(),
		BaseAt: known(v.Base.At), DecidedAt: utc(r.DecidedAt), Requester: r.Requester, Risk: approval.RiskOf(r), Needs: needsShape{e.Needs(r), e.TooFew(r)}, RevertOf: orNull(r.RevertOf), RevertedBy: orNull(r.RevertedBy), Read: readShape{r.HowRead(), r.ReadBy()},
	}
	if r.IsHandover() {
		s.Commit = "" // that of a snapshot is nothing to look at
		s.Context, s.Artifacts, s.Handover = s.Question.Context, r.Question.Artifacts(), s.Question.Handover
	}
	if r.Landed != "" {
		s.Commit = r.Landed
	}
	if v.Editor != nil {
		s.Editor = &v.Editor.User
	}
	if r.Overtaken() != "" {
		s.Overtaken = &overtakenShape{*v.Overtaken, r.Overtaken(), r.OvertakenBriefly()}
	}
	for _, f := range v.Files {
		s.Files = append(s.Files, fileShape{f.Path, f.OldPath, f.Status, f.Added, f.Removed, f.Binary, f.OldMode, f.NewMode})
	}
	for _, c := range v.Checks {
		s.Checks = append(s.Checks, checkShape{c.Command, c.OK, c.Output})
	}
	for _, d := range r.Decisions {
		d.Seen.WarningsTicked = append([]string{}, d.Seen.WarningsTicked...)
		s.Decisions = append(s.Decisions, decisionShape{d.ID, d.User, string(d.Channel), d.Verdict, mask.Text(d.Comment), d.Digest, d.At.UTC(), d.Revision, d.Seen, d.For, d.Files, maskedComments(d.Comments), d.StartOver})
	}
	for _, card := range r.Cards {
		s.Cards = append(s.Cards, cardShape{card.Channel, cardState(r, card)})
	}
	return s
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
	ctx, q := c.Request().Context(), c.QueryParams()
	if err := only(q, "state", "task_id", "repository", "agent", "after", "limit"); err != nil {
		return err
	}
	f := approval.Filter{Repository: q.Get("repository"), Agent: q.Get("agent"), After: q.Get("after")}
	var err error
	if f.States, err = statesOf(q, handlers.RequestStates()); err != nil {
		return err
	}
	if f.Limit, err = limitOf(q); err != nil {
		return err
	}
	if err := cursorIs(f.After, orchestrator.RequestPrefix); err != nil {
		return err
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
	items := make([]requestShape, len(page.Items))
	for i, r := range page.Items {
		items[i] = shape(e, r)
	}
	return c.JSON(http.StatusOK, listOf(items, page.Next))
}

// Approval answers GET /approvals/{id}.
func (a *API) Approval(c echo.Context) error {
	r, err := a.request(c)
	if err != nil {
		return err
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
		for _, v := range []approval.Verdict{approval.Approve, approval.Reject, approval.RequestChanges, approval.Renew} {
			if (v == approval.RequestChanges || v == approval.Renew) && r.IsHandover() || v == approval.Renew && r.Overtaken() == "" {
				continue
			}
			if v == approval.Approve && r.Overtaken() != "" {
				s.Refused = r.Overtaken()
				continue
			}
			switch refused := e.May(caller(c).Principal, r, v); {
			case refused == nil:
				s.May = append(s.May, v)
			case v == approval.Approve:
				s.Refused = refused.Message
			}
		}
	}
	return c.JSON(http.StatusOK, s)
}

// whole is the shape of one request with its comments, and with all who read it.
func (a *API) whole(c echo.Context, e approval.Electorate, r approval.Request) (requestShape, error) {
	r, err := a.withReaders(c, r)
	if err != nil {
		return requestShape{}, err
	}
	s := shape(e, r)
	s.Comments, err = a.comments(c, r)
	return s, err
}

// withReaders is r with who read its current revision, as far as who asks may know.
func (a *API) withReaders(c echo.Context, r approval.Request) (approval.Request, error) {
	one := []approval.Request{r}
	err := a.Gateway.WithReaders(c.Request().Context(), caller(c).Principal, one)
	return one[0], err
}

// Patch answers GET /approvals/{id}/patch with the unified diff of the current
// revision, of the one that ?rev= names, or from the one that ?since= names to it.
func (a *API) Patch(c echo.Context) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	if err := only(q, "rev", "since"); err != nil {
		return err
	}
	r, err := a.request(c)
	if err != nil {
		return err
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
	if q.Get("since") == "" {
		a.Gateway.ReadWhole(ctx, caller(c).Principal, r, shown.N, handlers.Channel(c))
	}
	return c.Blob(http.StatusOK, "text/x-diff; charset=utf-8", diff)
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
