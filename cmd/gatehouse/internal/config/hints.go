package config

import (
	"fmt"
	"os"
)

// Hints are the rules that work but that some requester could never satisfy, each with
// its place. They need the text of the file once more: a Config keeps no places.
func (c *Config) Hints() []string {
	found, handed := c.Policy.Hints(c.Groups, c.FourEyes), c.Handovers.Hints(c.Groups, c.FourEyes)
	trusting := c.trusting()
	if len(found)+len(handed)+len(trusting) == 0 || c.Path == "" {
		return nil
	}
	d := &document{name: c.Path}
	if text, err := os.ReadFile(c.Path); err == nil {
		// What the variables hold moves no rule to another place.
		if read, _, err := parse(c.Path, text, nowhere); err == nil {
			d = read
		}
	}
	hints := make([]string, 0, len(found)+len(handed))
	for _, p := range found {
		hints = append(hints, d.at(d.find("approval", "rules", p.Rule, p.Field), p.Message).Error())
	}
	for _, p := range handed {
		hints = append(hints, d.at(d.find("approval", "handovers", p.Rule, p.Field), p.Message).Error())
	}
	for _, name := range trusting {
		hints = append(hints, d.at(d.find("agents", name, "trust_checkout"), fmt.Sprintf(
			"agent %s has trust_checkout and nobody is asked before it works, so any agent that hands it work chooses what it runs. Add ask_first: true, or remove trust_checkout.", name)).Error())
	}
	return hints
}

// trusting are the agents that run what their callers left them, with nobody asked first.
func (c *Config) trusting() []string {
	var names []string
	for _, a := range c.Engine.Agents.All() {
		if a.TrustCheckout && !a.AskFirst {
			names = append(names, a.Name)
		}
	}
	return names
}
