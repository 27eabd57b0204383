package main

import (
	"fmt"

	"gatehouse/cmd/gatehouse/internal/config"
)

// unset has a line for each text of the configuration that cannot be known here: the
// server's environment may have it.
func unset(c *config.Config) []string {
	var all []string
	for _, u := range c.Unset() {
		all = append(all, fmt.Sprintf("%s: %s is not looked at: %s The server does not start without it.", u.Place, u.Key, u.Why))
	}
	return all
}

// notLooked is a finding about what nobody can look at without a secret.
func notLooked(name, missing string) finding {
	return finding{name, odd, "It is not looked at, because ${" + missing + "} is missing here. Run doctor where the server's secrets are."}
}
