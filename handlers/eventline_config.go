package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/event"
)

// changesShown is how many changed settings a line names.
const changesShown = 5

// configLine is what a change of the configuration was, and how it came to be.
func configLine(e event.Event) string {
	var d struct {
		How, Node, Was, Is string
		Count              int
		Changes            []event.ConfiguredChange
		AsOf               *time.Time `json:"as_of"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	parts := make([]string, 0, changesShown)
	for _, c := range d.Changes[:min(len(d.Changes), changesShown)] {
		switch {
		case c.Was == "":
			parts = append(parts, c.Key+" is "+c.Is)
		case c.Is == "":
			parts = append(parts, c.Key+" is gone, was "+c.Was)
		default:
			parts = append(parts, c.Key+" is "+c.Is+", was "+c.Was)
		}
	}
	if more := d.Count - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	how := map[string]string{"start": "at the start of " + d.Node, "SIGHUP": "by SIGHUP to " + d.Node}[d.How]
	if how == "" {
		how = "by a reload of " + d.Node
	}
	what := "another configuration is in force "
	if d.Was == "" {
		what = "the configuration is recorded for the first time, "
	}
	if d.AsOf != nil {
		how += ", with the rules of before"
	}
	return what + how + prefixed(": ", strings.Join(parts, "; "))
}
