package views

// LoginPage is `/login`, answered 200 to anyone.
type LoginPage struct {
	Chrome
	Name  string // kept after a refused try
	Next  string // where to go afterwards
	Error string
	First bool // no people exist yet: the page says which command makes one
}

// LinkPage is `/login/link?code=…`: the button that uses a one-time link.
type LinkPage struct {
	Chrome
	Code      string
	Next      string
	Error     string // the link was used or is too old
	AutoPress bool   // on loopback the page presses the button itself
}
