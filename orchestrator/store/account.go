package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

const (
	selectAccounts   = "select channel, id, user_id, name, linked_at from accounts"
	selectAccountsOf = selectAccounts + " where user_id = ? or ? = '' order by channel, id"
)

func scanAccount(row scanner) (people.Account, error) {
	var a people.Account
	err := row.Scan(&a.Channel, &a.ID, &a.UserID, &a.Name, Time(&a.LinkedAt))
	return a, err
}

// CreateLinkCode makes a code with which this person can link an account of the
// channel, once, within people.LinkCodeLife. Only its hash is stored. A person who has
// people.MaxLinkCodes open ones gets no further.
func (s *Store) CreateLinkCode(ctx context.Context, actor string, channel origin.Channel, userID string) (string, error) {
	code, hash := people.NewLinkCode()
	err := s.system(ctx, actor, event.LinkCodeCreatedData{Channel: channel, UserID: userID}, func(t *Tx) error {
		u, err := scanUser(t.q.row(t.ctx, selectUser+" where u.id = ?", userID))
		if err != nil {
			return err
		}
		if u.Disabled {
			return orchestrator.Errorf(orchestrator.CodeForbidden, "%s is disabled, so no account can be linked. Enable them first.", u.Name)
		}
		open, err := Scalar[int](t.q.row(t.ctx, "select count(*) from link_codes where user_id = ? and used_at is null and expires_at > ?", userID, micros(t.now)))
		if err != nil {
			return err
		}
		if open >= people.MaxLinkCodes {
			return orchestrator.Errorf(orchestrator.CodeConflict, "%s has %d codes that were not used yet. Use one of them, or wait: each ends after 10 minutes.", u.Name, open)
		}
		_, err = t.q.exec(t.ctx, "insert into link_codes (hash, channel, user_id, expires_at) values (?, ?, ?, ?)", hash, channel, userID, micros(t.now.Add(people.LinkCodeLife)))
		return err
	})
	if err != nil {
		return "", err
	}
	return code, nil
}

// UseLinkCode links an account of the channel to the person that the code was made for,
// and returns them. The account is its numeric id; name is only kept for lists. Linked
// to the same person already, it takes the new name; linked to another, it is refused
// and the code stays good. CodeNotFound: the code is unknown, used, of another channel
// or too old. After people.MaxGuesses of these by one account further ones are not even
// looked at for a while.
func (s *Store) UseLinkCode(ctx context.Context, channel origin.Channel, code string, account int64, name string) (people.User, error) {
	who := accountKey{channel, account}
	if s.guesses.barred(who, s.now()) {
		return people.User{}, orchestrator.Errorf(orchestrator.CodeForbidden, "Too many wrong codes. Wait 10 minutes, then try again with a new one.")
	}
	a := people.Account{Channel: channel, ID: account, Name: clean(name)}
	u, err := s.linkAccount(ctx, people.HashLinkCode(code), a)
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		s.guesses.wrong(who, s.now())
		return people.User{}, orchestrator.Errorf(orchestrator.CodeNotFound, "This code is unknown, was used or is older than 10 minutes. Get a new one. (%w)", err)
	case err != nil:
		return people.User{}, err
	}
	s.guesses.right(who)
	return u, nil
}

// linkAccount uses the code and links the account in one transaction.
func (s *Store) linkAccount(ctx context.Context, hash string, a people.Account) (people.User, error) {
	open := func(q querier, now time.Time) (people.User, error) {
		return scanUser(q.row(ctx, selectUser+` join link_codes c on c.user_id = u.id
			where c.hash = ? and c.channel = ? and c.used_at is null and c.expires_at > ? and u.disabled = 0`, hash, a.Channel, micros(now)))
	}
	u, err := open(s.r, s.now())
	if err != nil {
		return u, s.explain(err)
	}
	said := event.AccountLinkedData{Channel: a.Channel, Account: a.ID, Name: a.Name, UserID: u.ID}
	err = s.system(ctx, u.Name, said, func(t *Tx) error {
		if _, err := open(t.q, t.now); err != nil {
			return err
		}
		was, err := scanAccount(t.q.row(t.ctx, selectAccounts+" where channel = ? and id = ?", a.Channel, a.ID))
		switch {
		case errors.Is(err, orchestrator.ErrNotFound):
			_, err = t.q.exec(t.ctx, "insert into accounts (channel, id, user_id, name, linked_at) values (?, ?, ?, ?, ?)", a.Channel, a.ID, u.ID, a.Name, micros(t.now))
		case err == nil && was.UserID != u.ID:
			return orchestrator.Errorf(orchestrator.CodeConflict, "This account is linked to another person; unlink it first.")
		case err == nil:
			_, err = t.q.exec(t.ctx, "update accounts set name = ? where channel = ? and id = ?", a.Name, a.Channel, a.ID)
		}
		if err != nil {
			return err
		}
		_, err = t.q.exec(t.ctx, "update link_codes set used_at = ? where hash = ?", micros(t.now), hash)
		return err
	})
	return u, err
}

// UserByAccount returns the person that an account of a channel is linked to;
// ErrNotFound when it is linked to nobody or the person is disabled.
func (s *Store) UserByAccount(ctx context.Context, channel origin.Channel, id int64) (people.User, error) {
	return ReadOne(ctx, s, scanUser, selectUser+" join accounts a on a.user_id = u.id where a.channel = ? and a.id = ? and u.disabled = 0", channel, id)
}

// Accounts returns the linked accounts of a person, or all with userID "".
func (s *Store) Accounts(ctx context.Context, userID string) ([]people.Account, error) {
	return ReadAll(ctx, s, scanAccount, selectAccountsOf, userID, userID)
}

// Unlink takes an account away from its person. ErrNotFound when it is linked to nobody.
func (s *Store) Unlink(ctx context.Context, actor string, channel origin.Channel, id int64) error {
	said := event.AccountUnlinkedData{Channel: channel, Account: id}
	return s.system(ctx, actor, &said, func(t *Tx) error {
		was, err := scanAccount(t.q.row(t.ctx, selectAccounts+" where channel = ? and id = ?", channel, id))
		if err != nil {
			return err
		}
		said.UserID = was.UserID
		_, err = t.q.exec(t.ctx, "delete from accounts where channel = ? and id = ?", channel, id)
		return err
	})
}

// SetAway says that a person is out of office, or with nil that they are back. A missing
// beginning is now.
func (s *Store) SetAway(ctx context.Context, actor, userID string, away *people.Away) error {
	said := event.UserChangedData{UserID: userID, Away: event.Given[*event.Away](nil)}
	return s.system(ctx, actor, &said, func(t *Tx) error {
		var a people.Away
		if away != nil {
			a = *away
			if a.From.IsZero() {
				a.From = t.now
			}
			if err := checkAway(t, userID, a); err != nil {
				return err
			}
			said.Away.V = &event.Away{To: a.To, From: a.From.UTC(), Until: a.Until.UTC()}
		}
		n, err := changed(t.q.exec(t.ctx, "update users set away_to = ?, away_from = ?, away_until = ? where id = ?", a.To, micros(a.From), micros(a.Until), userID))
		if err == nil && n == 0 {
			return orchestrator.ErrNotFound
		}
		return err
	})
}

// checkAway checks an absence against the people that it names.
func checkAway(t *Tx, userID string, a people.Away) error {
	u, err := scanUser(t.q.row(t.ctx, selectUser+" where u.id = ?", userID))
	if err != nil {
		return err
	}
	to, err := scanUser(t.q.row(t.ctx, selectUser+" where u.id = ?", a.To))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "There is no user %q who could decide for %s.", a.To, u.Name)
	}
	if err != nil {
		return err
	}
	if err := a.Check(u, to, t.now); err != nil {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "%w", err)
	}
	return nil
}

// PurgeLinkCodes removes codes that ended before now, used or not, and returns how many.
func (s *Store) PurgeLinkCodes(ctx context.Context, now time.Time) (int, error) {
	n, err := changed(s.w.exec(ctx, "delete from link_codes where expires_at <= ?", micros(now)))
	return int(n), s.explain(err)
}

// accountKey names an account of a channel.
type accountKey struct {
	channel origin.Channel
	id      int64
}

// guesses counts wrong link codes by account. It lives in memory, for each process by
// itself: a restart, or a second node, gives somebody five more guesses at 60 bits, and
// only the node that polls a bot hears of any. Its zero value is ready to use.
type guesses struct {
	mu sync.Mutex
	by map[accountKey]guesser
}

type guesser struct {
	wrong []time.Time // within the last window, oldest first
	until time.Time   // no further guess before; zero when there may be
}

// manyGuessers is how many are remembered before those that no longer count are dropped.
const manyGuessers = 1000

// barred reports whether the account may not guess at that time.
func (g *guesses) barred(who accountKey, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Before(g.by[who].until)
}

// wrong counts one wrong code.
func (g *guesses) wrong(who accountKey, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[accountKey]guesser{}
	}
	if len(g.by) >= manyGuessers {
		g.forget(now)
	}
	old := g.by[who]
	next := guesser{wrong: []time.Time{}}
	for _, at := range old.wrong {
		if now.Sub(at) < people.GuessWindow {
			next.wrong = append(next.wrong, at)
		}
	}
	if next.wrong = append(next.wrong, now); len(next.wrong) >= people.MaxGuesses {
		next = guesser{until: now.Add(people.GuessWindow)}
	}
	g.by[who] = next
}

// right forgets the wrong ones: this account knows a code.
func (g *guesses) right(who accountKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.by, who)
}

// forget drops accounts that may guess as if they never had.
func (g *guesses) forget(now time.Time) {
	for who, v := range g.by {
		last := len(v.wrong) - 1
		if !now.Before(v.until) && (last < 0 || now.Sub(v.wrong[last]) >= people.GuessWindow) {
			delete(g.by, who)
		}
	}
}
