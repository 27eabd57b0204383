package web_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator/people"
)

// configuration is one of a file that somebody has spoilt since.
func (h *house) configuration(context.Context) (handlers.Configuration, error) {
	return handlers.Configuration{File: "/etc/gatehouse.yaml", LoadedAt: time.Now(), Warnings: []string{"rule core: nobody can satisfy it <b>"}, Problem: "gatehouse.yaml:3:1: unknown key `aproval`.\ngatehouse.yaml:9:1: <script>\u202e",
		Settings: []handlers.Setting{{Key: "server.listen", Value: "127.0.0.1:9000", Flag: "--listen", Restart: true, Pending: "0.0.0.0:80"}, {Key: "server.timezone", Value: "UTC"},
			{Key: "database", Value: "postgres://gate:•••@db", Line: 2, Env: []string{"DB_PASSWORD"}}, {Key: "triggers[ci].secret", Value: "•••", Line: 40}}}, nil
}

func (h *house) reload(context.Context, string) error {
	return errors.New("gatehouse.yaml:3:1: unknown key `aproval`.")
}

func TestTheConfigurationSaysWhereValuesComeFrom(t *testing.T) {
	h := open(t)
	admin := h.signIn(h.user("finn", people.Admin))
	page := admin.get("/settings/config")
	h.says(page, http.StatusOK, "--listen", "after a restart:", "0.0.0.0:80", "default", "gatehouse.yaml:2", "${DB_PASSWORD}", "[ci].secret", "gatehouse.yaml:40", "would not be taken", "unknown key", "U+202E", "!<script>\u202e", "&lt;b&gt;", "at the start only")
	h.says(admin.post("/settings/config/reload", nil), http.StatusUnprocessableEntity, "The file was not taken, so nothing was changed")
	operator := h.signIn(h.user("dora", people.Operator))
	h.says(operator.get("/settings/config"), http.StatusOK, "!>Reload<")
	h.says(operator.post("/settings/config/reload", nil), http.StatusForbidden)
	h.says(h.signIn(h.user("bob", people.Approver)).get("/settings/you"), http.StatusOK, "!/settings/config")
}
