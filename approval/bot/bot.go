// Package bot is what a channel with settings of its own gives to the program: it is checked, shown, started and
// reloaded without the program knowing which service it speaks to.
//
// A channel's package has a [Section], which stands under channels in the configuration, and the [Bot] that it starts.
// It may import approval, the engine that bots send work to, and leaves.
package bot

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// Section is a pointer to a struct with the keys of a bot, as yaml tags name them. A key with the tag words takes one of
// these; one with the tag reload follows a reload, and every other is read at the start only.
type Section interface {
	// Check returns the section with what holds where nothing is written, and what is wrong. The section itself stays.
	Check(s Server) (Section, []Fault)
	// Words say what was understood, without secrets.
	Words() []string
	// Start makes the bot of a section that Check returned. It asks nobody yet.
	Start(p Parts) (Bot, error)
}

// Fault is a mistake in a section: Value, which may have a secret in it, and what to do.
type Fault struct {
	At    []any // the key and what is below it; none is the section itself
	Value string
	Text  string
}

// Server is what a bot tells of the server.
type Server struct {
	PublicURL string         // where people open Gatehouse
	Zone      *time.Location // of times that one person reads
}

// Parts are what a bot works with.
type Parts struct {
	Server
	Gateway *approval.Gateway
	Engine  *orchestrator.Engine
	Store   any // the database, which a channel asks for its rows by an interface of its own
	Diff    func(ctx context.Context, r approval.Request) (string, error)
	Health  func(ctx context.Context, state, detail string) // keeps how the other side does
	Node    string                                          // unique among processes
	Log     *slog.Logger
}

// Bot shows requests and takes what people do there.
type Bot interface {
	Channel() approval.Channel
	// Take takes the keys of a section that follow a reload.
	Take(s Section, server Server)
	// Run receives what people do until ctx ends, whose error it may return.
	Run(ctx context.Context) error
	// Hook takes what the service posts to /hooks/NAME; nil where the bot asks the service.
	Hook() http.Handler
	// Name is what the bot is called there, "" where the service does not say.
	Name(ctx context.Context) string
	// Test sends a test card to where cards go; mine are the accounts of whoever asks.
	Test(ctx context.Context, mine []people.Account) error
}

// Running is a bot by its key under channels.
type Running struct {
	Bot
	Key origin.Channel
}

// SameAtStart reports whether two sections of one channel differ at most in what follows a reload. Either may be nil.
func SameAtStart(a, b Section) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	is, was := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range is.NumField() {
		if is.Type().Field(i).Tag.Get("reload") == "" && !reflect.DeepEqual(is.Field(i).Interface(), was.Field(i).Interface()) {
			return false
		}
	}
	return true
}
