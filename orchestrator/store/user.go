package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
)

const userColumns = "u.id, u.name, u.roles, u.password_hash, u.disabled, u.created_at, u.away_to, u.away_from, u.away_until, u.zone, u.muted"

const (
	selectUser  = "select " + userColumns + " from users u"
	selectUsers = selectUser + " order by u.name_key"
)

// userRow reads the columns of a user.
type userRow struct {
	into *people.User
	away people.Away
}

func (r *userRow) columns() []any {
	u := r.into
	return []any{&u.ID, &u.Name, JSON(&u.Roles), &u.PasswordHash, &u.Disabled, Time(&u.CreatedAt), &r.away.To, Time(&r.away.From), Time(&r.away.Until), &u.Zone, &u.Muted}
}

// scan reads a row that has the user's columns behind those in before.
func (r *userRow) scan(row scanner, before ...any) error {
	err := row.Scan(append(before, r.columns()...)...)
	if r.away.To != "" {
		r.into.Away = &r.away
	}
	return err
}

func scanUser(row scanner) (people.User, error) {
	var u people.User
	err := (&userRow{into: &u}).scan(row)
	return u, err
}

// nameKey is the identity of a name: Ann and ann are one person.
func nameKey(name string) string { return strings.ToLower(name) }

// system runs fn in a transaction that holds the row of the stream "system", and
// appends the event that says what actor did: the act and its event are one. Where said
// points to its data, fn may complete it.
func (s *Store) system(ctx context.Context, actor string, said event.Payload, fn func(*Tx) error) error {
	return s.inTask(ctx, event.System, func(t *Tx) error {
		if err := fn(t); err != nil {
			return err
		}
		return t.Append(ctx, event.Of("", actor, said))
	})
}

// CreateUser adds a person; a missing id and time are filled in. ErrExists when the
// name is taken in any spelling of its case.
func (s *Store) CreateUser(ctx context.Context, actor string, u people.User) (people.User, error) {
	if err := people.CheckUserName(u.Name); err != nil {
		return u, orchestrator.Errorf(orchestrator.CodeBadRequest, "%w", err)
	}
	if u.CreatedAt.IsZero() {
		u.CreatedAt = s.now()
	}
	if u.ID == "" {
		u.ID = orchestrator.NewID(orchestrator.UserPrefix, u.CreatedAt)
	}
	roles, err := encode(list(u.Roles))
	if err != nil {
		return u, fmt.Errorf("write the roles of %s: %w", u.Name, err)
	}
	err = s.system(ctx, actor, event.UserCreatedData{User: u.Name, UserID: u.ID, Roles: spelt(u.Roles)}, func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, `insert into users (id, name, name_key, roles, password_hash, disabled, created_at) values (?, ?, ?, ?, ?, ?, ?)
			on conflict (name_key) do nothing`, u.ID, u.Name, nameKey(u.Name), roles, u.PasswordHash, flag(u.Disabled), micros(u.CreatedAt)))
		if err == nil && n == 0 {
			return orchestrator.ErrExists
		}
		return err
	})
	return u, err
}

// flag is a yes or no as stored.
func flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// User returns a person by id.
func (s *Store) User(ctx context.Context, id string) (people.User, error) {
	return ReadOne(ctx, s, scanUser, selectUser+" where u.id = ?", clean(id))
}

// UserByName returns a person by name, in any case.
func (s *Store) UserByName(ctx context.Context, name string) (people.User, error) {
	return ReadOne(ctx, s, scanUser, selectUser+" where u.name_key = ?", nameKey(clean(name)))
}

// Users returns everybody by name, with their accounts.
func (s *Store) Users(ctx context.Context) ([]people.User, error) {
	found, err := ReadAll(ctx, s, scanUser, selectUsers)
	if err != nil {
		return nil, err
	}
	accounts, err := s.Accounts(ctx, "")
	if err != nil {
		return nil, err
	}
	for i := range found {
		for _, a := range accounts {
			if a.UserID == found[i].ID {
				found[i].Accounts = append(found[i].Accounts, a)
			}
		}
	}
	return found, nil
}

// SetRoles replaces the roles of a person.
func (s *Store) SetRoles(ctx context.Context, actor, id string, roles []people.Role) error {
	text, err := encode(list(roles))
	if err != nil {
		return fmt.Errorf("write roles: %w", err)
	}
	return s.changeUser(ctx, actor, id, event.UserChangedData{Roles: event.Given(spelt(roles))}, "roles = ?", text)
}

// SetPassword replaces the hash of a person's password, "" for none, and ends their
// sessions and sign-in links: whoever knew the old one is out.
func (s *Store) SetPassword(ctx context.Context, actor, id, hash string) error {
	return s.changeUser(ctx, actor, id, event.UserChangedData{Password: event.Given(hash != "")}, "password_hash = ?", hash)
}

// SetDisabled bars a person, or lets them in again. Either way their sessions, sign-in links
// and tokens end for good, in the same transaction: who was barred comes back by a new way
// in, and not by one that somebody else may have by now. In an old database a barred person
// still has tokens that were not revoked; they end when the person is let in.
func (s *Store) SetDisabled(ctx context.Context, actor, id string, disabled bool) error {
	return s.changeUser(ctx, actor, id, event.UserChangedData{Disabled: event.Given(disabled)}, "disabled = ?", flag(disabled))
}

// SetZone keeps the time zone that a person reads times in; "" is that of the browser.
func (s *Store) SetZone(ctx context.Context, actor, id, zone string) error {
	return s.changeUser(ctx, actor, id, event.UserChangedData{Zone: event.Given(zone)}, "zone = ?", zone)
}

// SetMuted keeps whether the messages of a person's tasks in channels go on until their ends.
func (s *Store) SetMuted(ctx context.Context, actor, id string, muted bool) error {
	return s.changeUser(ctx, actor, id, event.UserChangedData{Muted: event.Given(muted)}, "muted = ?", flag(muted))
}

// changeUser makes one change of a person. CodeConflict when it would leave nobody who is
// an admin and gets in, where there is one.
func (s *Store) changeUser(ctx context.Context, actor, id string, said event.UserChangedData, set string, value any) error {
	said.UserID = id
	return s.system(ctx, actor, &said, func(t *Tx) error {
		u, err := scanUser(t.q.row(t.ctx, selectUser+" where u.id = ?", id))
		if err != nil {
			return err
		}
		if _, err := t.q.exec(t.ctx, "update users set "+set+" where id = ?", value, id); err != nil {
			return err
		}
		if err := t.keepsAnAdmin(u); err != nil {
			return err
		}
		if !said.Disabled.Set && !said.Password.Set {
			return nil
		}
		if _, err := t.q.exec(t.ctx, "delete from sessions where user_id = ?", id); err != nil {
			return err
		}
		if _, err = t.q.exec(t.ctx, "delete from signin_links where user_id = ?", id); err != nil || !said.Disabled.Set { // a way in, too
			return err
		}
		revoked, err := t.revokeTokens(id)
		said.TokensRevoked = event.Given(revoked)
		return err
	})
}

// keepsAnAdmin refuses a change of u, as it was before, that took the last admin away. The
// row of the stream "system" is locked: two admins cannot bar each other at once.
func (t *Tx) keepsAnAdmin(u people.User) error {
	if u.Disabled || !slices.Contains(u.Roles, people.Admin) {
		return nil
	}
	rows, err := t.q.query(t.ctx, selectUser+" where u.disabled = 0")
	left, err := collect(rows, err, scanUser)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(left, func(o people.User) bool { return slices.Contains(o.Roles, people.Admin) }) {
		return orchestrator.Errorf(orchestrator.CodeConflict, "%s is the only admin, so nothing was changed. Make another one first.", u.Name)
	}
	return nil
}

// ViewPrefix begins the ids of saved views.
const ViewPrefix = "viw_"

const (
	selectViews    = "select v.id, v.user_id, u.name, v.name, v.list, v.line, v.columns, v.shared, v.at from saved_views v join users u on u.id = v.user_id"
	selectOwnViews = selectViews + " where v.user_id = ? or v.shared = 1 order by v.name_key, v.id"
	upsertView     = `insert into saved_views (id, user_id, name, name_key, list, line, columns, shared, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (user_id, list, name_key) do update set name = excluded.name, line = excluded.line, columns = excluded.columns, shared = excluded.shared, at = excluded.at`
)

func scanView(row scanner) (history.View, error) {
	var v history.View
	err := row.Scan(&v.ID, &v.UserID, &v.Owner, &v.Name, &v.List, &v.Line, JSON(&v.Columns), &v.Shared, Time(&v.At))
	return v, err
}

// SaveView keeps a view, in place of the one of that person, list and name; ErrExists
// when the person has that many others.
func (s *Store) SaveView(ctx context.Context, actor string, v history.View, most int) error {
	if problem := v.Problem(); problem != "" {
		return &orchestrator.Error{Code: orchestrator.CodeBadRequest, Message: problem}
	}
	columns, err := encode(list(v.Columns))
	if err != nil {
		return fmt.Errorf("write the columns of view %s: %w", v.Name, err)
	}
	at := s.now()
	save := func(t *Tx) error {
		others, err := Scalar[int](t.q.row(t.ctx, "select count(*) from saved_views where user_id = ? and not (list = ? and name_key = ?)", v.UserID, string(v.List), nameKey(v.Name)))
		if err != nil {
			return fmt.Errorf("count the views of %s: %w", v.UserID, err)
		}
		if others >= most {
			return orchestrator.ErrExists
		}
		_, err = t.q.exec(t.ctx, upsertView, orchestrator.NewID(ViewPrefix, at), v.UserID, clean(v.Name), nameKey(clean(v.Name)), string(v.List), clean(v.Line), columns, flag(v.Shared), micros(at))
		return err
	}
	if v.Shared {
		return s.system(ctx, actor, event.ViewSharedData{Name: clean(v.Name), List: string(v.List), Filter: clean(v.Line)}, save)
	}
	return s.transact(ctx, save)
}

// Views are the saved views that a person sees: their own and the shared ones, by name.
func (s *Store) Views(ctx context.Context, userID string) ([]history.View, error) {
	return ReadAll(ctx, s, scanView, selectOwnViews, clean(userID))
}

// DeleteView removes a view of that person; with shared, a shared one of anybody. It is
// ErrNotFound where there is none of these.
func (s *Store) DeleteView(ctx context.Context, actor, userID, id string, shared bool) error {
	v, err := ReadOne(ctx, s, scanView, selectViews+" where v.id = ? and (v.user_id = ? or (v.shared = 1 and ? = 1))", clean(id), userID, flag(shared))
	if err != nil {
		return err
	}
	remove := func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, "delete from saved_views where id = ?", v.ID))
		if err == nil && n == 0 {
			return orchestrator.ErrNotFound
		}
		return err
	}
	if v.Shared {
		return s.system(ctx, actor, event.ViewUnsharedData{Name: v.Name, List: string(v.List)}, remove)
	}
	return s.transact(ctx, remove)
}
