package api

import (
	"net/http"

	"gatehouse/handlers"
	"gatehouse/orchestrator"

	"github.com/labstack/echo/v4"
)

// ReloadConfig answers POST /config/reload. A bad file changes nothing.
func (a *API) ReloadConfig(c echo.Context) error {
	var none struct{}
	if err := readOptional(c, &none); err != nil {
		return err
	}
	if a.Reload == nil {
		return orchestrator.Errorf(orchestrator.CodeUnavailable, "This server runs without a configuration file, so there is nothing to load.")
	}
	if err := a.Reload(c.Request().Context(), caller(c).Name()); err != nil {
		return &orchestrator.Error{Code: handlers.CodeConfig, Message: err.Error() + " Nothing was changed.", Err: err}
	}
	return c.JSON(http.StatusOK, map[string]bool{"reloaded": true})
}
