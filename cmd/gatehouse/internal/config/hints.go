package config

import "os"

// Hints are the rules that work but that some requester could never satisfy, each with
// its place. They need the text of the file once more: a Config keeps no places.
func (c *Config) Hints() []string {
	found, handed := c.Policy.Hints(c.Groups, c.FourEyes), c.Handovers.Hints(c.Groups, c.FourEyes)
	if len(found)+len(handed) == 0 || c.Path == "" {
		return nil
	}
	d := &document{name: c.Path}
	if text, err := os.ReadFile(c.Path); err == nil {
		// What the variables hold moves no rule to another place.
		if read, _, err := parse(c.Path, text, func(string) (string, bool) { return "", true }); err == nil {
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
	return hints
}
