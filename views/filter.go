package views

import (
	"net/url"

	"gatehouse/orchestrator/record/history"
)

// FilterBar is the line of filters of a list. It can be typed or picked; both write the
// same line into the address.
type FilterBar struct {
	Path    string // of the page
	List    history.List
	Line    string // as it stands in the address, also where it was not understood
	Problem *FilterProblem
	Chips   []FilterChip
	Picks   []FilterPick
	Keep    []FilterParam // of the address, beside the line
	Clear   string        // address without filters
	Hint    string        // shown in the empty line
}

// FilterProblem is what of the line was not understood.
type FilterProblem struct {
	Part string // of the line; foreign
	Text string // foreign
}

// FilterChip is one filter of the line with the address of the list without it.
type FilterChip struct {
	Text string
	Href string
}

// FilterPick is one field of the picker.
type FilterPick struct {
	Key     string
	Label   string
	Value   string
	Hint    string
	Options []string // what it may be; none: any text
	Suggest []string // what is there, for a field of any text
	Other   bool     // the line says of it what the picker cannot show; it stays
}

// FilterParam is a parameter of the address that the forms carry on.
type FilterParam struct {
	Name, Value string
}

// FilterOther is the value of a picked field that leaves the line as it is.
const FilterOther = "="

// filterName is a value as the picker shows it.
func filterName(key, value string) string {
	switch {
	case key == string(history.State) && value == history.Live:
		return "still going"
	case key == string(history.State) && value == history.Wrong:
		return "went wrong"
	case key == string(history.State):
		return StateWord(value)
	case key == string(history.Time):
		return periodNames[value]
	}
	return value
}

// periodNames are the ready periods of the picker.
var periodNames = map[string]string{"today": "today", "7d": "last 7 days", "30d": "last 30 days", "90d": "last 90 days", "365d": "last 365 days"}

// Periods are the values of the ready periods, in their order.
var Periods = []string{"today", "7d", "30d", "90d", "365d"}

// FilterHref is the address of a list with a line of filters.
func FilterHref(path string, list history.List, line string) string {
	q := url.Values{"filter": {line}}
	if list != "" {
		q.Set("list", string(list))
	}
	return path + "?" + q.Encode()
}
