package sqlstore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

var peopleTests = map[string]func(*Suite){
	"people have unique names":               users,
	"sessions end":                           sessions,
	"a sign-in link works once":              links,
	"a token works until it ends":            tokens,
	"what people do is in the stream system": systemStream,
}

func (s *Suite) user(name string) people.User {
	s.Helper()
	u, err := s.Store.CreateUser(s.ctx, "cli", people.User{Name: name, Roles: []people.Role{people.Operator}})
	s.must(err)
	return u
}

// system returns the events of the stream system as "type actor".
func (s *Suite) system() (lines []string) {
	s.Helper()
	events, err := s.Store.Events(s.ctx, event.System, 0, 1000)
	s.must(err)
	for _, e := range events {
		lines = append(lines, fmt.Sprint(e.Type, " ", e.Actor))
	}
	return lines
}

func users(s *Suite) {
	want, err := s.Store.CreateUser(s.ctx, "cli", people.User{Name: "Ann", Roles: []people.Role{people.Admin, people.Approver}, PasswordHash: "h"})
	s.must(err)
	for name, read := range map[string]func() (people.User, error){
		"by id":           func() (people.User, error) { return s.Store.User(s.ctx, want.ID) },
		"by name":         func() (people.User, error) { return s.Store.UserByName(s.ctx, "Ann") },
		"by another case": func() (people.User, error) { return s.Store.UserByName(s.ctx, "aNN") },
	} {
		if got, err := read(); err != nil || !reflect.DeepEqual(got, want) {
			s.Errorf("%s: %+v %v", name, got, err)
		}
	}
	_, err = s.Store.CreateUser(s.ctx, "cli", people.User{Name: "ANN"})
	s.is(err, orchestrator.ErrExists)
	if _, err := s.Store.CreateUser(s.ctx, "cli", people.User{Name: "an n"}); orchestrator.CodeOf(err) != orchestrator.CodeBadRequest {
		s.Errorf("a bad name: %v", err)
	}
	errs := together(10, func(i int) error {
		_, err := s.Store.CreateUser(s.ctx, "cli", people.User{Name: []string{"bob", "BOB"}[i%2]})
		return err
	})
	if count(errs, nil) != 1 || count(errs, orchestrator.ErrExists) != 9 {
		s.Errorf("ten bobs: %v", errs)
	}
	for what, err := range map[string]error{"no role": s.Store.SetRoles(s.ctx, "cli", want.ID, nil), "disabled": s.Store.SetDisabled(s.ctx, "cli", want.ID, true)} {
		if orchestrator.CodeOf(err) != orchestrator.CodeConflict {
			s.Errorf("%s: the only admin is gone: %v", what, err)
		}
	}
	bob, err := s.Store.UserByName(s.ctx, "bob")
	s.must(err)
	s.must(s.Store.SetRoles(s.ctx, "cli", bob.ID, []people.Role{people.Admin}))
	s.must(s.Store.SetZone(s.ctx, "ann", want.ID, "Europe/Berlin"))
	s.must(s.Store.SetRoles(s.ctx, "cli", want.ID, nil))
	s.must(s.Store.SetPassword(s.ctx, "cli", want.ID, "h2"))
	s.must(s.Store.SetDisabled(s.ctx, "cli", want.ID, true))
	all, err := s.Store.Users(s.ctx)
	if err != nil || len(all) != 2 || all[0].Name != "Ann" || len(all[0].Roles) != 0 || all[0].PasswordHash != "h2" || !all[0].Disabled || all[0].Zone != "Europe/Berlin" {
		s.Errorf("users %+v %v", all, err)
	}
	s.is(s.Store.SetRoles(s.ctx, "cli", "usr_none", nil), orchestrator.ErrNotFound)
	_, err = s.Store.UserByName(s.ctx, "x\x00\xff")
	s.is(err, orchestrator.ErrNotFound)
}

func sessions(s *Suite) {
	ann := s.user("ann")
	create := func(hash string) {
		s.Helper()
		s.must(s.Store.CreateSession(s.ctx, "ann", people.Session{Hash: hash, UserID: ann.ID, Client: "Firefox", ExpiresAt: s.Clock.Now().Add(time.Hour)}))
	}
	create("s1")
	v, u, err := s.Store.Session(s.ctx, "s1")
	if err != nil || v.UserID != ann.ID || u.Name != "ann" || !v.CreatedAt.Equal(s.Clock.Now()) {
		s.Errorf("session %+v %+v %v", v, u, err)
	}
	gone := func(hash string) {
		s.Helper()
		_, _, err := s.Store.Session(s.ctx, hash)
		s.is(err, orchestrator.ErrNotFound)
	}
	gone("s0")
	s.must(s.Store.DeleteSession(s.ctx, "ann", "s1"))
	s.must(s.Store.DeleteSession(s.ctx, "ann", "s1"))
	gone("s1")
	create("s2")
	s.must(s.Store.SetPassword(s.ctx, "ann", ann.ID, "new"))
	gone("s2") // whoever knew the old password is out
	create("s3")
	s.Clock.Add(time.Hour)
	gone("s3")
	if n, err := s.Store.PurgeSignins(s.ctx, s.Clock.Now()); err != nil || n != 1 {
		s.Errorf("purged %d, %v", n, err)
	}
	create("s4")
	create("s5")
	if list, err := s.Store.Sessions(s.ctx, ann.ID); err != nil || len(list) != 2 || list[0].Client != "Firefox" {
		s.Errorf("sessions %+v %v", list, err)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.Store.EndSessions(s.ctx, "ann", ann.ID, "s4"); err != nil || n != want {
			s.Errorf("ended %d of %d others, %v", n, want, err)
		}
	}
	gone("s5")
	s.must(s.Store.SetDisabled(s.ctx, "cli", ann.ID, true))
	gone("s4")
	create("s6") // of a sign-in that had begun before
	gone("s6")
	s.must(s.Store.SetDisabled(s.ctx, "cli", ann.ID, false))
	gone("s4")
	gone("s6")
	if err := s.Store.CreateSession(s.ctx, "x", people.Session{Hash: "s5", UserID: "usr_none"}); err == nil {
		s.Error("a session of nobody was made")
	}
}

func links(s *Suite) {
	ann := s.user("ann")
	s.must(s.Store.CreateSigninLink(s.ctx, "cli", people.SigninLink{Hash: "l1", UserID: ann.ID, ExpiresAt: s.Clock.Now().Add(10 * time.Minute)}))
	for range 2 { // looking uses nothing
		if l, u, err := s.Store.PeekSigninLink(s.ctx, "l1"); err != nil || u.ID != ann.ID || l.UserID != ann.ID {
			s.Errorf("peek %+v %+v %v", l, u, err)
		}
	}
	errs := together(20, func(int) error {
		u, err := s.Store.UseSigninLink(s.ctx, "l1")
		if err == nil && u.ID != ann.ID {
			s.Errorf("signed in as %+v", u)
		}
		return err
	})
	if count(errs, nil) != 1 || count(errs, orchestrator.ErrNotFound) != 19 {
		s.Errorf("20 uses: %v", errs)
	}
	_, _, err := s.Store.PeekSigninLink(s.ctx, "l1")
	s.is(err, orchestrator.ErrNotFound)
	s.must(s.Store.CreateSigninLink(s.ctx, "cli", people.SigninLink{Hash: "l2", UserID: ann.ID, ExpiresAt: s.Clock.Now().Add(10 * time.Minute)}))
	s.Clock.Add(10 * time.Minute)
	_, err = s.Store.UseSigninLink(s.ctx, "l2")
	s.is(err, orchestrator.ErrNotFound)
	// A link that somebody else may have seen is no way back in.
	for hash, bar := range map[string]func() error{
		"l3": func() error { return s.Store.SetPassword(s.ctx, "ann", ann.ID, "new") },
		"l4": func() error {
			return errors.Join(s.Store.SetDisabled(s.ctx, "cli", ann.ID, true), s.Store.SetDisabled(s.ctx, "cli", ann.ID, false))
		},
	} {
		s.must(s.Store.CreateSigninLink(s.ctx, "cli", people.SigninLink{Hash: hash, UserID: ann.ID, ExpiresAt: s.Clock.Now().Add(10 * time.Minute)}))
		s.must(bar())
		_, err = s.Store.UseSigninLink(s.ctx, hash)
		s.is(err, orchestrator.ErrNotFound)
	}
}

func tokens(s *Suite) {
	ann, bob := s.user("ann"), s.user("bob")
	expires := s.Clock.Now().Add(time.Hour)
	make1 := func(hash string, owner people.User, expires *time.Time) people.Token {
		s.Helper()
		v, err := s.Store.CreateToken(s.ctx, owner.Name, people.Token{UserID: owner.ID, Name: "ci", Scopes: []people.Scope{people.TasksWrite}, Hash: hash, ExpiresAt: expires})
		s.must(err)
		return v
	}
	short, long := make1("t1", ann, &expires), make1("t2", ann, nil)
	make1("t3", bob, nil)
	got, u, err := s.Store.TokenByHash(s.ctx, "t1")
	if err != nil || got.ID != short.ID || u.ID != ann.ID || got.UserName != "ann" || !slices.Equal(got.Scopes, []people.Scope{people.TasksWrite}) || got.LastUsedAt != nil {
		s.Errorf("token %+v %+v %v", got, u, err)
	}
	s.must(s.Store.TouchToken(s.ctx, got))
	if got, _, err = s.Store.TokenByHash(s.ctx, "t1"); err != nil || got.LastUsedAt == nil {
		s.Errorf("used %+v %v", got, err)
	}
	for id, want := range map[string]int{ann.ID: 2, bob.ID: 1, "": 3, "usr_none": 0} {
		if list, err := s.Store.Tokens(s.ctx, id); err != nil || len(list) != want {
			s.Errorf("tokens of %q: %d %v", id, len(list), err)
		}
	}
	gone := func(hash string) {
		s.Helper()
		_, _, err := s.Store.TokenByHash(s.ctx, hash)
		s.is(err, orchestrator.ErrNotFound)
	}
	s.Clock.Add(time.Hour)
	gone("t1")
	s.must(s.Store.RevokeToken(s.ctx, "ann", long.ID))
	s.must(s.Store.RevokeToken(s.ctx, "ann", long.ID))
	gone("t2")
	s.must(s.Store.SetDisabled(s.ctx, "cli", bob.ID, true))
	gone("t3")
	revoked := func(hash string) bool {
		s.Helper()
		all, err := s.Store.Tokens(s.ctx, bob.ID)
		s.must(err)
		i := slices.IndexFunc(all, func(t people.Token) bool { return t.Hash == hash })
		return i >= 0 && all[i].RevokedAt != nil
	}
	if !revoked("t3") {
		s.Error("a token of a barred person is only asleep")
	}
	// Such as one of a database in which barring revoked nothing.
	asleep, err := s.Store.CreateToken(s.ctx, "ann", people.Token{UserID: bob.ID, Hash: "t4"})
	s.must(err)
	s.must(s.Store.SetDisabled(s.ctx, "cli", bob.ID, false))
	gone("t3")
	gone("t4")
	events, err := s.Store.Events(s.ctx, event.System, 0, 100)
	s.must(err)
	if last := events[len(events)-1]; !revoked("t4") || last.Type != "user.changed" || !strings.Contains(string(last.Data), asleep.ID) {
		s.Errorf("a token of before works again, or its end is not told: %s %s", last.Type, last.Data)
	}
	s.is(s.Store.RevokeToken(s.ctx, "ann", "tok_none"), orchestrator.ErrNotFound)
	if _, err := s.Store.CreateToken(s.ctx, "ann", people.Token{UserID: ann.ID, Hash: "t2"}); err == nil {
		s.Error("two tokens with one hash")
	}
}

func systemStream(s *Suite) {
	ann := s.user("ann")
	s.must(s.Store.CreateSigninLink(s.ctx, "cli", people.SigninLink{Hash: "secret-link", UserID: ann.ID, ExpiresAt: s.Clock.Now().Add(time.Hour)}))
	_, err := s.Store.UseSigninLink(s.ctx, "secret-link")
	s.must(err)
	s.must(s.Store.CreateSession(s.ctx, "ann", people.Session{Hash: "secret-session", UserID: ann.ID, ExpiresAt: s.Clock.Now().Add(time.Hour)}))
	token, err := s.Store.CreateToken(s.ctx, "ann", people.Token{UserID: ann.ID, Hash: "secret-token"})
	s.must(err)
	s.must(s.Store.RevokeToken(s.ctx, "ann", token.ID))
	s.must(s.Store.RevokeToken(s.ctx, "ann", token.ID)) // nothing happened: no event
	s.must(s.Store.SetPassword(s.ctx, "ann", ann.ID, "secret-password"))
	s.must(s.Store.DeleteSession(s.ctx, "ann", "secret-session")) // gone already
	_, err = s.Store.CreateUser(s.ctx, "cli", people.User{Name: "ann"})
	s.is(err, orchestrator.ErrExists)
	want := []string{"user.created cli", "signin_link.created cli", "signin_link.used ann", "session.created ann", "token.created ann", "token.revoked ann", "user.changed ann"}
	if got := s.system(); !slices.Equal(got, want) {
		s.Errorf("system %q, want %q", got, want)
	}
	events, err := s.Store.Events(s.ctx, event.System, 0, 100)
	s.must(err)
	text, err := json.Marshal(events)
	s.must(err)
	if bytes.Contains(text, []byte("secret")) {
		s.Errorf("a secret is in the log: %s", text)
	}
	s.must(s.Store.VerifyTask(s.ctx, event.System))
}
