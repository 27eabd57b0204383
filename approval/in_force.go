package approval

import (
	"context"
	"fmt"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// Taken is the configuration that some node took last, as it was recorded.
type Taken struct {
	Settings []event.Configured // nothing where none was recorded
	At       time.Time
}

// maxKeys is how many keys that differ are named.
const maxKeys = 10

// behind refuses on a node whose rules are not those that were taken last by any node.
// Nodes read files of their own. While one of them has an older file it would count the
// yes of people who have no right any more, under rules that nobody wants any more, so it
// counts none and lands nothing, until it has taken the same. The others go on. It names the
// keys that differ, and not what they are set to, which who decides need not know.
func (c Config) behind(t Taken, now time.Time) *orchestrator.Error {
	if c.OtherRules == nil || len(t.Settings) == 0 {
		return nil
	}
	differ := c.OtherRules(t.Settings)
	if len(differ) == 0 {
		return nil
	}
	return orchestrator.Errorf(orchestrator.CodeConflict, "Other rules were taken at %s than this node of Gatehouse has, so it counts no yes and lands nothing. They differ in %s. "+
		"Give all nodes the same configuration, have this one load it again (SIGHUP), and try again.", words{zone: c.Location, now: now}.at(t.At), upTo(maxKeys, differ))
}

// Behind says why this node counts no yes and lands nothing, nil where it does.
func (g *Gateway) Behind(ctx context.Context) (*orchestrator.Error, error) {
	t, err := g.store.Configuration(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading which configuration was taken last: %w", err)
	}
	return g.Config().behind(t, g.now()), nil
}

// olderHandovers reports whether this node's rules about hand-overs are not those that were
// taken last.
func (g *Gateway) olderHandovers(ctx context.Context, c Config) (bool, error) {
	if c.SameHandovers == nil {
		return false, nil
	}
	t, err := g.store.Configuration(ctx)
	if err != nil {
		return false, fmt.Errorf("reading which configuration was taken last: %w", err)
	}
	return len(t.Settings) > 0 && !c.SameHandovers(t.Settings), nil
}
