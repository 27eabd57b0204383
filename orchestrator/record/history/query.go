// Package history is how people ask the past: a line of filters as it is typed into a
// page, a command or an address, what it means, and what one row of the answer is.
//
// The store answers queries; pages and the API show rows. The room imports the
// standard library, chain, nearest and origin.
package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/nearest"
	"gatehouse/orchestrator/origin"
)

// Key is what one filter looks at.
type Key string

// The keys. Which of them a list takes is in KeysOf.
const (
	State      Key = "state"
	Agent      Key = "agent" // of a request: whose patch; of a delegation: who works
	Repository Key = "repository"
	Requester  Key = "requester"
	Via        Key = "via"      // web, cli, api, chat, webhook, schedule …
	Approver   Key = "approver" // a person, or rule:NAME, whose verdict is on the request
	Channel    Key = "channel"  // where such a verdict was given
	Rule       Key = "rule"     // that decided who decides
	Code       Key = "code"     // of an error, a refusal or a rejected patch
	Time       Key = "time"     // 2026-07-01..2026-09-30, either end may be left out; days are of the reader's zone
	Cost       Key = "cost"     // >0.5, <2, 1..3: US dollars of the whole task
	Task       Key = "task"
	Type       Key = "type"      // of an event
	FourEyes   Key = "four_eyes" // no: somebody with a part in it, or nobody else than the requester, approved
	Viewed     Key = "viewed"    // no: approved by somebody who had not had all files before them, in any place
	Fast       Key = "fast"      // yes: approved within 10 s of opening the page
	Warnings   Key = "warnings"  // overruled: approved although there were warnings
	Checks     Key = "checks"    // overruled: approved although a check had failed
	Is         Key = "is"        // auto (by rule), reverted, expired, refused …
)

// List names what is listed.
type List string

// The lists that can be asked.
const (
	Requests    List = "requests"
	Delegations List = "delegations"
	Events      List = "events"
)

// Term is one filter: key:value, key:a,b for alternatives, -key:value for its opposite.
type Term struct {
	Key    Key
	Not    bool
	Values []string
}

// Query is a line that was understood: all its terms have to hold, and its words have all
// to occur in the texts.
type Query struct {
	List     List
	Terms    []Term // but for time
	Words    []string
	From, To time.Time // in the reader's zone; zero: open; From is included, To is not
	Last     string    // 30d, where From was said so
}

// Decider is one verdict on a request, or a rule's.
type Decider struct {
	Name    string         `json:"name"`
	Channel origin.Channel `json:"channel"`
	Verdict string         `json:"verdict"`
	At      time.Time      `json:"at"`
}

// Row is one request as the auditor's list shows it.
type Row struct {
	ID         string        `json:"id"`
	TaskID     string        `json:"task_id"`
	At         time.Time     `json:"at"` // when it was asked
	Title      string        `json:"title"`
	State      string        `json:"state"`
	Requester  string        `json:"requester"`
	Via        origin.Origin `json:"via"`
	Agent      string        `json:"agent"`
	Chain      chain.Names   `json:"chain"` // kik → coder
	Repository string        `json:"repository"`
	Target     string        `json:"target"` // the branch
	Rule       string        `json:"rule"`
	Need       int           `json:"need"`
	Files      int           `json:"files"`
	Added      int           `json:"added"`
	Removed    int           `json:"removed"`
	Warnings   []string      `json:"warnings"` // codes
	// Flags are the ready questions that this request is an answer to, as filters: four_eyes:no,
	// viewed:no, fast:yes, warnings:overruled, checks:overruled, is:auto, is:reverted …
	Flags     []string   `json:"flags"`
	Deciders  []Decider  `json:"deciders"`
	Read      string     `json:"read,omitempty"` // how it was read, by them and by others: "read on the web by ada: 3 of 3 files"
	DecidedAt *time.Time `json:"decided_at"`
	Landed    string     `json:"landed"`
	// Pushed is the agent's branch on which that commit is, where a yes pushes it and the
	// target stays as it is; else "".
	Pushed string   `json:"pushed,omitempty"`
	USD    *float64 `json:"usd"` // of the task; nil: not reported
}

// Page is one page of rows, newest first; Next is the cursor, "" on the last page.
type Page struct {
	Rows []Row
	Next string
}

// Found is one event of the list of events.
type Found struct {
	ID           string          `json:"id"`
	TaskID       string          `json:"task_id"`
	N            int64           `json:"n"`
	Type         string          `json:"type"`
	DelegationID string          `json:"delegation_id"`
	Actor        string          `json:"actor"`
	At           time.Time       `json:"at"`
	Data         json.RawMessage `json:"data"`
	Hash         string          `json:"hash"`
}

// EventPage is one page of events, newest first; Next is the cursor, "" on the last page.
// Words are searched for among so many events a page, so that a page may have few rows,
// or none, and still a next one; To is how far back it looked.
type EventPage struct {
	Rows []Found
	Next string
	To   time.Time
}

// Count is how many rows there are; Least says that there are at least so many and that
// counting stopped there.
type Count struct {
	N     int64
	Least bool
}

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

// lists are the keys that each list takes, in the order in which pages offer them.
var lists = map[List][]Key{
	Requests:    {State, Agent, Repository, Requester, Approver, Channel, Rule, Via, Time, Cost, Code, Task, FourEyes, Viewed, Fast, Warnings, Checks, Is},
	Delegations: {State, Agent, Repository, Requester, Via, Time, Cost, Code, Task, Is},
	Events:      {Type, Approver, Requester, Code, Task, Time},
}

// KeysOf are the keys that a list takes.
func KeysOf(list List) []Key { return slices.Clone(lists[list]) }

// Live and Wrong are two states of the list of delegations that stand for several: those
// that have not ended, and the ends that nobody wanted.
const (
	Live  = "live"
	Wrong = "wrong"
)

// Pushed is a state of the list of requests that stands for some of those that landed:
// a yes has pushed the agent's branch, and the target stayed as it was.
const Pushed = "pushed"

var yesNo = []string{"yes", "no"}

// fixed are the values of the keys that take only some; other keys take any text.
var fixed = map[List]map[Key][]string{
	Requests: {
		State:    {"pending", "approved", "rejected", "changes_requested", "expired", "superseded", "stale", "landed", Pushed, "reverted", "failed", "cancelled", "answered"},
		FourEyes: yesNo, Viewed: yesNo, Fast: yesNo, Warnings: {"overruled"}, Checks: {"overruled"},
		Is: {"auto", "landed", "refused", "expired", "reverted", "revert", "edited", "handover", "action", "question"},
	},
	Delegations: {
		State: {"queued", "running", "waiting", "checking", "awaiting_approval", "landing", "completed", "failed", "rejected", "expired", "cancelled", Live, Wrong},
		Is:    {"refused", "root"},
	},
}

// ValuesOf are the values that a key of a list may have; nil means any text.
func ValuesOf(list List, key Key) []string { return slices.Clone(fixed[list][key]) }

// meant is what a word was probably meant to be, "" when nothing is near.
func meant(word string, of []string) string {
	for _, one := range of {
		if strings.HasPrefix(one, word) && len(word) > 2 {
			return one
		}
	}
	return nearest.Within(word, of, len(word)/2)
}

// maxMicros is more money than any task costs, so that sums of it cannot overflow.
const maxMicros = 1e15

// CostRange reads a value of cost: >0.5, <2, 1..3 or 0.25, in US dollars. Both ends are
// included, in millionths of a dollar.
func CostRange(value string) (least, most int64, ok bool) {
	least, most = 0, maxMicros
	switch from, to, isRange := strings.Cut(value, ".."); {
	case isRange && from+to != "":
		if from != "" {
			least, ok = dollars(from)
		} else {
			ok = true
		}
		if to != "" && ok {
			most, ok = dollars(to)
		}
	case strings.HasPrefix(value, ">="):
		least, ok = dollars(value[2:])
	case strings.HasPrefix(value, "<="):
		most, ok = dollars(value[2:])
	case strings.HasPrefix(value, ">"):
		least, ok = dollars(value[1:])
		least++
	case strings.HasPrefix(value, "<"):
		most, ok = dollars(value[1:])
		most--
	default:
		least, ok = dollars(value)
		most = least
	}
	return least, most, ok && least <= most
}

// dollars reads digits with at most one point; no signs, exponents or words.
func dollars(s string) (int64, bool) {
	if s == "" || len(s) > 16 || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	usd, err := strconv.ParseFloat(s, 64)
	if err != nil || usd < 0 || usd*1e6 > maxMicros {
		return 0, false
	}
	return int64(usd*1e6 + 0.5), true
}
