package history

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a saved view: a name is read in a menu, and a person's views on one screen.
const (
	maxViewName = 60 // characters
	MaxViews    = 50 // of one person
)

// View is a list under a name, as its owner wants to see it again.
type View struct {
	ID      string    `json:"id"`
	UserID  string    `json:"-"`
	Owner   string    `json:"owner"` // the name of UserID
	Name    string    `json:"name"`
	List    List      `json:"list"`
	Line    string    `json:"filter"`
	Columns []string  `json:"columns"` // none: the usual ones
	Shared  bool      `json:"shared"`  // everybody sees it
	At      time.Time `json:"at"`
}

// Problem says in a sentence for people why v cannot be saved, "" when it can. Whether
// its line is understood is the parser's to say.
func (v View) Problem() string {
	switch n := utf8.RuneCountInString(v.Name); {
	case strings.TrimSpace(v.Name) == "":
		return "The view has no name. Give it one that says what it shows."
	case n > maxViewName:
		return fmt.Sprintf("The name is %d characters long; %d fit. Choose a shorter one.", n, maxViewName)
	case strings.ContainsFunc(v.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "The name has characters that cannot be seen. Type it anew."
	case len(v.Line) > MaxLine:
		return fmt.Sprintf("The filter is %d bytes long; %d can be saved. Take something out.", len(v.Line), MaxLine)
	}
	switch v.List {
	case Requests, Delegations, Events:
		return ""
	}
	return fmt.Sprintf("There is no list %.40q. Choose requests, delegations or events.", v.List)
}
