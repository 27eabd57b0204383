package approval

import (
	"cmp"
	"slices"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// seat is one voice in a request: that of an approver of whom its rule wants to hear.
type seat struct {
	owner  people.User
	holder people.User // who speaks with it: the owner or their deputy; without id nobody
}

// voter is who speaks with it.
func (s seat) voter() Voter {
	if s.owner.Name == s.holder.Name {
		return Voter{Name: s.holder.Name}
	}
	return Voter{Name: s.holder.Name, For: s.owner.Name}
}

// Voter is a person by the name that others know, with whom they stand in for.
type Voter struct {
	Name string
	For  string // "" for oneself
}

// String is the name in lists: "cleo (for ann)".
func (v Voter) String() string {
	if v.For == "" || v.For == v.Name {
		return v.Name
	}
	return v.Name + " (for " + v.For + ")"
}

// Names are voters as lists have them.
func Names(voters []Voter) []string {
	names := make([]string, len(voters))
	for i, v := range voters {
		names[i] = v.String()
	}
	return names
}

// seats lists the seats of r as they are held now, by the owner's name.
func (e Electorate) seats(r Request) []seat {
	var all []seat
	for _, u := range e.users {
		if e.votes(u, r) {
			all = append(all, seat{owner: u, holder: e.holder(u, r)})
		}
	}
	slices.SortFunc(all, func(a, b seat) int { return cmp.Compare(a.owner.Name, b.owner.Name) })
	return all
}

// holder is who speaks in u's seat. While u is away that is the deputy, unless they are
// away as well, which hands nothing on, or have a seat of their own: a person counts once.
func (e Electorate) holder(u people.User, r Request) people.User {
	if !u.Away.Now(e.now) {
		return u
	}
	d := e.deputy(u)
	if e.votes(d, r) {
		return people.User{}
	}
	return d
}

// deputy is who decides for u, who is away; nobody where that person cannot.
func (e Electorate) deputy(u people.User) people.User {
	for _, d := range e.users {
		if d.ID == u.Away.To && d.ID != u.ID && Approves(d) && !d.Away.Now(e.now) {
			return d
		}
	}
	return people.User{}
}

// open lists the seats from which a yes to the current revision, or an answer, can still
// come, each person once, by name.
func (e Electorate) open(r Request) []seat {
	yes := e.yes(r)
	var open []seat
	for _, s := range e.seats(r) {
		spoken := func(d Decision) bool { return d.UserID == s.holder.ID || d.seat() == s.owner.ID }
		listed := func(o seat) bool { return o.holder.ID == s.holder.ID }
		if s.holder.ID == "" || slices.ContainsFunc(yes, spoken) || slices.ContainsFunc(open, listed) ||
			e.barred(s.owner, r) != nil || e.barred(s.holder, r) != nil {
			continue
		}
		open = append(open, s)
	}
	for _, u := range e.users { // who asked for the task may answer, whoever decides
		if r.MayAnswer(u.ID) && answers(u) && !slices.ContainsFunc(open, func(s seat) bool { return s.holder.ID == u.ID }) {
			open = append(open, seat{owner: u, holder: u})
		}
	}
	slices.SortFunc(open, func(a, b seat) int { return cmp.Compare(a.voter().String(), b.voter().String()) })
	return open
}

// answers reports whether u may answer what an agent asks in the course of their own task:
// whoever may send tasks, or decide.
func answers(u people.User) bool {
	return !u.Disabled && slices.ContainsFunc(u.Roles, func(r people.Role) bool {
		may := r.Scopes()
		return slices.Contains(may, people.TasksWrite) || slices.Contains(may, people.ApprovalsDecide)
	})
}

// seatOf is the seat in which u would speak: their own, else that of somebody absent,
// first one that can still say yes. Without one its owner has no id. The Party says that
// four eyes take the seat from its owner and so from u; nobody is deprived of their own
// seat, only of the yes.
func (e Electorate) seatOf(u people.User, r Request) (seat, *Party) {
	if e.member(u, r.Rule.From) {
		return seat{owner: u, holder: u}, nil
	}
	yes := e.yes(r)
	var best seat
	var bar *Party
	rank := 3
	for _, s := range e.seats(r) {
		if s.holder.ID == "" || s.holder.ID != u.ID {
			continue
		}
		b, this := e.barred(s.owner, r), 0
		switch {
		case b != nil:
			this = 2
		case slices.ContainsFunc(yes, func(d Decision) bool { return d.seat() == s.owner.ID }):
			this = 1
		}
		if this < rank {
			best, bar, rank = s, b, this
		}
	}
	return best, bar
}

// inPlaceOf is whose seat u would speak in, "" for their own.
func (e Electorate) inPlaceOf(u people.User, r Request) (id, name string) {
	s, _ := e.seatOf(u, r)
	if s.owner.ID == u.ID {
		return "", ""
	}
	return s.owner.ID, s.owner.Name
}

// absence is the cause of a refusal for being out of office: its sentence without the advice.
type absence string

func (a absence) Error() string { return string(a) }

// absent refuses the verdict of somebody who is out of office: their seat has one voice.
func (e Electorate) absent(u people.User) *orchestrator.Error {
	u = e.current(u)
	if !u.Away.Now(e.now) {
		return nil
	}
	who := "nobody decides in your place"
	if d := e.deputy(u); d.ID != "" {
		who = d.Name + " decides in your place"
	}
	w := words{zone: e.now.Location(), now: e.now}
	away := absence("You are out of office until " + w.at(u.Away.Until) + "; " + who)
	return orchestrator.Errorf(orchestrator.CodeForbidden, "%w. End it first: gatehouse user away %s --back", away, u.Name).Because(orchestrator.ReasonAway)
}

// Approves reports whether the yes of u may count at all.
func Approves(u people.User) bool { return !u.Disabled && slices.Contains(u.Roles, people.Approver) }

// seat is the id of the person whose voice d is.
func (d Decision) seat() string { return cmp.Or(d.ForID, d.UserID) }

// By is who gave the verdict, with whom they stood in for.
func (d Decision) By() Voter { return Voter{Name: d.User, For: d.For} }
