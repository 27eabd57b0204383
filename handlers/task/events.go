package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/textcut"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// eventsShown is one page of the events tab.
const eventsShown = 100

// jsonShown is how much of an event's JSON a page has; the rest is a link away.
const jsonShown = 16 << 10

// eventRows fills the events tab: the newest first, ?before= goes back, ?at= shows the page
// that has that event, ?type= and ?of= leave only some.
func (p *Pages) eventRows(c echo.Context, f *handlers.Frame, page *view.DelegationPage, t orchestrator.Task, tr *trace) error {
	filter := orchestrator.EventFilter{Newest: true, Limit: eventsShown + 1}
	var err error
	if filter.Before, err = eventPlace(c, "before"); err != nil {
		return err
	}
	around, err := eventPlace(c, "at")
	if err != nil {
		return err
	}
	page.EventAt, page.EventType = around, strings.TrimSpace(c.QueryParam("type"))
	if page.EventType != "" {
		filter.Types = []event.Type{event.Type(page.EventType)}
	}
	if page.EventOf = c.QueryParam("of") == "one"; page.EventOf {
		filter.Delegations = []string{page.ID}
	}
	if around > 0 { // half a page above it
		filter.Before = around + eventsShown/2
		page.NewerEvents = filter.Before <= t.LastN
	} else {
		page.NewerEvents = filter.Before > 0 && filter.Before <= t.LastN
	}
	found, err := p.Traces.EventsOf(f.Ctx, t.ID, filter)
	if err != nil {
		return err
	}
	more := len(found) > eventsShown
	for _, e := range found[:min(len(found), eventsShown)] {
		row, err := eventRow(e, tr)
		if err != nil {
			return err
		}
		page.Events = append(page.Events, row)
	}
	if more {
		page.OlderURL = handlers.WithParam(withoutParam(f.Chrome.Path, "at"), "before", strconv.FormatInt(page.Events[eventsShown-1].N, 10))
	}
	page.EventTypes = eventTypes()
	if page.EventType != "" && !slices.Contains(page.EventTypes, page.EventType) {
		page.EventTypes = append(page.EventTypes, page.EventType)
	}
	return nil
}

// eventPlace reads the number of an event from the address; 0 where there is none.
func eventPlace(c echo.Context, name string) (int64, error) {
	s := c.QueryParam(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > 1<<53 {
		return 0, handlers.Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the newest event.")
	}
	return n, nil
}

func eventRow(e event.Event, tr *trace) (view.EventRow, error) {
	raw, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return view.EventRow{}, fmt.Errorf("show event %s: %w", e.ID, err)
	}
	agent := ""
	if i, ok := tr.at[e.DelegationID]; ok {
		agent = tr.tree[i].To
	}
	row := view.EventRow{N: e.N, ID: e.ID, Type: string(e.Type), Actor: e.Actor, Who: handlers.Doer(e, agent), At: e.At, Text: handlers.EventLine(e),
		DelegationID: e.DelegationID, RequestID: e.ApprovalID(), JSON: string(raw)}
	row.JSON, _ = textcut.Bytes(row.JSON, jsonShown)
	row.Rest = len(raw) - len(row.JSON)
	return row, nil
}

// eventTypes are those that a task's log may have, for the filter.
func eventTypes() []string {
	return each.Of(event.Types(), each.String)
}
