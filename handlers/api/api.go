package api

import (
	"crypto/ed25519"
	"time"

	"gatehouse/handlers"

	"github.com/labstack/echo/v4"
)

// API has the JSON handlers.
type API struct {
	*handlers.Site
	Exports Exports
	// Seal signs audit bundles; without a key bundles are refused.
	Seal ed25519.PrivateKey
	// Patience is how long a reader may take for one part of a long export; 0 means
	// partTime. Then the connection is cut: nobody has a part of the server for ever.
	Patience time.Duration
}

// send answers with a document, or says why there is none.
func send(c echo.Context, status int, document any, err error) error {
	if err != nil {
		return err
	}
	return c.JSON(status, document)
}

// caller is who asks; web lets nobody through who is unknown.
func caller(c echo.Context) handlers.Caller {
	who, _ := handlers.Who(c)
	return who
}
