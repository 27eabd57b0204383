package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// span is the life span and whether one was named at all.
func span(l wire.Life) (d time.Duration, named bool, err error) {
	switch {
	case l.TTLSeconds != nil && l.TTL != nil:
		return 0, false, bad("There are ttl_seconds and ttl. Send one of them.")
	case l.TTLSeconds != nil:
		d, err = sharedctx.Seconds(*l.TTLSeconds)
	case l.TTL != nil:
		d, err = sharedctx.Named(*l.TTL)
	default:
		return 0, false, nil
	}
	if err != nil {
		return 0, false, bad("%w", err)
	}
	return d, true, nil
}

// entries is the shared context as the caller uses it. A run is held to what its agent
// is given, and its uses are recorded.
func (a *API) entries(c echo.Context) (sharedctx.Store, error) {
	who := caller(c)
	if who.Run != nil {
		return a.Engine.ContextOf(*who.Run)
	}
	return a.Context(who.Name(), who.User.ID), nil
}

// noEntry is the answer for what is not there, or has expired (K33).
func noEntry(err error, namespace, key string) error {
	if !isNotFound(err) {
		return err
	}
	return orchestrator.Errorf(orchestrator.CodeNotFound, "There is no entry %q in the namespace %q, or it has expired.", key, namespace)
}

// noBoard is the answer for the board of a task that somebody else asked for.
func noBoard(err error, namespace string) error {
	if !isNotFound(err) {
		return err
	}
	return orchestrator.Errorf(orchestrator.CodeNotFound, "There is no namespace %q for you. A task's board is read by who asked for the task.", namespace)
}

// structured is an entry with its value decoded (K42).
type structured struct {
	sharedctx.Entry
	Data json.RawMessage `json:"data"`
}

// Entry answers GET /context/{ns}/{key}; with ?structured=true the value is JSON and
// comes decoded in data.
func (a *API) Entry(c echo.Context) error {
	ns, key, q := c.Param("ns"), c.Param("key"), asked(c, "structured")
	decode := q.flag("structured", "structured is %.20q. Use true or false.")
	if q.err != nil {
		return q.err
	}
	store, err := a.entries(c)
	if err != nil {
		return err
	}
	e, err := store.Get(c.Request().Context(), ns, key)
	switch {
	case err != nil:
		return noEntry(err, ns, key)
	case !decode:
		return c.JSON(http.StatusOK, e)
	}
	answer := structured{Entry: e}
	if err := e.Decode(&answer.Data); err != nil {
		return orchestrator.Errorf(orchestrator.CodeConflict, "%w. Read it without structured", err)
	}
	return c.JSON(http.StatusOK, answer)
}

// Entries answers GET /context/{ns}, newest first.
func (a *API) Entries(c echo.Context) error {
	q := asked(c, "prefix", "limit")
	limit := q.limit()
	if q.err != nil {
		return q.err
	}
	store, err := a.entries(c)
	if err != nil {
		return err
	}
	found, err := store.Prefix(c.Request().Context(), c.Param("ns"), q.Get("prefix"), limit)
	return send(c, http.StatusOK, wire.ListOf(found, ""), noBoard(err, c.Param("ns")))
}

// Topics answers GET /context: the namespaces that have entries, by name.
func (a *API) Topics(c echo.Context) error {
	q := asked(c, "prefix", "after", "limit")
	limit := q.limit()
	if q.err != nil {
		return q.err
	}
	store, err := a.entries(c)
	if err != nil {
		return err
	}
	found, err := store.Topics(c.Request().Context(), q.Get("prefix"), q.Get("after"), limit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, fullPage(found, limit, func(t sharedctx.Topic) string { return t.Namespace }))
}

// fullPage is a page of a list; as many as were asked for may have more behind them.
func fullPage[T any](found []T, limit int, cursor func(T) string) wire.List[T] {
	next := ""
	if len(found) > 0 && len(found) == limit {
		next = cursor(found[limit-1])
	}
	return wire.ListOf(found, next)
}

// PutEntry answers PUT /context/{ns}/{key}. A run writes as its agent.
func (a *API) PutEntry(c echo.Context) error {
	var in wire.NewEntry
	if err := read(c, &in); err != nil {
		return err
	}
	if in.Value == nil {
		return bad("There is no value. Send {\"value\": \"…\"}; write JSON as a string.")
	}
	life, named, err := span(wire.Life{TTLSeconds: in.TTLSeconds, TTL: in.TTL})
	if err != nil {
		return err
	}
	ns, key := c.Param("ns"), c.Param("key")
	e, err := handlers.NewEntry(a.Now(), a.Engine.Config(), ns, key, *in.Value, caller(c).Name(), handlers.Life{Span: life, Named: named, Extend: in.Extend})
	if err != nil {
		return err
	}
	store, err := a.entries(c)
	if err != nil {
		return err
	}
	if in.Extend {
		e, err = store.Extend(c.Request().Context(), e)
	} else {
		e, err = store.Set(c.Request().Context(), e)
	}
	return send(c, http.StatusOK, e, noBoard(err, ns))
}

// DeleteEntry answers DELETE /context/{ns}/{key}: 204, also when it was gone.
func (a *API) DeleteEntry(c echo.Context) error {
	store, err := a.entries(c)
	if err != nil {
		return err
	}
	err = store.Delete(c.Request().Context(), c.Param("ns"), c.Param("key"))
	if err != nil && !isNotFound(err) {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// TouchEntry answers POST /context/{ns}/{key}/touch (K40); without a life span it
// prolongs by 90 days (K39).
func (a *API) TouchEntry(c echo.Context) error {
	var in wire.Life
	if err := readOptional(c, &in); err != nil {
		return err
	}
	life, named, err := span(in)
	if err != nil {
		return err
	}
	if named && life == 0 {
		return bad("A touch cannot make an entry stay for ever. Write it again with ttl never.")
	}
	store, err := a.entries(c)
	if err != nil {
		return err
	}
	ns, key := c.Param("ns"), c.Param("key")
	e, err := store.Touch(c.Request().Context(), ns, key, life)
	return send(c, http.StatusOK, e, noEntry(err, ns, key))
}

// Uses answers GET /context/{ns}/{key}/uses: who read and who wrote it, newest first,
// also when it is gone.
func (a *API) Uses(c echo.Context) error {
	q := asked(c, "after", "limit")
	limit, before := q.limit(), q.number()
	if q.err != nil {
		return q.err
	}
	store, err := a.entries(c)
	if err != nil {
		return err
	}
	found, err := store.Uses(c.Request().Context(), c.Param("ns"), c.Param("key"), before, limit)
	if err != nil {
		return noBoard(err, c.Param("ns"))
	}
	return c.JSON(http.StatusOK, fullPage(found, limit, func(u sharedctx.Use) string {
		return strconv.FormatInt(u.N,
			10)
	}))
}

// CleanUp answers POST /context/cleanup: it removes what has expired (K34). The server
// does so each minute by itself.
func (a *API) CleanUp(c echo.Context) error {
	store, err := a.entries(c)
	if err != nil {
		return err
	}
	n, err := store.Cleanup(c.Request().Context(), a.Now())
	return send(c, http.StatusOK, map[string]int{"removed": n}, err)
}
