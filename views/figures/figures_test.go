package figures

import (
	"testing"

	"gatehouse/orchestrator/record/insight"
)

// What nobody measured or reported is no zero, in the tables and in the file.
func TestMissingFiguresAreNoZeros(t *testing.T) {
	var none insight.Figures
	if cost(none) != "–" || Seconds(none.Accepted.P50) != "–" || waited(none.ForPeople) != "–" {
		t.Error("nothing reads as a figure")
	}
	none.Unpriced = 3
	if cost(none) != "not reported" {
		t.Errorf("reports without a price read %q", cost(none))
	}
	row := CSVRow(insight.Row{Name: "=cmd|' /C calc'!A0"})
	if len(row) != len(CSVHead) || row[0][0] != '\'' || row[7] != "" || row[12] != "" {
		t.Errorf("file row %q", row)
	}
}
