package views

import (
	"cmp"

	"gatehouse/orchestrator/agent"
)

// sourceName is the shortest that names a source.
func sourceName(s *agent.Source) string { return cmp.Or(s.Ref, s.Title, s.URL) }
