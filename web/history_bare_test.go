package web_test

import (
	"compress/gzip"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"
	auditview "gatehouse/views/audit"
	taskview "gatehouse/views/task"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// bare logs what echo, templ and the database cost for 50 rows and nothing else: nobody is
// signed in, and there is no navigation, filter, count or live connection. The rows are
// read and drawn as on our own pages, and compressed as there.
func (h *house) bare(b *browser, rounds int) {
	e := echo.New()
	e.Use(middleware.GzipWithConfig(middleware.GzipConfig{Level: gzip.BestSpeed}))
	e.GET("/audit", func(c echo.Context) error {
		found, err := h.store.History(c.Request().Context(), history.Query{List: history.Requests}, "", 50)
		if err != nil {
			return err
		}
		return draw(c, auditview.AuditList(auditview.AuditPage{List: history.Requests, Requests: found.Rows, Columns: auditview.AuditColumns(history.Requests, nil)}))
	})
	e.GET("/delegations", func(c echo.Context) error {
		found, err := h.store.List(c.Request().Context(), orchestrator.Filter{RootsOnly: true, Limit: 50})
		if err != nil {
			return err
		}
		var tasks []string
		for _, d := range found.Items {
			tasks = append(tasks, d.TaskID)
		}
		trees, err := h.store.Paths(c.Request().Context(), tasks)
		if err != nil {
			return err
		}
		page := taskview.DelegationsPage{Chrome: views.Chrome{Now: time.Now()}}
		for _, d := range found.Items {
			row := views.DelegationRow{ID: d.ID, Title: d.Text, State: string(d.State), Requester: d.Requester, Repository: d.Repository, Since: d.Since, CreatedAt: d.CreatedAt}
			for _, x := range trees[d.TaskID] {
				row.Chain = append(row.Chain, x.To)
			}
			page.Rows = append(page.Rows, row)
		}
		return draw(c, taskview.DelegationsList(page))
	})
	server := httptest.NewServer(e)
	defer server.Close()
	jar, err := cookiejar.New(nil)
	h.must(err)
	there := *h
	there.url = server.URL
	plain := &browser{&there, &http.Client{Jar: jar}}
	for _, pair := range []struct{ bare, path string }{{"/audit", "/audit?filter="}, {"/delegations", "/delegations"}, {"/delegations", "/"}} {
		var took [2][]time.Duration
		for i := range rounds + 3 {
			for k, ask := range []func() answer{func() answer { return plain.get(pair.bare) }, func() answer { return b.get(pair.path) }} {
				begin := time.Now()
				if a := ask(); a.StatusCode != http.StatusOK {
					h.Fatalf("%s: %d", pair.path, a.StatusCode)
				}
				if i >= 3 {
					took[k] = append(took[k], time.Since(begin))
				}
			}
		}
		h.Logf("%-14s p50 %v, p99 %v; bare echo, templ and database p50 %v, p99 %v: %.2f of the bare page's rate", pair.path, at(took[1], 50), at(took[1], 99), at(took[0], 50), at(took[0], 99),
			float64(at(took[0], 50))/float64(at(took[1], 50)))
	}
}

func draw(c echo.Context, rows templ.Component) error {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMETextHTMLCharsetUTF8)
	return rows.Render(c.Request().Context(), c.Response())
}

// timeVerify logs how long the whole log takes to verify.
func (h *house) timeVerify() {
	begin := time.Now()
	v, err := h.store.Verify(h.ctx, "zoe", nil)
	h.must(err)
	if !v.OK() {
		h.Errorf("the seeded log does not verify: %+v", v.Problems)
	}
	h.Logf("the whole log verified in %v: %d tasks, %d seals, up to position %d", time.Since(begin), v.Tasks, v.Seals, v.Pos)
}
