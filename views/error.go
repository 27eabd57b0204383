package views

// ErrorPage is every page that says no.
type ErrorPage struct {
	Chrome
	Status  int
	Heading string // what happened
	Text    string // what it means and what to do
	Nearest []Crumb
	ErrorID string // to find it in the log; empty when it is not our failure
}
