package handlers

import (
	"context"

	"gatehouse/approval"
	"gatehouse/views"
)

// ChannelStates reads how each of the channels does. What is known of others, which
// are not configured any more, is left out.
func ChannelStates(ctx context.Context, o Outbox, channels []Place) ([]ChannelState, error) {
	health, err := o.Health(ctx)
	if err != nil {
		return nil, err
	}
	backlog, err := o.Backlog(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]ChannelState, len(channels))
	for i, ch := range channels {
		all[i].Place = ch
		for _, h := range health {
			if h.Channel == ch.Name {
				all[i].Health = h
			}
		}
		for _, b := range backlog {
			if b.Channel == ch.Name {
				all[i].Backlog = b
			}
		}
	}
	return all, nil
}

// ChannelState is a channel with how it does.
type ChannelState struct {
	Place
	approval.Health
	approval.Backlog
}

// ChannelProblems are the lines on top of the overview about channels: what is wrong
// with the other side, and what was given up.
func ChannelProblems(states []ChannelState) []views.Problem {
	var all []views.Problem
	dead := 0
	for _, s := range states {
		if s.Bad() {
			all = append(all, views.Problem{Text: views.ChannelTrouble(s.Name, s.State, s.Detail), Href: views.ChannelsPath, Link: "Channels"})
		}
		dead += s.Dead
	}
	if dead > 0 {
		all = append(all, views.Problem{Text: views.GivenUp(dead), Href: views.ChannelsPath + "#given-up", Link: "Look and try again"})
	}
	return all
}
