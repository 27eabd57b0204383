package team

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/textcut"
	"gatehouse/views"
	view "gatehouse/views/team"

	"github.com/labstack/echo/v4"
)

// How much of the shared context a page shows.
const (
	contextRows  = 50
	contextCut   = 2000 // bytes of a value in a list
	contextShown = 3    // readers beside a value in a list
	contextUses  = 200  // lines of a value's history
)

// ContextPage answers GET /context: the namespaces, with ?ns= its values, with ?key= one
// value and its history. Looking is no use: it prolongs nothing.
func (p *Pages) ContextPage(c echo.Context) error {
	return p.contextPage(c, http.StatusOK, c.QueryParam("ns"), c.QueryParam("key"), nil)
}

// contextPage shows the page, with the form as it was sent where that was refused.
func (p *Pages) contextPage(c echo.Context, status int, ns, key string, refused *view.ContextForm) error {
	f, err := p.Begin(c, views.SectionContext, "Context")
	if err != nil {
		return err
	}
	store := p.Context(f.Who.Name(), f.Who.User.ID)
	page := view.ContextPage{Chrome: f.Chrome, Namespace: ns, Key: key, Prefix: strings.TrimSpace(c.QueryParam("prefix")), MayWrite: f.Who.Has(people.ContextWrite)}
	switch {
	case ns == "":
		page.Key = ""
		page.Later = c.QueryParam("after") != ""
		err = contextTopics(f.Ctx, store, c.QueryParam("after"), &page)
	case key == "":
		err = contextEntries(f.Ctx, store, &page)
	default:
		err = contextValue(f.Ctx, store, c.QueryParam("before"), &page)
	}
	if err != nil {
		return err
	}
	page.Form = view.ContextForm{Namespace: ns, Key: key}
	if page.Value != nil {
		page.Form.Value = page.Value.Value
	}
	if refused != nil {
		page.Form = *refused
	}
	return handlers.Render(c, status, view.Context(page))
}

func contextTopics(ctx context.Context, store sharedctx.Store, after string, page *view.ContextPage) error {
	topics, err := store.Topics(ctx, page.Prefix, after, contextRows)
	page.Topics = topics
	if len(topics) == contextRows {
		page.NextHref = handlers.WithParam(page.Path, "after", topics[contextRows-1].Namespace)
	}
	return err
}

func contextEntries(ctx context.Context, store sharedctx.Store, page *view.ContextPage) error {
	found, err := store.Prefix(ctx, page.Namespace, page.Prefix, contextRows)
	if err != nil {
		return err
	}
	for _, e := range found {
		row := contextRow(e)
		if head, all := textcut.Bytes(e.Value, contextCut); !all {
			row.Bytes, row.Value = len(e.Value), head
		}
		uses, err := store.Uses(ctx, e.Namespace, e.Key, 0, contextRows)
		if err != nil {
			return err
		}
		row.Readers, row.WriterHref = readers(uses, contextShown), writer(uses)
		page.Entries = append(page.Entries, row)
	}
	if len(found) == contextRows {
		page.Cut = contextRows
	}
	return nil
}

// contextValue shows a value and its history, with a cursor the part that is older.
func contextValue(ctx context.Context, store sharedctx.Store, cursor string, page *view.ContextPage) error {
	before, err := strconv.ParseInt(cursor, 10, 64)
	if cursor != "" && (err != nil || before < 1) {
		return handlers.Refuse(orchestrator.CodeBadRequest, "This part of the history does not exist. Begin at its newest line.")
	}
	e, err := store.Get(ctx, page.Namespace, page.Key)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return err
	}
	uses, failed := store.Uses(ctx, page.Namespace, page.Key, 0, contextUses)
	if failed != nil {
		return failed
	}
	if err == nil {
		row := contextRow(e)
		row.Readers, row.WriterHref = readers(uses, len(uses)), writer(uses)
		page.Value = &row
	}
	if page.Later = before > 0; page.Later {
		if uses, failed = store.Uses(ctx, page.Namespace, page.Key, before, contextUses); failed != nil {
			return failed
		}
	}
	page.Uses = uses
	if len(uses) == contextUses {
		page.NextHref = handlers.WithParam(views.ContextHref(page.Namespace, page.Key), "before", strconv.FormatInt(uses[contextUses-1].N, 10))
	}
	return nil
}

// writer is the page of the delegation that wrote last; "" for a person.
func writer(uses []sharedctx.Use) string {
	i := slices.IndexFunc(uses, func(u sharedctx.Use) bool { return u.Kind == sharedctx.Write })
	if i < 0 || uses[i].DelegationID == "" {
		return ""
	}
	return views.DelegationHref(uses[i].DelegationID)
}

func contextRow(e sharedctx.Entry) view.ContextRow {
	return view.ContextRow{Key: e.Key, Value: e.Value, Author: e.Agent, UpdatedAt: e.UpdatedAt, ExpiresAt: e.ExpiresAt}
}

// readers are who read last, each once, at most n.
func readers(uses []sharedctx.Use, n int) (names []string) {
	for _, u := range uses {
		if u.Kind == sharedctx.Read && len(names) < n && !slices.Contains(names, u.Agent) {
			names = append(names, u.Agent)
		}
	}
	return names
}

// WriteContext answers POST /context: it writes or deletes one value as this person.
func (p *Pages) WriteContext(c echo.Context) error {
	who, _ := handlers.Who(c)
	ctx, store := c.Request().Context(), p.Context(who.Name(), who.User.ID)
	form := view.ContextForm{Namespace: c.FormValue("ns"), Key: c.FormValue("key"), Value: c.FormValue("value"), TTL: c.FormValue("ttl")}
	if c.FormValue("do") == "delete" {
		if err := store.Delete(ctx, form.Namespace, form.Key); err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
		return c.Redirect(http.StatusSeeOther, handlers.WithParam(views.ContextHref(form.Namespace, ""), "done", "value_deleted"))
	}
	life := handlers.Life{}
	var err error
	if form.TTL != "" {
		life.Named = true
		life.Span, err = sharedctx.Named(form.TTL)
	}
	e, refused := handlers.NewEntry(p.Now(), p.Engine.Config(), form.Namespace, form.Key, strings.ReplaceAll(form.Value, "\r\n", "\n"), who.Name(), life)
	if err = errors.Join(err, refused); err != nil {
		form.Error = handlers.SentenceOf(err)
		return p.contextPage(c, http.StatusBadRequest, form.Namespace, "", &form)
	}
	if _, err := store.Set(ctx, e); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, handlers.WithParam(views.ContextHref(form.Namespace, form.Key), "done", "value_written"))
}
