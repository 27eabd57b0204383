package settings

import (
	"net/http"
	"net/url"
	"strconv"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/settings"

	"github.com/labstack/echo/v4"
)

// ChannelsPage answers GET /settings/channels.
func (p *Pages) ChannelsPage(c echo.Context) error {
	return p.channelsPage(c, http.StatusOK, func(*view.ChannelsPage) {})
}

// channelsPage draws the page; with changes it for what a form has just done.
func (p *Pages) channelsPage(c echo.Context, status int, with func(*view.ChannelsPage)) error {
	f, err := p.Begin(c, views.SectionSettings, "Channels")
	if err != nil {
		return err
	}
	f.Chrome.Path = views.ChannelsPath + queryOf(c)
	page := view.ChannelsPage{Chrome: f.Chrome, Admin: f.Who.Has(people.AdminScope)}
	accounts, err := p.Links.Accounts(f.Ctx, f.Who.User.ID)
	if err != nil {
		return err
	}
	states, err := handlers.ChannelStates(f.Ctx, p.Outbox, p.Places())
	if err != nil {
		return err
	}
	for _, s := range states {
		row := views.ChannelRow{Name: s.Name, State: s.State, Detail: s.Detail, Node: s.Node, Since: s.Since, Due: s.Due, Dead: s.Dead,
			Links: s.Bot != nil, Tests: s.Test != nil}
		for _, a := range accounts {
			if a.Channel == s.Name {
				row.Accounts = append(row.Accounts, views.AccountRow{ID: strconv.FormatInt(a.ID, 10), Name: a.Name})
			}
		}
		page.Channels, page.Dead = append(page.Channels, row), page.Dead+s.Dead
	}
	if f.Who.Has(people.ApprovalsRead) {
		if err := p.deadLetters(c, f, &page); err != nil {
			return err
		}
	}
	with(&page)
	return handlers.Render(c, status, view.Channels(page))
}

// queryOf keeps the place in the list when the page asks for itself again.
func queryOf(c echo.Context) string {
	if after := c.QueryParam("after"); after != "" {
		return "?after=" + url.QueryEscape(after)
	}
	return ""
}

// deadLetters lists a page of what was given up.
func (p *Pages) deadLetters(c echo.Context, f *handlers.Frame, page *view.ChannelsPage) error {
	after := c.QueryParam("after")
	found, err := p.Outbox.DeadLetters(f.Ctx, approval.DeadFilter{After: after})
	if err != nil {
		return err
	}
	page.MaySee, page.Later, page.Letters = true, after != "", found.Items
	if found.Next != "" {
		page.Older = views.ChannelsPath + "?after=" + url.QueryEscape(found.Next)
	}
	return nil
}

// channel finds the channel that a form names.
func (p *Pages) channel(c echo.Context) (handlers.Place, error) {
	name := origin.Channel(c.FormValue("channel"))
	for _, ch := range p.Places() {
		if ch.Name == name {
			return ch, nil
		}
	}
	return handlers.Place{}, handlers.Refuse(orchestrator.CodeBadRequest, "There is no channel of that name. It may have been taken out of the configuration; look at the list.")
}

// RetryDelivery answers POST /settings/channels/retry: one dead letter, all of a
// channel, or all.
func (p *Pages) RetryDelivery(c echo.Context) error {
	who, _ := handlers.Who(c)
	f := approval.DeadFilter{Channel: origin.Channel(c.FormValue("channel")), Key: c.FormValue("letter")}
	if f.Key == "" && f.Channel == "" && c.FormValue("all") == "" {
		return handlers.Refuse(orchestrator.CodeBadRequest, "The form names nothing to try again. Open the list and press a button there.")
	}
	if _, err := p.Outbox.Retry(c.Request().Context(), who.User.Name, f); err != nil {
		return p.channelsRefused(c, err)
	}
	return handlers.SeeOther(c, views.ChannelsPath, "tried")
}

// TestChannel answers POST /settings/channels/test: it sends a test card.
func (p *Pages) TestChannel(c echo.Context) error {
	ch, err := p.channel(c)
	if err != nil {
		return err
	}
	if ch.Test == nil {
		return handlers.Refuse(orchestrator.CodeBadRequest, "This channel has no test card.")
	}
	who, _ := handlers.Who(c)
	ctx := c.Request().Context()
	mine, err := p.Links.Accounts(ctx, who.User.ID)
	if err != nil {
		return err
	}
	if err := ch.Test(ctx, mine); err != nil {
		return p.channelsPage(c, http.StatusOK, func(page *view.ChannelsPage) {
			page.Flash = &views.Flash{Bad: true, Text: "The test card did not arrive. " + err.Error()}
		})
	}
	return handlers.SeeOther(c, views.ChannelsPath, "tested")
}

// LinkAccount answers POST /settings/channels/link with the page that shows a new code.
// The code is in no address and in no log.
func (p *Pages) LinkAccount(c echo.Context) error {
	ch, err := p.channel(c)
	if err != nil {
		return err
	}
	if ch.Bot == nil {
		return handlers.Refuse(orchestrator.CodeBadRequest, "Accounts of this channel cannot be linked.")
	}
	who, _ := handlers.Who(c)
	ctx := c.Request().Context()
	code, err := p.Links.CreateLinkCode(ctx, who.User.Name, ch.Name, who.User.ID)
	if err != nil {
		return p.channelsRefused(c, err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return p.channelsPage(c, http.StatusOK, func(page *view.ChannelsPage) {
		for i := range page.Channels {
			if page.Channels[i].Name == ch.Name {
				page.Channels[i].Code, page.Channels[i].Bot = code, ch.Bot(ctx)
			}
		}
	})
}

// UnlinkAccount answers POST /settings/channels/unlink: one of the reader's own accounts.
func (p *Pages) UnlinkAccount(c echo.Context) error {
	who, _ := handlers.Who(c)
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
			return handlers.SeeOther(c, views.ChannelsPath, "unlinked")
		}
	}
	return handlers.Refuse(orchestrator.CodeNotFound, "You have no linked account of that number. It may have been unlinked already.")
}

// channelsRefused draws the page with the reason why a form did nothing.
func (p *Pages) channelsRefused(c echo.Context, err error) error {
	f := handlers.FaultOf(err)
	if f.ID != "" {
		return err
	}
	return p.channelsPage(c, f.Status, func(page *view.ChannelsPage) { page.Flash = &views.Flash{Bad: true, Text: f.Message} })
}
