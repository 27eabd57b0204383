package approval

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Grant is a yes to calls of one kind for the rest of a task.
type Grant struct {
	ID        string // gnt_…
	TaskID    string
	Agent     string // whose calls; no other's are covered
	Scope     agent.Scope
	RequestID string    // with which it was given
	By        []Granter // everybody whose yes it was
	Uses      int
	CreatedAt time.Time
	UsedAt    *time.Time
	RevokedAt *time.Time
	RevokedBy string
}

// Granter is one of those who gave a grant.
type Granter struct {
	UserID string `json:"user_id"`
	User   string `json:"user"`
	ForID  string `json:"for_id,omitempty"` // whom they stood in for
}

func (g Grant) names() string {
	return strings.Join(each.Of(g.By, func(b Granter) string { return b.User }), ", ")
}

// holds reports whether the grant covers a call of d's.
func (g Grant) holds(d *orchestrator.Delegation, call agent.Action) bool {
	return g.RevokedAt == nil && g.Agent == d.To && g.TaskID == d.TaskID && g.Scope.Covers(call)
}

// satisfies reports whether those who gave the grant may approve r as they are now, and as many of
// them as its rule asks for are those that it asks. What one approver allowed for the rest of a
// task is no yes where a rule wants to hear two, or somebody else, nor where they have told the
// agent since what to do.
func (g Grant) satisfies(e Electorate, r Request) bool {
	heard := 0
	for _, by := range g.By {
		own, seat := e.known(by.UserID), e.known(cmp.Or(by.ForID, by.UserID))
		if !Approves(own) || e.barred(own, r) != nil || e.barred(seat, r) != nil {
			return false
		}
		if e.votes(seat, r) {
			heard++
		}
	}
	return heard >= max(r.Rule.Need, 1)
}

// Use takes a grant that covers the call, and that satisfies the rule which holds for it.
func (a asks) Use(ctx context.Context, tx orchestrator.Tx, d *orchestrator.Delegation, call agent.Action, again bool) (string, error) {
	t, ok := tx.(Tx)
	if !ok {
		return "", errForeignTx
	}
	grants, err := t.Grants(ctx)
	if err != nil || len(grants) == 0 {
		return "", err
	}
	ruling, _ := a.c.actionRuling(tx.Now(), tx.Task(), d, call, true) // it is asked about
	task := tx.Task()
	r := Request{Agent: d.To, RequesterID: task.RequesterID, Requester: task.Requester, Via: task.Via, Rule: ruling.Rule}
	r.Lineage = a.c.lineage(a.e, &r, d.Lineage())
	for _, g := range grants {
		if ruling.Deny || !g.holds(d, call) || !g.satisfies(a.e, r) {
			continue
		}
		if again {
			return g.names(), nil
		}
		g.Uses++
		g.UsedAt = new(t.Now())
		if err := t.SaveGrant(ctx, g); err != nil {
			return "", err
		}
		return g.names(), t.Append(ctx, event.Of(d.ID, d.To, event.GrantUsedData{GrantID: g.ID, Tool: call.Tool, Brief: mask.Text(call.Brief()), By: g.names(), Uses: g.Uses}))
	}
	return "", nil
}

// Stand asks again about a call whose yeses have become too few, before it is made: who gave
// them has lost the right since.
func (a asks) Stand(ctx context.Context, tx orchestrator.Tx, d *orchestrator.Delegation, requestID string) error {
	t, ok := tx.(Tx)
	if !ok {
		return errForeignTx
	}
	r, err := t.Request(ctx, requestID)
	if err != nil || r.State != Approved {
		return err
	}
	e := a.e.at(tx.Now(), a.c.Location)
	if len(e.yes(*r)) >= r.Rule.Need {
		return nil
	}
	tx.OnCommit(a.g.look)
	if err := reopen(ctx, t, a.c, r, e); err != nil {
		return err
	}
	return r.subject().recall(ctx, t, r, d)
}

// ForTask reports whether r is a call that was approved for the rest of its task: every yes
// to it said so.
func (r Request) ForTask() bool {
	yes := r.yes()
	_, sayable := r.Scope()
	return r.State == Approved && sayable && len(yes) > 0 && !slices.ContainsFunc(yes, func(d Decision) bool { return !d.ForTask })
}

// Revoked says who ended what a yes allowed for the rest of its task, and when; "" while it
// holds, and where there is none.
func (r Request) Revoked() (by string, at time.Time) {
	if r.Grant == nil || r.Grant.RevokedAt == nil {
		return "", time.Time{}
	}
	return r.Grant.RevokedBy, *r.Grant.RevokedAt
}

// grant stores a grant where every yes to the call was for the rest of the task.
func grant(ctx context.Context, tx Tx, r *Request) error {
	if !r.ForTask() {
		return nil
	}
	scope, _ := r.Scope()
	g := Grant{ID: orchestrator.NewID(orchestrator.GrantPrefix, tx.Now()), TaskID: r.TaskID, Agent: r.Agent, Scope: scope, RequestID: r.ID, CreatedAt: tx.Now(),
		By: each.Of(r.yes(), func(d Decision) Granter { return Granter{d.UserID, d.User, d.ForID} })}
	if err := tx.SaveGrant(ctx, g); err != nil {
		return err
	}
	return tx.Append(ctx, r.event(g.names(), event.GrantedData{About: r.about(), GrantID: g.ID, Scope: scope.String()}))
}

// revokeOf ends the grants that were given with a request whose yes is taken back.
func revokeOf(ctx context.Context, tx Tx, requestID string) error {
	grants, err := tx.Grants(ctx)
	if err != nil {
		return err
	}
	for _, g := range grants {
		if g.RequestID == requestID && g.RevokedAt == nil {
			if err := revoke(ctx, tx, g, g.names()); err != nil {
				return err
			}
		}
	}
	return nil
}

func revoke(ctx context.Context, tx Tx, g Grant, by string) error {
	g.RevokedAt, g.RevokedBy = new(tx.Now()), by
	if err := tx.SaveGrant(ctx, g); err != nil {
		return err
	}
	about := event.About{ApprovalID: g.RequestID, Kind: string(Action)}
	return tx.Append(ctx, event.Of("", by, event.GrantRevokedData{About: about, GrantID: g.ID, Scope: g.Scope.String(), Agent: g.Agent}))
}

// Grants are those of a task, oldest first, also those that were revoked.
func (g *Gateway) Grants(ctx context.Context, taskID string) ([]Grant, error) {
	return g.store.Grants(ctx, taskID)
}

// Revoke ends a grant: who gave it may, who asked for the task, and every approver. From the
// commit on no node lets a call through by it.
func (g *Gateway) Revoke(ctx context.Context, id string, p people.Principal) (Grant, error) {
	found, err := g.store.Grant(ctx, id)
	if err != nil {
		return found, err
	}
	err = g.inTask(ctx, found.TaskID, func(tx Tx) error {
		grants, err := tx.Grants(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(grants, func(o Grant) bool { return o.ID == id })
		if at < 0 {
			return orchestrator.ErrNotFound
		}
		if found = grants[at]; found.RevokedAt != nil {
			return nil
		}
		if p.Run != nil || !Approves(p.User) && p.User.ID != tx.Task().RequesterID {
			return orchestrator.Errorf(orchestrator.CodeForbidden, "Revoking this needs the role approver, or to have asked for the task.")
		}
		if err := revoke(ctx, tx, found, p.Name()); err != nil {
			return err
		}
		found.RevokedAt, found.RevokedBy = new(tx.Now()), p.Name()
		r, err := tx.Request(ctx, found.RequestID) // whose cards say that such calls may be made
		if err != nil {
			return err
		}
		return tx.SaveRequest(ctx, r)
	})
	return found, err
}
