package cli

import (
	"context"
	"fmt"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/client"
)

// ContextTouchCmd prolongs one value.
type ContextTouchCmd struct {
	Words []string `arg:"" name:"ns key" help:"The namespace, which is the task's own board when it is left out inside a run, and the key."`
	TTL   string   `name:"ttl" help:"How long from now; 90 days without it. A life is never made shorter." placeholder:"24h"`
}

// Run prolongs it.
func (c *ContextTouchCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	words, err := placed(c.Words, 1)
	if err != nil {
		return err
	}
	ns, key := words[0], words[1]
	var ttl time.Duration
	if c.TTL != "" {
		if ttl, err = sharedctx.Named(c.TTL); err != nil {
			return console.Usage("--ttl: %s.", console.Line(err.Error()))
		}
		if ttl == 0 {
			return console.Usage("--ttl: a touch cannot make a value stay for ever. Set it again with --ttl never.")
		}
	}
	got, err := api.TouchEntry(ctx, ns, key, ttl)
	return act(sh, got, err, func(e sharedctx.Entry) error {
		return sh.Say("%s %s touched%s", console.Line(e.Namespace), console.Line(e.Key), lasts(e))
	})
}

// ContextHistoryCmd lists who used a value.
type ContextHistoryCmd struct {
	Words []string `arg:"" name:"ns key" help:"The namespace, which is the task's own board when it is left out inside a run, and the key."`
}

// Run prints the uses, newest first.
func (c *ContextHistoryCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	words, err := placed(c.Words, 1)
	if err != nil {
		return err
	}
	ns, key := words[0], words[1]
	got, err := api.Uses(ctx, ns, key)
	return list(sh, got, err, func(u sharedctx.Use) []string {
		return []string{console.Line(string(u.Kind)), console.Line(u.Agent), console.Ago(u.At, sh.Now()), console.Line(u.DelegationID)}
	}, fmt.Sprintf("Nobody has written or read %s %s, or it is gone for more than 90 days.", console.Line(ns), console.Line(key)))
}

// ContextNamespacesCmd lists the namespaces.
type ContextNamespacesCmd struct{}

// Run prints name, size and age.
func (c *ContextNamespacesCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Topics(ctx)
	return list(sh, got, err, func(topic sharedctx.Topic) []string {
		return []string{console.Line(topic.Namespace), console.Counted(topic.Entries, "value"), console.Ago(topic.UpdatedAt, sh.Now())}
	}, "Nothing is in the shared context. Write something: gatehouse context set NS KEY VALUE")
}

// ContextCleanupCmd removes what has expired.
type ContextCleanupCmd struct{}

// Run removes it and says how much it was.
func (c *ContextCleanupCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	n, err := api.CleanUp(ctx)
	if err != nil {
		return err
	}
	return sh.Answer(map[string]int{"removed": n}, "%s removed", console.Counted(n, "expired value"))
}
