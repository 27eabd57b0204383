package views_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	settingsview "gatehouse/views/settings"
)

func channelsPage() settingsview.ChannelsPage {
	return settingsview.ChannelsPage{Chrome: chrome(views.SectionSettings, "Channels", views.ChannelsPath), Admin: true, MaySee: true, Dead: 3, Older: views.ChannelsPath + "?after=x",
		Channels: []views.ChannelRow{
			{Name: "inbox"}, {Name: "chat", Due: 2},
			{Name: "telegram", State: "conflict", Detail: "Another program is polling this bot (409). Cards wait and will be sent; stop the other one, or make a new token.",
				Node: "node-1", Since: now.Add(-time.Hour), Due: 12, Dead: 3, Links: true, Tests: true, Accounts: []views.AccountRow{{ID: "1001", Name: "ann_tg\u202e"}}},
			{Name: "webhook", State: "connected", Since: now.Add(-48 * time.Hour), Node: "node-1"},
		},
		Letters: []approval.DeadLetter{
			{Key: "card/apr_1/telegram/-100123", Kind: "card", Channel: "telegram", Address: "-100123", RequestID: aprID, Title: "Fix <b>retry</b>\u202e", State: "pending",
				Error: "Forbidden: bot was kicked from the supergroup chat", Attempts: 1},
			{Key: "notice/ntc_1", Kind: "notice", Channel: "telegram", Address: "1001", RequestID: aprID, Title: "Bump deps", State: "pending", Error: "connection refused", Attempts: 12},
			{Key: "digest/dig_1", Kind: "digest", Channel: "telegram", Address: "-100123:7", Error: strings.Repeat("very long reason ", 20), Attempts: 12},
			{Key: "report/tsk_1/telegram/1001", Kind: "report", Channel: "telegram", Address: "1001", TaskID: "tsk_01k9zzzzzzzzzzzzzzzz7f3k9q", Title: "Count <b>the stars", Error: "bot was blocked by the user", Attempts: 1},
		}}
}

func channelsCode() settingsview.ChannelsPage {
	p := channelsPage()
	p.Channels[2] = views.ChannelRow{Name: "telegram", State: "connected", Links: true, Tests: true, Code: "7k3m9qxw2p", Bot: "gatehouse_bot"}
	p.Letters, p.Older, p.Dead, p.Channels = nil, "", 0, p.Channels[:3]
	return p
}

func TestOnlyAnAdminIsOfferedToTryAgain(t *testing.T) {
	p := channelsPage()
	if body := render(t, settingsview.Channels(p)); strings.Count(body, ">Retry<") != 4 || !strings.Contains(body, `href="/delegations/tsk_01k9zzzzzzzzzzzzzzzz7f3k9q"`) || !strings.Contains(body, "message about a task") || !strings.Contains(body, "Retry all") || !strings.Contains(body, "Send a test card") {
		t.Error("an admin misses a button")
	}
	p.Admin = false
	if body := render(t, settingsview.Channels(p)); strings.Contains(body, ">Retry") || strings.Contains(body, "Send a test card") || !strings.Contains(body, "bot was kicked") {
		t.Error("others are offered what they may not do, or miss the reason")
	}
	p.MaySee = false
	if body := render(t, settingsview.Channels(p)); strings.Contains(body, "Bump deps") {
		t.Error("who may not see requests sees their titles")
	}
}

// The code must stay until it is read: the page does not replace itself meanwhile.
func TestALinkCodeStaysOnThePage(t *testing.T) {
	body := render(t, settingsview.Channels(channelsCode()))
	if !strings.Contains(body, "https://t.me/gatehouse_bot?start=7k3m9qxw2p") || !strings.Contains(body, "/start 7k3m9qxw2p") {
		t.Error("the code is not on the page")
	}
	if strings.Contains(body, `id="channels"`) {
		t.Error("the page with the code replaces itself")
	}
	if !strings.Contains(render(t, settingsview.Channels(channelsPage())), `id="channels"`) {
		t.Error("the page without a code is not live")
	}
}

func TestTabsThatARoleCannotUseAreAbsent(t *testing.T) {
	p := channelsPage()
	p.Person = person("dora", people.Operator)
	if strings.Contains(render(t, settingsview.Channels(p)), "/settings/policy") {
		t.Error("an operator is led to the policy")
	}
}
