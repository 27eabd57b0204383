package history

import (
	"slices"
	"strconv"
	"strings"

	"gatehouse/orchestrator/nearest"
)

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
		State:    {"pending", "approved", "rejected", "changes_requested", "expired", "superseded", "stale", "landed", Pushed, "reverted", "failed", "cancelled"},
		FourEyes: yesNo, Viewed: yesNo, Fast: yesNo, Warnings: {"overruled"}, Checks: {"overruled"},
		Is: {"auto", "landed", "refused", "expired", "reverted", "revert", "edited", "handover"},
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
