package views

// LongText is foreign text, cut where a page would grow too long.
type LongText struct {
	Text string
	Rest int    // bytes that are left out
	Href string // all of it
}
