package main

import "gatehouse/cmd/gatehouse/internal/console"
import _ "embed" // the licences

//go:generate go run ./internal/notice NOTICE

//go:embed NOTICE
var notice string

// LicensesCmd prints the licences of all that the program is made of.
type LicensesCmd struct{}

// Run prints them.
func (c *LicensesCmd) Run(sh *console.Shell) error {
	if sh.JSON {
		return sh.Document(map[string]string{"notice": notice})
	}
	return sh.Say("%s", notice)
}
