package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// Outbox is what the settings ask of the gateway about deliveries.
type Outbox interface {
	Health(ctx context.Context) ([]approval.Health, error)
	Backlog(ctx context.Context) ([]approval.Backlog, error)
	DeadLetters(ctx context.Context, f approval.DeadFilter) (approval.DeadPage, error)
	Retry(ctx context.Context, actor string, f approval.DeadFilter) (int, error)
}

// Links is what the settings ask about the accounts of a person; the store has it.
type Links interface {
	// CreateLinkCode makes a code that links one account, once, within 10 minutes.
	CreateLinkCode(ctx context.Context, actor string, channel origin.Channel, userID string) (string, error)
	Accounts(ctx context.Context, userID string) ([]people.Account, error)
	Unlink(ctx context.Context, actor string, channel origin.Channel, id int64) error
}

// Place is a channel as the settings know it.
type Place struct {
	Name origin.Channel
	// Bot is the name of the bot with which people link their account, "" while it is
	// not known; nil where there is nothing to link.
	Bot func(ctx context.Context) string
	// Test sends a test card, to the given accounts where the configuration names no
	// other place; nil where there is nothing to test.
	Test func(ctx context.Context, accounts []people.Account) error
}

// ChannelState is a channel with how it does.
type ChannelState struct {
	Place
	approval.Health
	approval.Backlog
}

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

// channelProblems are the lines on top of the overview about channels: what is wrong
// with the other side, and what was given up.
func channelProblems(states []ChannelState) []views.Problem {
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

// ChannelsPage answers GET /settings/channels.
func (p *Pages) ChannelsPage(c echo.Context) error {
	return p.channelsPage(c, http.StatusOK, func(*views.ChannelsPage) {})
}

// channelsPage draws the page; with changes it for what a form has just done.
func (p *Pages) channelsPage(c echo.Context, status int, with func(*views.ChannelsPage)) error {
	f, err := p.begin(c, views.SectionSettings, "Channels")
	if err != nil {
		return err
	}
	f.chrome.Path = views.ChannelsPath + queryOf(c)
	page := views.ChannelsPage{Chrome: f.chrome, Admin: f.who.Has(people.AdminScope)}
	accounts, err := p.Links.Accounts(f.ctx, f.who.User.ID)
	if err != nil {
		return err
	}
	states, err := ChannelStates(f.ctx, p.Outbox, p.Places())
	if err != nil {
		return err
	}
	for _, s := range states {
		row := views.ChannelRow{Name: s.Name, State: s.State, Detail: s.Detail, Node: s.Node, Since: s.Since, Due: s.Due, Dead: s.Dead,
			Links: s.Bot != nil, Tests: s.Test != nil}
		for _, a := range accounts {
			if a.Channel == s.Name {
				row.Accounts = append(row.Accounts, views.AccountRow{ID: strconv.FormatInt(a.ID, 10), Name: a.Name, At: a.LinkedAt})
			}
		}
		page.Channels, page.Dead = append(page.Channels, row), page.Dead+s.Dead
	}
	if f.who.Has(people.ApprovalsRead) {
		if err := p.deadLetters(c, f, &page); err != nil {
			return err
		}
	}
	with(&page)
	return render(c, status, views.Channels(page))
}

// queryOf keeps the place in the list when the page asks for itself again.
func queryOf(c echo.Context) string {
	if after := c.QueryParam("after"); after != "" {
		return "?after=" + url.QueryEscape(after)
	}
	return ""
}

// deadLetters lists a page of what was given up.
func (p *Pages) deadLetters(c echo.Context, f *frame, page *views.ChannelsPage) error {
	after := c.QueryParam("after")
	found, err := p.Outbox.DeadLetters(f.ctx, approval.DeadFilter{After: after})
	if err != nil {
		return err
	}
	page.MaySee, page.Later = true, after != ""
	for _, l := range found.Items {
		page.Letters = append(page.Letters, views.LetterRow{Key: l.Key, Kind: l.Kind, Channel: l.Channel, Address: l.Address, RequestID: l.RequestID,
			Title: l.Title, State: string(l.State), Error: l.Error, Attempts: l.Attempts})
	}
	if found.Next != "" {
		page.Older = views.ChannelsPath + "?after=" + url.QueryEscape(found.Next)
	}
	return nil
}

// channel finds the channel that a form names.
func (p *Pages) channel(c echo.Context) (Place, error) {
	name := origin.Channel(c.FormValue("channel"))
	for _, ch := range p.Places() {
		if ch.Name == name {
			return ch, nil
		}
	}
	return Place{}, Refuse(orchestrator.CodeBadRequest, "There is no channel of that name. It may have been taken out of the configuration; look at the list.")
}

// RetryDelivery answers POST /settings/channels/retry: one dead letter, all of a
// channel, or all.
func (p *Pages) RetryDelivery(c echo.Context) error {
	who, _ := Who(c)
	f := approval.DeadFilter{Channel: origin.Channel(c.FormValue("channel")), Key: c.FormValue("letter")}
	if f.Key == "" && f.Channel == "" && c.FormValue("all") == "" {
		return Refuse(orchestrator.CodeBadRequest, "The form names nothing to try again. Open the list and press a button there.")
	}
	if _, err := p.Outbox.Retry(c.Request().Context(), who.User.Name, f); err != nil {
		return p.channelsRefused(c, err)
	}
	return seeOther(c, views.ChannelsPath, "tried")
}

// TestChannel answers POST /settings/channels/test: it sends a test card.
func (p *Pages) TestChannel(c echo.Context) error {
	ch, err := p.channel(c)
	if err != nil {
		return err
	}
	if ch.Test == nil {
		return Refuse(orchestrator.CodeBadRequest, "This channel has no test card.")
	}
	who, _ := Who(c)
	ctx := c.Request().Context()
	mine, err := p.Links.Accounts(ctx, who.User.ID)
	if err != nil {
		return err
	}
	if err := ch.Test(ctx, mine); err != nil {
		return p.channelsPage(c, http.StatusOK, func(page *views.ChannelsPage) {
			page.Flash = &views.Flash{Bad: true, Text: "The test card did not arrive. " + err.Error()}
		})
	}
	return seeOther(c, views.ChannelsPath, "tested")
}

// LinkAccount answers POST /settings/channels/link with the page that shows a new code.
// The code is in no address and in no log.
func (p *Pages) LinkAccount(c echo.Context) error {
	ch, err := p.channel(c)
	if err != nil {
		return err
	}
	if ch.Bot == nil {
		return Refuse(orchestrator.CodeBadRequest, "Accounts of this channel cannot be linked.")
	}
	who, _ := Who(c)
	ctx := c.Request().Context()
	code, err := p.Links.CreateLinkCode(ctx, who.User.Name, ch.Name, who.User.ID)
	if err != nil {
		return p.channelsRefused(c, err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return p.channelsPage(c, http.StatusOK, func(page *views.ChannelsPage) {
		for i := range page.Channels {
			if page.Channels[i].Name == ch.Name {
				page.Channels[i].Code, page.Channels[i].Bot = code, ch.Bot(ctx)
			}
		}
	})
}

// UnlinkAccount answers POST /settings/channels/unlink: one of the reader's own accounts.
func (p *Pages) UnlinkAccount(c echo.Context) error {
	who, _ := Who(c)
	ctx := c.Request().Context()
	mine, err := p.Links.Accounts(ctx, who.User.ID)
	if err != nil {
		return err
	}
	for _, a := range mine {
		if a.Channel == origin.Channel(c.FormValue("channel")) && strconv.FormatInt(a.ID, 10) == c.FormValue("account") {
			if err := p.Links.Unlink(ctx, who.User.Name, a.Channel, a.ID); err != nil {
				return err
			}
			return seeOther(c, views.ChannelsPath, "unlinked")
		}
	}
	return Refuse(orchestrator.CodeNotFound, "You have no linked account of that number. It may have been unlinked already.")
}

// channelsRefused draws the page with the reason why a form did nothing.
func (p *Pages) channelsRefused(c echo.Context, err error) error {
	f := FaultOf(err)
	if f.ID != "" {
		return err
	}
	return p.channelsPage(c, f.Status, func(page *views.ChannelsPage) { page.Flash = &views.Flash{Bad: true, Text: f.Message} })
}
