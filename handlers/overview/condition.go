package overview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/overview"
)

// What is too long, or too little: nodes say that they live and seals are made each 5
// seconds, and a checkout with its objects may well take some hundred megabytes.
const (
	silentAfter = 30 * time.Second
	lateSeal    = time.Minute
	littleSpace = 1 << 30 // bytes
)

// condition fills the overview's line about the house, and what is wrong on top of it.
func (p *Pages) condition(f *handlers.Frame, page *view.OverviewPage) error {
	breakers, err := p.Sums.Breakers(f.Ctx)
	if err != nil {
		return err
	}
	for _, b := range breakers {
		if b.State != "closed" {
			page.House.Breakers = append(page.House.Breakers, b)
		}
	}
	if p.Outbox != nil {
		states, err := handlers.ChannelStates(f.Ctx, p.Outbox, p.Places())
		if err != nil {
			return err
		}
		page.Problems = append(page.Problems, handlers.ChannelProblems(states)...)
		for _, s := range states {
			if s.State != "" {
				page.House.Channels = append(page.House.Channels, views.ChannelRow{Name: s.Name, State: s.State})
			}
		}
	}
	queues, err := p.Sums.LandingQueues(f.Ctx)
	if err != nil {
		return err
	}
	for _, q := range queues {
		if q.HeldUp > 0 {
			page.Problems = append(page.Problems, views.Problem{Href: views.WaitsPath, Link: "Who waits for whom", Text: handlers.QueueSays(q) + "."})
		}
	}
	if p.Condition == nil {
		return nil
	}
	c, err := p.Condition(f.Ctx)
	if err == nil {
		nodesAndDisk(f, c, page)
	}
	return err
}

// nodesAndDisk says of each node, the seals and the disk what is wrong with it.
func nodesAndDisk(f *handlers.Frame, c handlers.Condition, page *view.OverviewPage) {
	now := f.Chrome.Now
	for _, n := range c.Nodes {
		if now.Sub(n.Seen) <= silentAfter {
			page.House.Nodes++
			continue
		}
		page.Problems = append(page.Problems, views.Problem{Href: views.WaitsPath, Link: "Who waits for whom",
			Text: fmt.Sprintf("Node %s has not been heard of for %s. What it worked on is taken up by others. Start it again, or leave it: after a day it is forgotten.", n.Name, views.Duration(now.Sub(n.Seen)))})
	}
	if c.Behind != "" {
		page.Problems = append(page.Problems, views.Problem{Href: views.ConfigPath, Link: "Configuration", Text: c.Behind})
	}
	page.House.Sealed = c.Sealed
	if !c.Unsealed.IsZero() && now.Sub(c.Unsealed) > lateSeal {
		problem := views.Problem{Text: fmt.Sprintf("The history has not been sealed for %s. What happened since is stored, but a change of it would not show. Look into the server's log for housekeeping.", views.Duration(now.Sub(c.Unsealed)))}
		if f.Who.Has(people.AuditRead) {
			problem.Href, problem.Link = views.InsightsPath, "Insights"
		}
		page.Problems = append(page.Problems, problem)
	}
	if c.Free > 0 && c.Free < littleSpace {
		page.Problems = append(page.Problems, views.Problem{Href: "/settings", Link: "Settings",
			Text: fmt.Sprintf("The disk with the data folder has %s left. Runs fail when it is full: make room, or move the folder (data: in gatehouse.yaml).", views.Bytes(c.Free))})
	}
}

// midnight is when today began, in the zone of server.timezone.
func (p *Pages) midnight() time.Time {
	zone := cmp.Or(p.Gateway.Config().Location, time.UTC)
	now := p.Now().In(zone)
	return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, zone)
}

// activeStates are those in which a task is worked on, the busiest first; one that waits
// for people comes last.
func activeStates() []orchestrator.State {
	busy := []orchestrator.State{orchestrator.Running, orchestrator.Landing, orchestrator.Checking, orchestrator.Waiting, orchestrator.Queued, orchestrator.AwaitingApproval}
	for _, s := range handlers.LiveStates() {
		if !slices.Contains(busy, s) {
			busy = append(busy, s)
		}
	}
	return busy
}
