package store

import (
	"context"
	"errors"
	"fmt"
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
	err := (&userRow{into: &u}).scan(s.r.row(ctx, selectSession, hash, micros(s.now())), &v.Hash, &v.UserID, Time(&v.CreatedAt), Time(&v.ExpiresAt))
	return v, u, s.explain(err)
}

// Sessions lists where a person is signed in, newest first.
func (s *Store) Sessions(ctx context.Context, userID string) ([]people.Session, error) {
	return ReadAll(ctx, s, func(row scanner) (v people.Session, err error) {
		err = row.Scan(&v.Hash, &v.UserID, &v.Client, Time(&v.CreatedAt), Time(&v.ExpiresAt))
		return v, err
	}, "select hash, user_id, client, created_at, expires_at from sessions where user_id = ? and expires_at > ? order by created_at desc, hash", userID, micros(s.now()))
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
	row := s.r.row(ctx, "select l.hash, l.user_id, l.expires_at, "+userColumns+` from signin_links l join users u on u.id = l.user_id
		where l.hash = ? and l.used_at is null and l.expires_at > ? and u.disabled = 0`, hash, micros(s.now()))
	err := (&userRow{into: &u}).scan(row, &l.Hash, &l.UserID, Time(&l.ExpiresAt))
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

// touchEvery is how exact the time of a token's last use is: a busy program must not
// cost a commit with every request.
const touchEvery = time.Minute

const selectToken = "select t.id, t.user_id, t.name, t.scopes, t.hash, t.created_at, t.expires_at, t.revoked_at, t.last_used_at, " + userColumns +
	" from tokens t join users u on u.id = t.user_id"

// owned is a token with its person.
type owned struct {
	people.Token
	user people.User
}

func scanToken(row scanner) (owned, error) {
	var v owned
	err := (&userRow{into: &v.user}).scan(row, &v.ID, &v.UserID, &v.Name, JSON(&v.Scopes), &v.Hash,
		Time(&v.CreatedAt), MaybeTime(&v.ExpiresAt), MaybeTime(&v.RevokedAt), MaybeTime(&v.LastUsedAt))
	v.UserName = v.user.Name
	return v, err
}

// CreateToken adds an API token; a missing id and time are filled in.
func (s *Store) CreateToken(ctx context.Context, actor string, v people.Token) (people.Token, error) {
	if v.CreatedAt.IsZero() {
		v.CreatedAt = s.now()
	}
	if v.ID == "" {
		v.ID = orchestrator.NewID(orchestrator.TokenPrefix, v.CreatedAt)
	}
	v.Name = clean(v.Name)
	scopes, err := encode(list(v.Scopes))
	if err != nil {
		return v, fmt.Errorf("write the scopes of %s: %w", v.ID, err)
	}
	said := event.TokenCreatedData{TokenID: v.ID, UserID: v.UserID, Name: v.Name, Scopes: spelt(v.Scopes)}
	err = s.system(ctx, actor, said, func(t *Tx) error {
		_, err := t.q.exec(t.ctx, "insert into tokens (id, user_id, name, scopes, hash, created_at, expires_at) values (?, ?, ?, ?, ?, ?, ?)",
			v.ID, v.UserID, v.Name, scopes, v.Hash, micros(v.CreatedAt), nullMicros(v.ExpiresAt))
		return err
	})
	return v, err
}

// Tokens returns the tokens of a person, or all with userID "", newest first.
func (s *Store) Tokens(ctx context.Context, userID string) ([]people.Token, error) {
	return ReadAll(ctx, s, func(row scanner) (people.Token, error) {
		v, err := scanToken(row)
		return v.Token, err
	}, selectToken+" where t.user_id = ? or ? = '' order by t.id desc", userID, userID)
}

// RevokeToken ends a token. ErrNotFound when there is none; one that was revoked
// before is no error.
func (s *Store) RevokeToken(ctx context.Context, actor, id string) error {
	err := s.system(ctx, actor, event.TokenRevokedData{TokenID: id}, func(t *Tx) error {
		n, err := changed(t.q.exec(t.ctx, "update tokens set revoked_at = ? where id = ? and revoked_at is null", micros(t.now), id))
		if err != nil || n == 1 {
			return err
		}
		if _, err := scanToken(t.q.row(t.ctx, selectToken+" where t.id = ?", id)); err != nil {
			return err
		}
		return errNothing
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// revokeTokens ends all tokens of a person and returns their ids, oldest first.
func (t *Tx) revokeTokens(userID string) ([]string, error) {
	rows, err := t.q.query(t.ctx, "select id from tokens where user_id = ? and revoked_at is null order by id", userID)
	ids, err := collect(rows, err, Scalar[string])
	if err != nil || len(ids) == 0 {
		return []string{}, err
	}
	_, err = t.q.exec(t.ctx, "update tokens set revoked_at = ? where user_id = ? and revoked_at is null", micros(t.now), userID)
	return ids, err
}

// TokenByHash returns a token that is good now, with its person; ErrNotFound when it
// is unknown, revoked or expired, or the person is disabled.
func (s *Store) TokenByHash(ctx context.Context, hash string) (people.Token, people.User, error) {
	v, err := ReadOne(ctx, s, scanToken, selectToken+" where t.hash = ? and t.revoked_at is null and (t.expires_at is null or t.expires_at > ?) and u.disabled = 0", hash, micros(s.now()))
	return v.Token, v.user, err
}

// TouchToken records that a token was used, to the minute.
func (s *Store) TouchToken(ctx context.Context, v people.Token) error {
	now := s.now()
	if v.LastUsedAt != nil && now.Sub(*v.LastUsedAt) < touchEvery {
		return nil
	}
	_, err := s.w.exec(ctx, "update tokens set last_used_at = ? where id = ? and (last_used_at is null or last_used_at < ?)", micros(now), v.ID, micros(now.Add(-touchEvery)))
	return s.explain(err)
}
