package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// SpawnCmd hands work on from inside a run that does not wait for it.
type SpawnCmd struct {
	Agent      string   `arg:"" help:"The agent that gets the work."`
	Text       []string `arg:"" optional:"" help:"What is to be done; - reads it from standard input."`
	Capability string   `help:"The agent must have this capability." placeholder:"CAP"`
}

// Run hands on and prints the id, or why it was refused.
func (c *SpawnCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	text, err := sh.Words(c.Text)
	if err != nil {
		return err
	}
	h, err := handOn(sh, api, "spawn")
	if err != nil {
		return err
	}
	d, err := h.handOn(ctx, wire.Hop{To: c.Agent, Capability: c.Capability, Text: text, Spawn: true})
	return act(sh, d, notHandedOn(err), func(d wire.Delegation) error { return sh.Say("%s", d.ID) })
}

// ChildrenCmd shows what a run has handed on.
type ChildrenCmd struct {
	Of   string `help:"The delegation whose children are shown; inside a run its own." env:"GATEHOUSE_DELEGATION_ID" placeholder:"ID"`
	Wait bool   `help:"Wait until all of them have ended, and print each answer."`
}

// Run lists the children, or waits for their ends. One that did not complete is exit code 1.
func (c *ChildrenCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.Of == "" {
		return console.Usage("children shows what a run has handed on, and there is no run here: GATEHOUSE_DELEGATION_ID is not set. Name a delegation with --of.")
	}
	h, err := handOn(sh, api, "children")
	if err != nil {
		return err
	}
	all, err := h.api.Children(ctx, c.Of)
	if err != nil {
		return err
	}
	failed, ended := false, wire.ListOf([]json.RawMessage{}, "")
	for _, d := range all.Items {
		if c.Wait {
			end, err := h.await(ctx, client.Answer[wire.Delegation]{Value: d})
			if err != nil {
				return notHandedOn(err)
			}
			d, ended.Items = end.Value, append(ended.Items, end.Raw)
			failed = failed || d.State != "completed"
		}
		if sh.JSON {
			continue
		}
		if err := c.show(sh, d); err != nil {
			return err
		}
	}
	if sh.JSON {
		var document any = all.Raw
		if c.Wait {
			document = ended
		}
		if err := sh.Document(document); err != nil {
			return err
		}
	}
	if failed {
		return console.Fail(console.ExitFailed, "Not all of them completed. See the lines above for why.")
	}
	return nil
}

// show prints a line for a child and, where its end is waited for, what came of it.
func (c *ChildrenCmd) show(sh *console.Shell, d wire.Delegation) error {
	if err := sh.Say("%s %s %s", d.ID, console.Line(d.State), console.Line(d.To)); err != nil || !c.Wait {
		return err
	}
	if why := reason(d); why != "" {
		return sh.Say("%s", why)
	}
	if d.Result == nil || d.Result.Text == "" {
		return nil
	}
	return sh.Foreign(d.Result.Text)
}

// HandoffCmd gives the rest of a run's work away.
type HandoffCmd struct {
	Agent      string   `arg:"" help:"The agent that goes on with the work."`
	Text       []string `arg:"" optional:"" help:"What is left to do; - reads it from standard input."`
	Capability string   `help:"The agent must have this capability." placeholder:"CAP"`
	Context    []string `help:"What the other agent must know; repeat it. completed=TEXT says what you did." placeholder:"K=V" sep:"none"`
	Artifact   []string `help:"What was made, and where; without a path it is still to be made. Repeat it." placeholder:"NAME=PATH" sep:"none"`
}

// Run hands over. Where that is accepted the server ends this program and all of its run;
// only a refusal comes back.
func (c *HandoffCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	text, err := sh.Words(c.Text)
	if err != nil {
		return err
	}
	hop := wire.Hop{To: c.Agent, Capability: c.Capability, Text: text, Handoff: true, Context: map[string]string{}, Artifacts: map[string]*string{}}
	for _, pair := range c.Context {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return console.Usage("--context %q is no K=V. Write for example --context build=1.18.1.", pair)
		}
		hop.Context[key] = value
	}
	for _, pair := range c.Artifact {
		name, path, made := strings.Cut(pair, "=")
		if name == "" {
			return console.Usage("--artifact %q is no NAME=PATH. Write for example --artifact ImplementationPlan=docs/plan.md.", pair)
		}
		hop.Artifacts[name] = nil
		if made {
			hop.Artifacts[name] = &path
		}
	}
	h, err := handOn(sh, api, "handoff")
	if err != nil {
		return err
	}
	d, err := h.handOn(ctx, hop)
	if err != nil {
		return notHandedOn(err)
	}
	sh.Hint("%s goes on with it (%s). This run ends now.", console.Line(d.Value.To), d.Value.ID)
	return awaitEnd(ctx, outage)
}

// awaitEnd waits for the end that the server brings to this program.
func awaitEnd(ctx context.Context, most time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(most):
		return errors.New("the work was handed over, but this run was not ended; it counts for nothing any more")
	}
}
