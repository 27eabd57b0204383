package main

import (
	"cmp"
	"context"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/store"
)

// AwayCmd says that a person is out of office, or back.
type AwayCmd struct {
	Name  string `arg:"" help:"Who is away."`
	To    string `help:"The approver who decides in their place." placeholder:"OTHER"`
	From  string `help:"Since when, as 2026-12-24, 2026-12-24T08:00 or with a zone; now without it." placeholder:"T"`
	Until string `help:"The first moment of being back, written like that, or for how long, such as 36h or 2w." placeholder:"T"`
	Back  bool   `help:"End it now."`
}

// Run prints how it stands then.
func (c *AwayCmd) Run(ctx context.Context, sh *console.Shell) error {
	away, zone, err := c.away(sh)
	if err != nil {
		return err
	}
	return withStore(ctx, sh, func(s *store.Store) error {
		u, err := userNamed(ctx, s, c.Name)
		if err != nil {
			return err
		}
		var to people.User
		if away != nil {
			if to, err = userNamed(ctx, s, c.To); err != nil {
				return err
			}
			away.To = to.ID
		}
		if err := s.SetAway(ctx, cliActor, u.ID, away); err != nil {
			return coded(err)
		}
		if u, err = s.User(ctx, u.ID); err != nil {
			return err
		}
		if sh.JSON {
			return sh.Document(u)
		}
		return tellAway(sh, u, to, zone)
	})
}

// away reads the flags; nil is being back. The zone is the server's.
func (c *AwayCmd) away(sh *console.Shell) (*people.Away, *time.Location, error) {
	switch {
	case c.Back && (c.To != "" || c.From != "" || c.Until != ""):
		return nil, nil, console.Usage("--back ends an absence and stands alone.")
	case !c.Back && (c.To == "" || c.Until == ""):
		return nil, nil, console.Usage("Say who decides meanwhile and until when: gatehouse user away %s --to OTHER --until T. To end it: --back", console.Line(c.Name))
	}
	cfg, err := partOf(sh, "server.timezone")
	if err != nil || c.Back {
		return nil, time.UTC, err
	}
	zone := cmp.Or(cfg.Location, time.UTC)
	a := people.Away{From: sh.Now()}
	if c.From != "" {
		if a.From, err = moment("--from", c.From, zone); err != nil {
			return nil, nil, err
		}
	}
	if life, err := sharedctx.ParseTTL(c.Until); err == nil {
		a.Until = a.From.Add(life)
		return &a, zone, nil
	}
	a.Until, err = moment("--until", c.Until, zone)
	return &a, zone, err
}

// moment reads a time; one without a zone is in the server's.
func moment(flag, text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, console.Usage("%s %s: write a time such as 2026-12-24, 2026-12-24T08:00 or 2026-12-24T08:00:00+01:00.", flag, console.Line(text))
}

// absence says of a list's row who decides for u, and from when until when; "" where u is
// here, and will be as far as is known.
func absence(u people.User, names map[string]string, now time.Time, zone *time.Location) string {
	if u.Away == nil || !now.Before(u.Away.Until) {
		return ""
	}
	const clock = "2006-01-02 15:04 MST"
	since := "away "
	if u.Away.From.After(now) {
		since = "will be away from " + u.Away.From.In(zone).Format(clock) + " "
	}
	return since + "until " + u.Away.Until.In(zone).Format(clock) + ", " + names[u.Away.To] + " decides"
}

// tellAway says how u stands now.
func tellAway(sh *console.Shell, u, to people.User, zone *time.Location) error {
	if u.Away == nil {
		return sh.Say("%s is back and decides again", console.Line(u.Name))
	}
	const clock = "2006-01-02 15:04 MST"
	since := ""
	if u.Away.From.After(sh.Now()) {
		since = "from " + u.Away.From.In(zone).Format(clock) + " "
	}
	if err := sh.Say("%s is out of office %suntil %s; %s decides in their place", console.Line(u.Name), since, u.Away.Until.In(zone).Format(clock), console.Line(to.Name)); err != nil {
		return err
	}
	if a := to.Away; a != nil && a.From.Before(u.Away.Until) && u.Away.From.Before(a.Until) {
		sh.Hint("  %s is out of office until %s, too; nobody decides for %s while both are", console.Line(to.Name), a.Until.In(zone).Format(clock), console.Line(u.Name))
	}
	return nil
}
