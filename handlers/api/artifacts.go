package api

import (
	"net/http"

	"gatehouse/handlers"

	"github.com/labstack/echo/v4"
)

// Artifact answers GET /delegations/{id}/artifacts/{name} to whoever may read the
// delegation.
func (a *API) Artifact(c echo.Context) error {
	ctx := c.Request().Context()
	d, err := a.Ids.Delegation(ctx, caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	found, err := d.NamedArtifact(handlers.PathName(c, "*"))
	if err != nil {
		return err
	}
	content, err := a.Engine.Artifact(ctx, d, found)
	if err != nil {
		return err
	}
	handlers.AsDownload(c, found.Name, 1)
	return c.Blob(http.StatusOK, found.TypeOf(content), content)
}
