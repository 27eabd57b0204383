package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// CreateSession signs a person in.
func (s *Store) CreateSession(ctx context.Context, actor string, v people.Session) error {
	if v.CreatedAt.IsZero() {
		v.CreatedAt = s.now()
	}
	return s.system(ctx, actor, event.SessionCreatedData{UserID: v.UserID}, func(t *Tx) error {
		_, err := t.q.exec(t.ctx, "insert into sessions (hash, user_id, client, created_at, expires_at) values (?, ?, ?, ?, ?)", v.Hash, v.UserID, clean(v.Client), micros(v.CreatedAt), micros(v.ExpiresAt))
		return err
	})
}

const selectSession = "select s.hash, s.user_id, s.created_at, s.expires_at, " + userColumns + ` from sessions s join users u on u.id = s.user_id
	where s.hash = ? and s.expires_at > ? and u.disabled = 0`

// Session returns the session with this hash and its person; ErrNotFound when it has
// expired or the person is disabled.
func (s *Store) Session(ctx context.Context, hash string) (people.Session, people.User, error) {
	var v people.Session
	var u people.User
	var created, expires int64
	r := userRow{into: &u}
	err := s.r.row(ctx, selectSession, hash, micros(s.now())).Scan(append([]any{&v.Hash, &v.UserID, &created, &expires}, r.columns()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return v, u, orchestrator.ErrNotFound
	}
	if err == nil {
		err = r.decode()
	}
	v.CreatedAt, v.ExpiresAt = fromMicros(created), fromMicros(expires)
	return v, u, s.explain(err)
}

// Sessions lists where a person is signed in, newest first.
func (s *Store) Sessions(ctx context.Context, userID string) ([]people.Session, error) {
	rows, err := s.r.query(ctx, "select hash, user_id, client, created_at, expires_at from sessions where user_id = ? and expires_at > ? order by created_at desc, hash", userID, micros(s.now()))
	found, err := collect(rows, err, func(row scanner) (people.Session, error) {
		var v people.Session
		var created, expires int64
		err := row.Scan(&v.Hash, &v.UserID, &v.Client, &created, &expires)
		v.CreatedAt, v.ExpiresAt = fromMicros(created), fromMicros(expires)
		return v, err
	})
	return found, s.explain(err)
}

// EndSessions signs a person out everywhere but in the session keep, and says of how many.
func (s *Store) EndSessions(ctx context.Context, actor, userID, keep string) (int, error) {
	var n int64
	said := event.SessionEndedData{UserID: userID}
	err := s.system(ctx, actor, &said, func(t *Tx) (err error) {
		n, err = changed(t.q.exec(t.ctx, "delete from sessions where user_id = ? and hash <> ?", userID, keep))
		if err == nil && n == 0 {
			return errNothing
		}
		said.Sessions = n
		return err
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return int(n), err
}

// DeleteSession signs out; a session that is not there is no error.
func (s *Store) DeleteSession(ctx context.Context, actor, hash string) error {
	err := s.system(ctx, actor, event.SessionEndedData{}, func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, "delete from sessions where hash = ?", hash))
		if err == nil && n == 0 {
			return errNothing
		}
		return err
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// CreateSigninLink adds a one-time link.
func (s *Store) CreateSigninLink(ctx context.Context, actor string, l people.SigninLink) error {
	return s.system(ctx, actor, event.LinkCreatedData{UserID: l.UserID}, func(t *Tx) error {
		_, err := t.q.exec(t.ctx, "insert into signin_links (hash, user_id, expires_at) values (?, ?, ?)", l.Hash, l.UserID, micros(l.ExpiresAt))
		return err
	})
}

// PeekSigninLink returns a link that could be used now, and its person, and uses
// nothing. ErrNotFound when it is unknown, used or too old.
func (s *Store) PeekSigninLink(ctx context.Context, hash string) (people.SigninLink, people.User, error) {
	var l people.SigninLink
	var u people.User
	var expires int64
	r := userRow{into: &u}
	err := s.r.row(ctx, "select l.hash, l.user_id, l.expires_at, "+userColumns+` from signin_links l join users u on u.id = l.user_id
		where l.hash = ? and l.used_at is null and l.expires_at > ? and u.disabled = 0`, hash, micros(s.now())).Scan(append([]any{&l.Hash, &l.UserID, &expires}, r.columns()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return l, u, orchestrator.ErrNotFound
	}
	if err == nil {
		err = r.decode()
	}
	l.ExpiresAt = fromMicros(expires)
	return l, u, s.explain(err)
}

// UseSigninLink uses a link and returns its person. Of many who try at once one
// succeeds; the others get ErrNotFound.
func (s *Store) UseSigninLink(ctx context.Context, hash string) (people.User, error) {
	_, u, err := s.PeekSigninLink(ctx, hash)
	if err != nil {
		return people.User{}, err
	}
	err = s.system(ctx, u.Name, event.LinkUsedData{UserID: u.ID}, func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, "update signin_links set used_at = ? where hash = ? and used_at is null and expires_at > ?", micros(t.now), hash, micros(t.now)))
		if err == nil && n == 0 {
			return orchestrator.ErrNotFound
		}
		return err
	})
	if err != nil {
		return people.User{}, err
	}
	return u, nil
}

// PurgeSignins removes sessions and links that expired before now, and returns how
// many. Their events stay.
func (s *Store) PurgeSignins(ctx context.Context, now time.Time) (int, error) {
	var all int64
	for _, text := range []string{"delete from sessions where expires_at <= ?", "delete from signin_links where expires_at <= ?"} {
		n, err := changed(s.w.exec(ctx, text, micros(now)))
		if err != nil {
			return int(all), s.explain(err)
		}
		all += n
	}
	return int(all), nil
}
