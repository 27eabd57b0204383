package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

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
	var scopes string
	var created int64
	var expires, revoked, used sql.NullInt64
	r := userRow{into: &v.user}
	err := row.Scan(append([]any{&v.ID, &v.UserID, &v.Name, &scopes, &v.Hash, &created, &expires, &revoked, &used}, r.columns()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return v, orchestrator.ErrNotFound
	}
	if err != nil {
		return v, err
	}
	v.CreatedAt, v.ExpiresAt, v.RevokedAt, v.LastUsedAt = fromMicros(created), fromNull(expires), fromNull(revoked), fromNull(used)
	if err := json.Unmarshal([]byte(scopes), &v.Scopes); err != nil {
		return v, fmt.Errorf("read the scopes of %s: %w", v.ID, err)
	}
	if err := r.decode(); err != nil {
		return v, err
	}
	v.UserName = v.user.Name
	return v, nil
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
	rows, err := s.r.query(ctx, selectToken+" where t.user_id = ? or ? = '' order by t.id desc", userID, userID)
	found, err := collect(rows, err, func(row scanner) (people.Token, error) {
		v, err := scanToken(row)
		return v.Token, err
	})
	return found, s.explain(err)
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
	ids, err := collect(rows, err, func(row scanner) (id string, err error) { return id, row.Scan(&id) })
	if err != nil || len(ids) == 0 {
		return []string{}, err
	}
	_, err = t.q.exec(t.ctx, "update tokens set revoked_at = ? where user_id = ? and revoked_at is null", micros(t.now), userID)
	return ids, err
}

// TokenByHash returns a token that is good now, with its person; ErrNotFound when it
// is unknown, revoked or expired, or the person is disabled.
func (s *Store) TokenByHash(ctx context.Context, hash string) (people.Token, people.User, error) {
	v, err := scanToken(s.r.row(ctx, selectToken+" where t.hash = ? and t.revoked_at is null and (t.expires_at is null or t.expires_at > ?) and u.disabled = 0", hash, micros(s.now())))
	if err != nil {
		return people.Token{}, people.User{}, s.explain(err)
	}
	return v.Token, v.user, nil
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
