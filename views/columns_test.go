package views_test

import (
	"slices"
	"testing"

	"gatehouse/orchestrator/record/history"
	auditview "gatehouse/views/audit"
)

func TestColumnsAreChosen(t *testing.T) {
	keys := func(names ...string) (on []string) {
		for _, c := range (auditview.AuditPage{Columns: auditview.AuditColumns(history.Requests, names)}).Shown() {
			on = append(on, c.Key)
		}
		return on
	}
	usual := keys()
	for _, c := range []struct{ names, want []string }{
		{[]string{"cost", "time"}, []string{"time", "title", "cost"}}, // the row's link stays
		{[]string{"nothing", "<script>"}, usual},
		{[]string{"rule", "nothing"}, []string{"title", "rule"}},
	} {
		if got := keys(c.names...); !slices.Equal(got, c.want) {
			t.Errorf("%v shows %v, want %v", c.names, got, c.want)
		}
	}
	html := render(t, auditview.Audit(allColumns(history.Requests)))
	mustContain(t, html, "$0.06", "not reported", "CI file changed", "Delete one first.")
}
