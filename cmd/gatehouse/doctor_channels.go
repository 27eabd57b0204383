package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"gatehouse/approval"
	"gatehouse/approval/sqlstore"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
	"gatehouse/views"
)

// checkChannels says what the channels last told, and what of them was given up. A
// database that is not there, or does not answer, is told elsewhere.
func checkChannels(ctx context.Context, cfg *config.Config) []finding {
	if file, ok := strings.CutPrefix(cfg.Database, "sqlite:"); ok {
		if _, err := os.Stat(file); err != nil {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s, err := sqlstore.Open(ctx, cfg.Database, store.Options{Node: "doctor", Logger: quiet()})
	if err != nil {
		return nil
	}
	defer func() { _ = s.Close() }()
	all := checkTriggers(ctx, cfg, s)
	health, err := s.Health(ctx)
	if err != nil {
		return append(all, finding{"channels", broke, "What the channels told cannot be read: " + err.Error()})
	}
	for _, h := range health {
		if slices.Contains(config.BotNames(), string(h.Channel)) && cfg.Bots[h.Channel] == nil {
			continue // it was taken out of the configuration
		}
		all = append(all, healthFinding(h))
	}
	backlog, err := s.Backlog(ctx)
	if err != nil {
		return append(all, finding{"channels", broke, "What waits in the channels cannot be read: " + err.Error()})
	}
	for _, b := range backlog {
		if b.Dead > 0 {
			all = append(all, finding{"channel " + string(b.Channel), broke, views.GivenUp(b.Dead) + reasonGivenUp(ctx, s, b.Channel) + " Look under Settings, Channels, and press Retry there."})
		}
	}
	return all
}

// owners finds people by their names.
type owners interface {
	UserByName(ctx context.Context, name string) (people.User, error)
}

// checkTriggers says whose triggers can start nothing.
func checkTriggers(ctx context.Context, cfg *config.Config, s owners) []finding {
	var all []finding
	for _, t := range cfg.Triggers {
		name := "trigger " + t.Name
		u, err := s.UserByName(ctx, t.Owner)
		switch {
		case errors.Is(err, orchestrator.ErrNotFound):
			all = append(all, finding{name, broke, "It belongs to " + t.Owner + ", and there is no such person, so it starts nothing. Run gatehouse user add " + t.Owner + " --role operator, or name another owner."})
		case err != nil:
			all = append(all, finding{name, broke, "Its owner cannot be looked up: " + err.Error()})
		case u.Disabled:
			all = append(all, finding{name, broke, "It belongs to " + t.Owner + ", who is disabled, so it starts nothing. Name another owner."})
		case !people.As(u, nil).Has(people.TasksWrite): // as intake asks before it starts anything
			all = append(all, finding{name, broke, "It belongs to " + t.Owner + ", who may not start tasks: that takes the role operator or admin, so it starts nothing. Run gatehouse user roles " + t.Owner +
				" --role operator with the roles to be kept, or name another owner."})
		default:
			all = append(all, finding{name, fine, console.Parts(string(t.Kind), "owner "+t.Owner)})
		}
	}
	return all
}

// deadLetters reads what was given up.
type deadLetters interface {
	DeadLetters(ctx context.Context, f approval.DeadFilter) (approval.DeadPage, error)
}

// reasonGivenUp says where one of the messages should have gone and why it did not; ""
// when that cannot be read.
func reasonGivenUp(ctx context.Context, from deadLetters, channel origin.Channel) string {
	page, err := from.DeadLetters(ctx, approval.DeadFilter{Channel: channel, Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return ""
	}
	one := page.Items[0]
	to := ""
	if one.Address != "" {
		to = " to " + console.Line(one.Address)
	}
	return fmt.Sprintf(" One%s: %s.", to, strings.TrimRight(console.Line(one.Error), ". "))
}

func healthFinding(h approval.Health) finding {
	name := "channel " + string(h.Channel)
	since := h.Since.UTC().Format("2006-01-02 15:04 UTC")
	if h.Bad() {
		return finding{name, broke, fmt.Sprintf("%s (%s since %s, node %s)", views.ChannelTrouble(h.Channel, h.State, h.Detail), h.State, since, h.Node)}
	}
	if h.State == approval.Waiting {
		return finding{name, odd, fmt.Sprintf("It asked to be left alone for a while, at %s. %s", since, h.Detail)}
	}
	return finding{name, fine, fmt.Sprintf("%s since %s, node %s", h.State, since, h.Node)}
}
