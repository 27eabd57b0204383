package main

import (
	_ "embed" // the licences
	"runtime"
	"runtime/debug"

	"gatehouse/cmd/gatehouse/internal/console"
)

// VersionCmd prints the version.
type VersionCmd struct{}

// build says what this program was built from.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // "" when it was not built from a repository
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
}

func thisBuild() build {
	b := build{Version: "devel", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Run prints one line.
func (c *VersionCmd) Run(sh *console.Shell) error {
	b := thisBuild()
	from := ""
	if b.Commit != "" {
		from = " (" + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			from += ", modified"
		}
		from += ")"
	}
	return sh.Answer(b, "gatehouse %s%s, %s", b.Version, from, b.Go)
}

//go:generate go run ./internal/notice NOTICE

//go:embed NOTICE
var notice string

// LicensesCmd prints the licences of all that the program is made of.
type LicensesCmd struct{}

// Run prints them.
func (c *LicensesCmd) Run(sh *console.Shell) error {
	return sh.Answer(map[string]string{"notice": notice}, "%s", notice)
}
