package task

import (
	"errors"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/textcut"
	view "gatehouse/views/task"
)

// usesShown is how many uses of the shared context a task's page reads; piecesShown how
// many entries it shows, and pieceBytes how much of each value.
const (
	usesShown   = 500
	piecesShown = 50
	pieceBytes  = 2000
)

// contextUsed fills the context tab: what the task read and wrote, who did it and when, and
// what is there now. Looking is no use: it prolongs nothing.
func (p *Pages) contextUsed(f *handlers.Frame, page *view.DelegationPage) error {
	if page.MayContext = f.Who.Has(people.ContextRead); !page.MayContext {
		return nil
	}
	uses, err := p.Traces.TaskUses(f.Ctx, page.TaskID, usesShown)
	if err != nil {
		return err
	}
	page.ContextCut = len(uses) == usesShown
	place := map[[2]string]int{}
	for _, u := range uses {
		id := [2]string{u.Namespace, u.Key}
		i, ok := place[id]
		if !ok {
			if len(page.Context) == piecesShown {
				page.ContextCut = true
				continue
			}
			i = len(page.Context)
			place[id] = i
			page.Context = append(page.Context, view.ContextPiece{Namespace: u.Namespace, Key: u.Key})
		}
		piece := &page.Context[i]
		piece.Read = piece.Read || u.Kind == sharedctx.Read
		piece.Written = piece.Written || u.Kind == sharedctx.Write
		piece.Uses = append(piece.Uses, u)
	}
	store := p.Context(f.Who.Name(), f.Who.User.ID)
	for i := range page.Context {
		piece := &page.Context[i]
		e, err := store.Get(f.Ctx, piece.Namespace, piece.Key)
		if errors.Is(err, orchestrator.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		piece.Value, piece.Author, piece.UpdatedAt, piece.ExpiresAt = e.Value, e.Agent, e.UpdatedAt, e.ExpiresAt
		if head, all := textcut.Bytes(e.Value, pieceBytes); !all {
			piece.Value, piece.Bytes = head, len(e.Value)
		}
	}
	return nil
}
