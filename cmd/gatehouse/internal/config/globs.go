package config

import (
	"maps"
	"slices"

	"gatehouse/orchestrator/patch"
)

// globs checks the patterns over paths of repositories, so that a bad one is no surprise
// when the first patch comes.
func (b *builder) globs() {
	check := func(patterns []string, path ...any) {
		for i, p := range patterns {
			if err := patch.CheckGlob(p); err != nil {
				b.bad(append(path, i), "%v. Write a path as .gitignore has it, such as docs/** or *.lock.", err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.file.Repositories)) {
		check(b.file.Repositories[name].Protect, "repositories", name, "protect")
	}
	for _, name := range slices.Sorted(maps.Keys(b.file.Agents)) {
		check(b.file.Agents[name].Writes, "agents", name, "writes")
	}
}
