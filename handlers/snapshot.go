package handlers

import (
	"context"

	"github.com/labstack/echo/v4"
)

// Snapshots lets a page be read as of one moment; the store does. Every read with the
// context sees the database as it was at the first of them, until done is called.
type Snapshots interface {
	Snapshot(ctx context.Context) (_ context.Context, done func(), err error)
}

// OneMoment makes all that a page reads come from one snapshot: read one after another,
// the parts of a task contradict each other while it goes on. The snapshot ends when the
// answer begins, so that a slow reader holds no connection to the database.
func (p *Site) OneMoment(page echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, done, err := p.Snapshots.Snapshot(c.Request().Context())
		if err != nil {
			return err
		}
		defer done()
		c.Response().Before(done)
		c.SetRequest(c.Request().WithContext(ctx))
		return page(c)
	}
}
