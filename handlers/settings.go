package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Settings answers GET /settings with the first of its pages.
func (p *Pages) Settings(c echo.Context) error {
	return c.Redirect(http.StatusSeeOther, "/settings/channels")
}
