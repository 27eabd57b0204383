package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/bot"
	"gatehouse/approval/sqlstore"
	"gatehouse/approval/telegram"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/store"
)

func TestDoctorTellsOfChannels(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Database: "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db"), Bots: map[origin.Channel]bot.Section{origin.Telegram: &telegram.Section{}}}
	if got := checkChannels(t.Context(), cfg); len(got) != 0 {
		t.Fatalf("a database that is not there: %+v", got)
	}
	s, err := sqlstore.Open(t.Context(), cfg.Database, store.Options{Node: "one", Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct{ state, detail, want, says string }{
		{approval.Connected, "", fine, "connected since"},
		{approval.Waiting, "", odd, "left alone"},
		{approval.BadToken, "", broke, "Put a new one into the configuration"},
		{approval.Conflict, "Another program polls this bot.", broke, "Telegram: Another program polls this bot. (conflict since"},
	} {
		if err := s.SetHealth(t.Context(), "telegram", c.state, c.detail); err != nil {
			t.Fatal(err)
		}
		got := checkChannels(t.Context(), cfg)
		if len(got) != 1 || got[0].State != c.want || !strings.Contains(got[0].Text, c.says) {
			t.Errorf("%s: %+v, want %s and %q", c.state, got, c.want, c.says)
		}
	}
	cfg.Bots = nil
	if got := checkChannels(t.Context(), cfg); len(got) != 0 {
		t.Errorf("a bot that was taken out of the configuration: %+v", got)
	}
}

// letters are what was given up.
type letters struct {
	all []approval.DeadLetter
	err error
}

func (l letters) DeadLetters(context.Context, approval.DeadFilter) (approval.DeadPage, error) {
	return approval.DeadPage{Items: l.all}, l.err
}

func TestDoctorSaysWhyAMessageWasGivenUp(t *testing.T) {
	t.Parallel()
	one := approval.DeadLetter{Channel: "telegram", Address: "-100123", Error: "Bad Request:\nchat not found."}
	for want, l := range map[string]letters{
		" One to -100123: Bad Request: chat not found.": {all: []approval.DeadLetter{one}},
		"":              {err: errors.New("no answer")},
		" One: no way.": {all: []approval.DeadLetter{{Error: "no way"}}},
	} {
		if got := reasonGivenUp(t.Context(), l, "telegram"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
