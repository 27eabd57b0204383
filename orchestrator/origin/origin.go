// Package origin is where things come from: the channels through which people and programs
// speak to Gatehouse, and the origin of a task. Everything that says "on the web" or "by
// webhook ci-failed" asks here.
//
// It imports the standard library only.
package origin

import "strings"

// Origin is how a task came in: through a channel, or by a trigger, which has a name.
// Written out it is "web", "telegram" or "webhook ci-failed"; that form is stored, published
// and given to agents. Its zero value is a task of which nobody said that.
type Origin struct {
	Kind Channel
	Name string // the trigger's, "" where Kind is no trigger
}

// From is the origin of what a person or program sends through a channel.
func From(c Channel) Origin { return Origin{Kind: c} }

// Trigger is the origin of what a webhook or a schedule of that name makes.
func Trigger(kind Channel, name string) Origin { return Origin{Kind: kind, Name: name} }

// Parse reads the written form. A channel that this version does not know stays as it is.
func Parse(text string) Origin {
	if kind, name, ok := strings.Cut(text, " "); ok && name != "" && Channel(kind).Triggers() {
		return Origin{Kind: Channel(kind), Name: name}
	}
	return Origin{Kind: Channel(text)}
}

// String is the written form.
func (o Origin) String() string {
	if o.Name == "" {
		return string(o.Kind)
	}
	return string(o.Kind) + " " + o.Name
}

func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o *Origin) UnmarshalText(text []byte) error {
	*o = Parse(string(text))
	return nil
}

// Trigger is the name of the trigger, "" where a person or program asked by themselves.
func (o Origin) Trigger() string {
	if !o.Kind.Triggers() {
		return ""
	}
	return o.Name
}

// Words say it of a task: "on the web", "by webhook ci-failed".
func (o Origin) Words() string {
	if o.Trigger() != "" {
		return "by " + o.String()
	}
	return o.Kind.Words()
}
