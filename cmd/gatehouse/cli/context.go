package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/client"
)

// ContextCmd reads and writes the shared context.
type ContextCmd struct {
	Get        ContextGetCmd        `cmd:"" help:"Print one value."`
	Set        ContextSetCmd        `cmd:"" help:"Write one value."`
	List       ContextListCmd       `cmd:"" help:"List a namespace, newest first."`
	Delete     ContextDeleteCmd     `cmd:"" help:"Remove one value."`
	Touch      ContextTouchCmd      `cmd:"" help:"Let one value live longer."`
	History    ContextHistoryCmd    `cmd:"" help:"Who wrote and who read one value."`
	Namespaces ContextNamespacesCmd `cmd:"" help:"List the namespaces."`
	Cleanup    ContextCleanupCmd    `cmd:"" help:"Remove what has expired; the server does so each minute."`
}

// ContextGetCmd prints one value.
type ContextGetCmd struct {
	Words      []string `arg:"" name:"ns key" help:"The namespace, which is the task's own board when it is left out inside a run, and the key."`
	Structured bool     `help:"The value has to be JSON; with --json it comes decoded in data."`
}

// Run prints the value alone.
func (c *ContextGetCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	words, err := placed(c.Words, 1)
	if err != nil {
		return err
	}
	ns, key := words[0], words[1]
	got, err := api.Entry(ctx, ns, key, c.Structured)
	return act(sh, got, err, func(e sharedctx.Entry) error {
		return sh.Foreign(e.Value)
	})
}

// ContextSetCmd writes one value.
type ContextSetCmd struct {
	Words  []string `arg:"" name:"ns key value" help:"The namespace, which is the task's own board when it is left out inside a run, the key, and the value; - reads it from standard input."`
	TTL    string   `name:"ttl" help:"How long it stays: 24h, 30d, or performance, learnings, security, memory, never. Without it for ever, or what the configuration has for the namespace." placeholder:"24h"`
	Extend bool     `help:"Only push the expiry of an existing value forward; 90 days without --ttl."`
}

// Run writes it.
func (c *ContextSetCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	words, err := placed(c.Words, 2)
	if err != nil {
		return err
	}
	ns, key, value := words[0], words[1], words[2]
	life := client.Life{Extend: c.Extend}
	if c.TTL != "" {
		if life.TTL, err = sharedctx.Named(c.TTL); err != nil {
			return console.Usage("--ttl: %s.", console.Line(err.Error()))
		}
		life.Never = life.TTL == 0
	}
	if value == "-" {
		if value, err = sh.Words([]string{"-"}); err != nil {
			return err
		}
	}
	got, err := api.PutEntry(ctx, ns, key, value, life)
	return act(sh, got, err, func(e sharedctx.Entry) error {
		return sh.Say("%s %s written%s", console.Line(e.Namespace), console.Line(e.Key), lasts(e))
	})
}

// lasts says how long a value stays that was written just now, by the server's clock alone:
// this machine's may go wrong, and an answer takes its time.
func lasts(e sharedctx.Entry) string {
	if e.ExpiresAt == nil {
		return ""
	}
	return " · " + console.Expiry(e.ExpiresAt, e.UpdatedAt)
}

// ContextListCmd lists a namespace.
type ContextListCmd struct {
	Words  []string `arg:"" optional:"" name:"ns" help:"The namespace; inside a run the task's own board when it is left out."`
	Prefix string   `help:"Only keys that begin so." placeholder:"P"`
}

// Run prints key, author, age and the beginning of each value.
func (c *ContextListCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	words, err := placed(c.Words, 0)
	if err != nil {
		return err
	}
	ns := words[0]
	got, err := api.Entries(ctx, ns, c.Prefix)
	return list(sh, got, err, func(e sharedctx.Entry) []string {
		return []string{console.Line(e.Key), console.Line(e.Agent), console.Parts(console.Ago(e.UpdatedAt, sh.Now()), console.Expiry(e.ExpiresAt, sh.Now())), console.Brief(e.Value, 60)}
	}, fmt.Sprintf("Nothing is in %s. Write something: gatehouse context set %s KEY VALUE", console.Line(ns), console.Line(ns)))
}

// ContextDeleteCmd removes one value.
type ContextDeleteCmd struct {
	Words []string `arg:"" name:"ns key" help:"The namespace, which is the task's own board when it is left out inside a run, and the key."`
}

// Run removes it; one that is gone is no error.
func (c *ContextDeleteCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	words, err := placed(c.Words, 1)
	if err != nil {
		return err
	}
	ns, key := words[0], words[1]
	if err := api.DeleteEntry(ctx, ns, key); err != nil {
		return err
	}
	return sh.Answer(map[string]string{"namespace": ns, "key": key}, "%s %s deleted", console.Line(ns),
		console.Line(key))
}

// placed are a command's words with the namespace first, behind which rest words stand. One
// that is left out inside a run is the board of the run's task.
func placed(words []string, rest int) ([]string, error) {
	switch len(words) {
	case rest + 1:
		return words, nil
	case rest:
		if task := os.Getenv("GATEHOUSE_TASK_ID"); task != "" {
			return append([]string{sharedctx.Board(task)}, words...), nil
		}
		return nil, console.Usage("Outside a run the namespace has to be named, in front of the key: gatehouse context get NAMESPACE KEY.")
	default:
		return nil, console.Usage("There are %d words, and %d are wanted: the namespace, which may be left out inside a run, and what stands behind it. Put quotes around a value with blanks.", len(words), rest+1)
	}
}

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
