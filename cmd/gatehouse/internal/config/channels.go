package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gatehouse/approval/bot"
	"gatehouse/approval/telegram"
	"gatehouse/approval/webhook"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/origin"
)

// Channels are where requests are shown besides the web. A two-way channel is a field with the section of its package.
type Channels struct {
	Telegram *telegram.Section `yaml:"telegram"`
	Webhooks []Webhook         `yaml:"webhooks"`
}

// Webhook is told of requests and of the ends of tasks, one way.
type Webhook struct {
	Name         string `yaml:"name"`
	URL          string `yaml:"url"`
	Format       string `yaml:"format" offers:"slack standard"`
	Secret       string `yaml:"secret"`
	AllowPrivate bool   `yaml:"allow_private"`
	// Events are what it is told of; absent: approval.*
	Events []string `yaml:"events" offers:"approval.* task.* task.completed task.failed task.cancelled"`
}

// botKinds are the fields of Channels that are sections of bots: another one is nothing but another field.
func botKinds() []reflect.StructField {
	section := reflect.TypeFor[bot.Section]()
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Channels]()), func(f reflect.StructField) bool { return !f.Type.Implements(section) })
}

// keyOf is what a field is called in the file.
func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// BotNames are the channels that may have a bot.
func BotNames() []string {
	return each.Of(botKinds(), keyOf)
}

// bots completes and checks the sections that the file has.
func (b *builder) bots() map[origin.Channel]bot.Section {
	sections := map[origin.Channel]bot.Section{}
	for _, f := range botKinds() {
		field := reflect.ValueOf(b.file.Channels).FieldByIndex(f.Index)
		written, ok := field.Interface().(bot.Section)
		if !ok || field.IsNil() {
			continue
		}
		where := at("channels", keyOf(f))
		section, faults := written.Check(bot.Server{PublicURL: b.file.Server.PublicURL})
		for _, fault := range faults {
			said := fault.Text
			if fault.Value != "" {
				said = fmt.Sprintf("%q %s", masked(fault.Value), fault.Text)
			}
			b.bad(append(slices.Clone(where), fault.At...), "%s", said)
		}
		sections[origin.Channel(keyOf(f))] = section
	}
	return sections
}

// botAtStart reports whether a key of a bot is read at the start only.
func botAtStart(key string) bool {
	for _, f := range botKinds() {
		rest, ok := strings.CutPrefix(key, "channels."+keyOf(f)+".")
		if !ok {
			continue
		}
		for of := range f.Type.Elem().Fields() {
			if keyOf(of) == rest {
				return of.Tag.Get("reload") == ""
			}
		}
	}
	return false
}

// webhooks reads who is told, one way.
func (b *builder) webhooks() []Webhook {
	seen := map[string]bool{}
	for i, w := range b.file.Channels.Webhooks {
		where := at("channels", "webhooks", i)
		if seen[w.Name] {
			b.bad(append(where, "name"), "there are two webhooks %q. Give each a name of its own: pages and cards call it by that.", w.Name)
		}
		seen[w.Name] = true
		if err := w.Target().Check(); err != nil {
			b.bad(where, "%v.", err)
		}
	}
	return b.file.Channels.Webhooks
}

// Target is the webhook as its channel takes it.
func (w Webhook) Target() webhook.Target {
	return webhook.Target{Name: w.Name, URL: w.URL, Format: w.Format, Secret: w.Secret, AllowPrivate: w.AllowPrivate, Events: w.Events}
}
