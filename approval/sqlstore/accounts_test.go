package sqlstore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

var accountTests = map[string]func(*Suite){
	"a link code works once, for ten minutes":    linkCodes,
	"an account belongs to one person":           accounts,
	"a name that changed hands gains nothing":    accountNames,
	"wrong codes end in a pause":                 guessing,
	"an absence names another approver":          absences,
	"accounts and absences are in the audit log": accountEvents,
}

// linkCode makes a code for a person.
func (s *Suite) linkCode(u people.User) string {
	s.Helper()
	code, err := s.Store.CreateLinkCode(s.ctx, "cli", "telegram", u.ID)
	s.must(err)
	return code
}

func (s *Suite) approver(name string) people.User {
	s.Helper()
	u, err := s.Store.CreateUser(s.ctx, "cli", people.User{Name: name, Roles: []people.Role{people.Approver}})
	s.must(err)
	return u
}

// code checks the code of an error.
func (s *Suite) code(what string, err error, want string) {
	s.Helper()
	if orchestrator.CodeOf(err) != want {
		s.Errorf("%s: %v, want %s", what, err, want)
	}
}

func linkCodes(s *Suite) {
	ann := s.user("ann")
	code := s.linkCode(ann)
	if len(code) < 10 || strings.Trim(code, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
		s.Errorf("code %q", code)
	}
	_, err := s.Store.UseLinkCode(s.ctx, "matrix", code, 7, "ann_t")
	s.code("of another channel", err, orchestrator.CodeNotFound)
	errs := together(10, func(i int) error {
		u, err := s.Store.UseLinkCode(s.ctx, "telegram", code, int64(100+i), "ann_t")
		if err == nil && u.ID != ann.ID {
			s.Errorf("linked to %+v", u)
		}
		return err
	})
	if count(errs, nil) != 1 || count(errs, orchestrator.ErrNotFound) != 9 {
		s.Errorf("ten uses at once: %v", errs)
	}
	if all, err := s.Store.Accounts(s.ctx, ann.ID); err != nil || len(all) != 1 {
		s.Errorf("accounts %+v %v", all, err)
	}

	typed := s.linkCode(ann)
	typed = strings.ToLower(typed[:4]) + "-" + typed[4:] + " "
	_, err = s.Store.UseLinkCode(s.ctx, "telegram", typed, 8, "ann_2")
	s.must(err)

	old := s.linkCode(ann)
	s.Clock.Add(people.LinkCodeLife)
	_, err = s.Store.UseLinkCode(s.ctx, "telegram", old, 9, "ann_3")
	s.is(err, orchestrator.ErrNotFound)

	for range people.MaxLinkCodes {
		s.linkCode(ann)
	}
	_, err = s.Store.CreateLinkCode(s.ctx, "cli", "telegram", ann.ID)
	s.code("one more open code", err, orchestrator.CodeConflict)
	s.linkCode(s.user("bob"))
	s.Clock.Add(people.LinkCodeLife)
	if n, err := s.Store.PurgeLinkCodes(s.ctx, s.Clock.Now()); err != nil || n != people.MaxLinkCodes+1+3 {
		s.Errorf("purged %d %v", n, err)
	}
	s.linkCode(ann)

	_, err = s.Store.CreateLinkCode(s.ctx, "cli", "telegram", "usr_none")
	s.is(err, orchestrator.ErrNotFound)
	last := s.linkCode(ann)
	s.must(s.Store.SetDisabled(s.ctx, "cli", ann.ID, true))
	_, err = s.Store.UseLinkCode(s.ctx, "telegram", last, 10, "ann_4")
	s.is(err, orchestrator.ErrNotFound)
	_, err = s.Store.CreateLinkCode(s.ctx, "cli", "telegram", ann.ID)
	s.code("for a disabled person", err, orchestrator.CodeForbidden)
}

func accounts(s *Suite) {
	ann, bob := s.user("ann"), s.user("bob")
	// The largest account ids of the field have 52 bits.
	const id = int64(1)<<52 - 1
	link := func(u people.User, name string) error {
		_, err := s.Store.UseLinkCode(s.ctx, "telegram", s.linkCode(u), id, name)
		return err
	}
	s.must(link(ann, "ann_t"))
	_, err := s.Store.UserByAccount(s.ctx, "matrix", id)
	s.is(err, orchestrator.ErrNotFound)
	if u, err := s.Store.UserByAccount(s.ctx, "telegram", id); err != nil || u.ID != ann.ID || len(u.Roles) != 1 {
		s.Errorf("by account: %+v %v", u, err)
	}

	taken := s.linkCode(bob)
	_, err = s.Store.UseLinkCode(s.ctx, "telegram", taken, id, "bob_t")
	s.code("somebody else's", err, orchestrator.CodeConflict)
	if err == nil || err.Error() != "This account is linked to another person; unlink it first." {
		s.Errorf("said: %v", err)
	}

	at := s.Clock.Now()
	s.Clock.Add(time.Minute)
	s.must(link(ann, "ann\x00new\xff"))
	want := []people.Account{{Channel: "telegram", ID: id, UserID: ann.ID, Name: "ann\uFFFDnew\uFFFD", LinkedAt: at}}
	all, err := s.Store.Accounts(s.ctx, "")
	if err != nil || !reflect.DeepEqual(all, want) {
		s.Errorf("accounts %+v %v, want %+v", all, err, want)
	}
	everybody, err := s.Store.Users(s.ctx)
	if err != nil || len(everybody) != 2 || !reflect.DeepEqual(everybody[0].Accounts, want) || everybody[1].Accounts != nil {
		s.Errorf("users %+v %v", everybody, err)
	}

	s.must(s.Store.Unlink(s.ctx, "cli", "telegram", id))
	s.is(s.Store.Unlink(s.ctx, "cli", "telegram", id), orchestrator.ErrNotFound)
	// What was refused used nothing up.
	_, err = s.Store.UseLinkCode(s.ctx, "telegram", taken, id, "bob_t")
	s.must(err)
	s.must(s.Store.SetDisabled(s.ctx, "cli", bob.ID, true))
	_, err = s.Store.UserByAccount(s.ctx, "telegram", id)
	s.is(err, orchestrator.ErrNotFound)
}

func accountNames(s *Suite) {
	ann := s.user("ann")
	_, err := s.Store.UseLinkCode(s.ctx, "telegram", s.linkCode(ann), 11, "ann_t")
	s.must(err)
	_, err = s.Store.UserByAccount(s.ctx, "telegram", 12)
	s.is(err, orchestrator.ErrNotFound)
	_, err = s.Store.UseLinkCode(s.ctx, "telegram", s.linkCode(s.user("mallory")), 12, "ann_t")
	s.must(err)
	for id, want := range map[int64]string{11: "ann", 12: "mallory"} {
		if u, err := s.Store.UserByAccount(s.ctx, "telegram", id); err != nil || u.Name != want {
			s.Errorf("account %d is %s's (%v), want %s", id, u.Name, err, want)
		}
	}
}

func guessing(s *Suite) {
	ann := s.user("ann")
	guess := func(account int64, code string) error {
		_, err := s.Store.UseLinkCode(s.ctx, "telegram", code, account, "x")
		return err
	}
	for i := range people.MaxGuesses - 1 {
		s.code("wrong", guess(66, fmt.Sprint("WR0NGC0DE", i)), orchestrator.CodeNotFound)
	}
	s.Clock.Add(people.GuessWindow) // long ago: they no longer count
	good := s.linkCode(ann)
	for i := range people.MaxGuesses {
		s.code("wrong again", guess(66, fmt.Sprint("WR0NGC0DE", i)), orchestrator.CodeNotFound)
		s.Clock.Add(time.Second)
	}
	s.code("the right one, but too late", guess(66, good), orchestrator.CodeForbidden)
	s.must(guess(67, good)) // another account is not held up
	s.Clock.Add(people.GuessWindow - 2*time.Second)
	s.code("still within the pause", guess(66, s.linkCode(ann)), orchestrator.CodeForbidden)
	s.Clock.Add(2 * time.Second)
	s.must(guess(66, s.linkCode(ann)))
}

func absences(s *Suite) {
	ann, cleo, dora := s.approver("ann"), s.approver("cleo"), s.user("dora")
	now := s.Clock.Now()
	week := now.Add(7 * 24 * time.Hour)
	s.must(s.Store.SetAway(s.ctx, "ann", ann.ID, &people.Away{To: cleo.ID, Until: week}))
	want := &people.Away{To: cleo.ID, From: now, Until: week}
	if u, err := s.Store.User(s.ctx, ann.ID); err != nil || !reflect.DeepEqual(u.Away, want) {
		s.Errorf("away %+v %v", u.Away, err)
	}
	for what, bad := range map[string]people.Away{
		"oneself":       {To: ann.ID, Until: week},
		"nobody":        {To: "usr_none", Until: week},
		"no approver":   {To: dora.ID, Until: week},
		"over":          {To: cleo.ID, From: now.Add(-2 * time.Hour), Until: now},
		"the wrong way": {To: cleo.ID, From: week, Until: week},
	} {
		s.code(what, s.Store.SetAway(s.ctx, "ann", ann.ID, &bad), orchestrator.CodeBadRequest)
	}
	if u, err := s.Store.User(s.ctx, ann.ID); err != nil || !reflect.DeepEqual(u.Away, want) {
		s.Errorf("a refusal changed it to %+v %v", u.Away, err)
	}
	s.must(s.Store.SetAway(s.ctx, "ann", ann.ID, nil))
	if u, err := s.Store.User(s.ctx, ann.ID); err != nil || u.Away != nil {
		s.Errorf("back: %+v %v", u.Away, err)
	}
	s.must(s.Store.SetDisabled(s.ctx, "cli", cleo.ID, true))
	s.code("disabled", s.Store.SetAway(s.ctx, "ann", ann.ID, &people.Away{To: cleo.ID, Until: week}), orchestrator.CodeBadRequest)
	s.is(s.Store.SetAway(s.ctx, "cli", "usr_none", nil), orchestrator.ErrNotFound)
	s.is(s.Store.SetAway(s.ctx, "cli", "usr_none", want), orchestrator.ErrNotFound)
}

func accountEvents(s *Suite) {
	ann, cleo := s.approver("ann"), s.approver("cleo")
	code := s.linkCode(ann)
	_, err := s.Store.UseLinkCode(s.ctx, "telegram", code, 77, "ann_t")
	s.must(err)
	s.must(s.Store.Unlink(s.ctx, "cleo", "telegram", 77))
	s.must(s.Store.SetAway(s.ctx, "ann", ann.ID, &people.Away{To: cleo.ID, Until: s.Clock.Now().Add(time.Hour)}))
	s.must(s.Store.SetAway(s.ctx, "ann", ann.ID, nil))
	want := []string{"link_code.created cli", "account.linked ann", "account.unlinked cleo", "user.changed ann", "user.changed ann"}
	if got := s.system()[2:]; !reflect.DeepEqual(got, want) {
		s.Errorf("system %q, want %q", got, want)
	}
	events, err := s.Store.Events(s.ctx, event.System, 0, 100)
	s.must(err)
	text, err := json.Marshal(events)
	s.must(err)
	if bytes.Contains(text, []byte(code)) || bytes.Contains(text, []byte(people.HashLinkCode(code))) {
		s.Errorf("the code is in the log: %s", text)
	}
	for _, part := range []string{`"account":77`, `"to":"` + cleo.ID, `"away":null`, ann.ID} {
		if !bytes.Contains(text, []byte(part)) {
			s.Errorf("the log lacks %s: %s", part, text)
		}
	}
}
