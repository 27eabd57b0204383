package api

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/origin"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// CreateTask answers POST /tasks: 202 with the new task; 200 with the first one
// when the key was used before, and for a dry run, which stores nothing. A follow-up of what
// still runs is told to its agent: 202 with that task, and the message's id.
func (a *API) CreateTask(c echo.Context) error {
	var in wire.Submission
	if err := read(c, &in); err != nil {
		return err
	}
	if err := withoutFiles(c.Request().ContentLength, in.Attachments); err != nil {
		return err
	}
	var limits *budget.Limits
	if len(in.Budget) > 0 && string(in.Budget) != "null" {
		var err error
		if limits, err = budget.Read(in.Budget); err != nil {
			return bad("The budget was not taken: %v.", err)
		}
	}
	hops, err := agent.Hops(c.Request().Header.Values(agent.HopsHeader))
	if err != nil {
		return bad("%w", err)
	}
	who := caller(c)
	follows, err := a.Ids.Follows(c.Request().Context(), who, in.Follows)
	if err != nil {
		return err
	}
	said, err := a.Engine.Say(c.Request().Context(), orchestrator.Submission{
		Agent: in.Agent, Capability: in.Capability, Text: in.Text, Repository: in.Repository, Ref: in.Ref, Key: in.Key,
		Complexity: in.Complexity, Budget: limits, RemoteHops: hops, Source: in.Source, Handoffs: in.Handoffs, Follows: follows, DryRun: in.DryRun,
		Attachments: each.Of(in.Attachments, func(f wire.Upload) agent.File { return agent.File(f) }),
		Via:         origin.From(handlers.Channel(c)), RequesterID: who.User.ID, Requester: who.User.Name,
	}, who.User)
	if err != nil {
		return err
	}
	t, root := said.Task, said.Root
	out := wire.Submitted{ID: t.ID, DelegationID: root.ID, State: string(root.State), Agent: t.Agent, DryRun: in.DryRun, Complexity: t.Complexity, Why: t.Why, Budget: budgetOf(root.Work.Budget)}
	if in.DryRun {
		out.ID, out.DelegationID = "", ""
	}
	if said.Message != nil {
		out.MessageID = said.Message.ID
		return c.JSON(http.StatusAccepted, out)
	}
	if !said.Created {
		return c.JSON(http.StatusOK, out)
	}
	c.Response().Header().Set(echo.HeaderLocation, "/api/v1/tasks/"+t.ID)
	return c.JSON(http.StatusAccepted, out)
}

// withoutFiles holds what is no file to the limit of every other request.
func withoutFiles(size int64, files []wire.Upload) error {
	for _, f := range files {
		size -= int64(base64.StdEncoding.EncodedLen(len(f.Data)))
	}
	if size > handlers.MaxBody {
		return &http.MaxBytesError{Limit: handlers.MaxBody}
	}
	return nil
}

// taskShape is the published shape of a task, with its totals.
type taskShape struct {
	ID           string             `json:"id"`
	DelegationID string             `json:"delegation_id"`
	State        orchestrator.State `json:"state"` // the root's
	Agent        string             `json:"agent"`
	Text         string             `json:"text"`
	Repository   string             `json:"repository"`
	Ref          string             `json:"ref"`
	Key          string             `json:"key"`
	Complexity   string             `json:"complexity"`
	Requester    string             `json:"requester"`
	Via          string             `json:"via"`
	Source       *agent.Source      `json:"source"` // null: nobody said
	Attachments  []wire.Attachment  `json:"attachments"`
	RevertOf     wire.Maybe         `json:"revert_of"`
	Thread       string             `json:"thread"` // the task that began its thread: itself, where it goes on with none
	ApprovalID   wire.Maybe         `json:"approval_id"`
	Result       *wire.Result       `json:"result"`
	Error        *agent.Failure     `json:"error"`
	Usage        agent.Usage        `json:"usage"`
	Totals       totals             `json:"totals"`
	Budget       *wire.Budget       `json:"budget"` // of the whole task; null for tasks from before there were any
	// Discarded says what was thrown away of agents that only analyse, "" for nothing.
	Discarded string     `json:"discarded,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	EndedAt   *time.Time `json:"ended_at"`
}

// totals counts what is in a task's tree.
type totals struct {
	Delegations int                        `json:"delegations"`
	States      map[orchestrator.State]int `json:"states"`
	Depth       int                        `json:"depth"` // of the deepest
	Handoffs    int                        `json:"handoffs"`
	Events      int64                      `json:"events"`
	Usage       agent.Usage                `json:"usage"`
}

// Task answers GET /tasks/{id}.
func (a *API) Task(c echo.Context) error {
	ctx := c.Request().Context()
	t, err := a.Ids.Task(ctx, caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	tree, err := a.Reader.Tree(ctx, t.ID)
	if err != nil {
		return err
	}
	out := taskShape{
		ID: t.ID, DelegationID: t.RootID, Agent: t.Agent, Text: mask.Text(t.Text), Repository: t.Repository, Ref: t.Ref, Key: t.Key,
		Complexity: t.Complexity, Requester: t.Requester, Via: t.Via.String(), Source: t.Source, Attachments: []wire.Attachment{}, RevertOf: wire.Maybe(t.RevertOf), Thread: t.ThreadID(),
		Totals:    totals{Delegations: len(tree), States: map[orchestrator.State]int{}, Handoffs: t.Handoffs, Events: t.LastN},
		CreatedAt: t.CreatedAt.UTC(), EndedAt: utc(t.EndedAt),
	}
	for _, at := range t.Attachments {
		out.Attachments = append(out.Attachments, wire.Attachment{Name: at.Name, MediaType: at.MediaType, Size: at.Size, SHA256: at.SHA256, URL: t.AttachmentURL(at.Name)})
	}
	for _, d := range tree {
		out.Totals.States[d.State]++
		out.Totals.Depth = max(out.Totals.Depth, d.Depth)
		if !strings.Contains(out.Discarded, d.Work.Discarded) { // several agents of one name say the same
			out.Discarded = strings.TrimSpace(out.Discarded + " " + d.Work.Discarded)
		}
		if d.ID == t.RootID {
			root := shapeOf(d)
			out.State, out.Usage, out.Totals.Usage = d.State, d.Usage, d.Usage
			out.Budget = root.Budget
			out.Result, out.Error, out.ApprovalID = root.Result, root.Error, root.ApprovalID
		}
	}
	return c.JSON(http.StatusOK, out)
}

// Tree answers GET /tasks/{id}/tree with every delegation, oldest first.
func (a *API) Tree(c echo.Context) error {
	ctx := c.Request().Context()
	t, err := a.Ids.Task(ctx, caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	tree, err := a.Reader.Tree(ctx, t.ID)
	if err != nil {
		return err
	}
	shapes, err := a.told(c, tree)
	return send(c, http.StatusOK, wire.ListOf(shapes, ""), err)
}

// Attachment answers GET /delegations/{id}/attachments/{name} with a file that came with the
// delegation's task.
func (a *API) Attachment(c echo.Context) error {
	ctx := c.Request().Context()
	d, err := a.Ids.Delegation(ctx, caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	t, err := a.Reader.Task(ctx, d.TaskID)
	if err != nil {
		return err
	}
	found, err := t.NamedAttachment(handlers.PathName(c, "*"))
	if err != nil {
		return err
	}
	content, err := a.Engine.Attachment(ctx, t, found)
	if err != nil {
		return err
	}
	handlers.AsDownload(c, found.Name, 1)
	return c.Blob(http.StatusOK, found.MediaType, content)
}
