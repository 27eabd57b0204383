package api

import (
	"net/http"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/sharedctx"

	"github.com/labstack/echo/v4"
)

// entryInput is the body of PUT /context/{ns}/{key}.
type entryInput struct {
	Value      *string `json:"value"`
	TTLSeconds *int64  `json:"ttl_seconds"`
}

// touchInput is the body of POST /context/{ns}/{key}/touch; absent it prolongs by
// the life span of K39.
type touchInput struct {
	TTLSeconds *int64 `json:"ttl_seconds"`
}

// ttl turns the optional ttl_seconds into a life span; absent it is 0.
func ttl(seconds *int64) (time.Duration, error) {
	if seconds == nil {
		return 0, nil
	}
	d, err := sharedctx.Seconds(*seconds)
	if err != nil {
		return 0, bad("%w", err)
	}
	return d, nil
}

// entries is the shared context with the caller's name on what is written.
func (a *API) entries(c echo.Context) sharedctx.Store { return a.Context(caller(c).Name()) }

// mayRead holds a run to the namespaces that its agent is given.
func (a *API) mayRead(c echo.Context, namespace string) error {
	who := caller(c)
	if who.Run == nil {
		return nil
	}
	spec, ok := a.Engine.Config().Agents.Get(who.Run.Agent)
	if ok && spec.Reads != nil && !slices.Contains(spec.Reads, namespace) {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "%s is not given the namespace %q. Add it to the agent's reads.", spec.Name, namespace)
	}
	return nil
}

// noEntry is the answer for what is not there, or has expired (K33).
func noEntry(err error, namespace, key string) error {
	if !isNotFound(err) {
		return err
	}
	return orchestrator.Errorf(orchestrator.CodeNotFound, "There is no entry %q in the namespace %q, or it has expired.", key, namespace)
}

// Entry answers GET /context/{ns}/{key}.
func (a *API) Entry(c echo.Context) error {
	ns, key := c.Param("ns"), c.Param("key")
	if err := a.mayRead(c, ns); err != nil {
		return err
	}
	e, err := a.entries(c).Get(c.Request().Context(), ns, key)
	if err != nil {
		return noEntry(err, ns, key)
	}
	return c.JSON(http.StatusOK, e)
}

// Entries answers GET /context/{ns}, newest first.
func (a *API) Entries(c echo.Context) error {
	ns, q := c.Param("ns"), c.QueryParams()
	if err := only(q, "prefix", "limit"); err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	if err := a.mayRead(c, ns); err != nil {
		return err
	}
	var found []sharedctx.Entry
	if prefix := q.Get("prefix"); prefix != "" {
		found, err = a.entries(c).Prefix(c.Request().Context(), ns, prefix, limit)
	} else {
		found, err = a.entries(c).Query(c.Request().Context(), ns, limit)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listOf(found, ""))
}

// PutEntry answers PUT /context/{ns}/{key}. A run writes as its agent.
func (a *API) PutEntry(c echo.Context) error {
	var in entryInput
	if err := read(c, &in); err != nil {
		return err
	}
	if in.Value == nil {
		return bad("There is no value. Send {\"value\": \"…\"}; write JSON as a string.")
	}
	life, err := ttl(in.TTLSeconds)
	if err != nil {
		return err
	}
	ctx, who, ns, key := c.Request().Context(), caller(c), c.Param("ns"), c.Param("key")
	e, err := sharedctx.New(a.Now(), ns, key, *in.Value, who.Name(), life)
	if err != nil {
		return bad("%w", err)
	}
	if who.Run != nil {
		err = a.Engine.PutContext(ctx, *who.Run, agent.ContextWrite{Namespace: ns, Key: key, Value: *in.Value, TTLSeconds: int64(life / time.Second)})
		if err == nil {
			e, err = a.entries(c).Get(ctx, ns, key)
		}
	} else {
		e, err = a.entries(c).Set(ctx, e)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, e)
}

// DeleteEntry answers DELETE /context/{ns}/{key}: 204, also when it was gone.
func (a *API) DeleteEntry(c echo.Context) error {
	err := a.entries(c).Delete(c.Request().Context(), c.Param("ns"), c.Param("key"))
	if err != nil && !isNotFound(err) {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// TouchEntry answers POST /context/{ns}/{key}/touch (K40).
func (a *API) TouchEntry(c echo.Context) error {
	var in touchInput
	if err := readOptional(c, &in); err != nil {
		return err
	}
	life, err := ttl(in.TTLSeconds)
	if err != nil {
		return err
	}
	ns, key := c.Param("ns"), c.Param("key")
	e, err := a.entries(c).Touch(c.Request().Context(), ns, key, life)
	if err != nil {
		return noEntry(err, ns, key)
	}
	return c.JSON(http.StatusOK, e)
}
