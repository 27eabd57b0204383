package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// PermitCmd asks, inside a run, whether a call of a tool may be made.
type PermitCmd struct {
	Tool   string `required:"" help:"The tool that would be called." placeholder:"NAME"`
	Input  string `required:"" help:"What it would be called with: a JSON object." placeholder:"JSON"`
	Server string `help:"The MCP server whose tool it is." placeholder:"NAME"`
}

// permission is what permit prints, and what Claude Code's --permission-prompt-tool reads.
type permission struct {
	Behavior     string          `json:"behavior"` // allow or deny
	UpdatedInput json.RawMessage `json:"updatedInput,omitempty"`
	Message      string          `json:"message,omitempty"`
}

// Run prints allow or deny as JSON; a no ends with 1.
func (c *PermitCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	var object map[string]any
	if err := json.Unmarshal([]byte(c.Input), &object); err != nil || object == nil {
		return console.Usage("--input is no JSON object.")
	}
	p, err := permit(ctx, sh, api, rand.Text(), wire.Action{Tool: c.Tool, Input: json.RawMessage(c.Input), Server: c.Server})
	if err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := sh.Say("%s", string(text)); err != nil || p.Behavior == "allow" {
		return err
	}
	return console.Fail(console.ExitFailed, "%s", console.Line(p.Message))
}

// permit asks until there is an answer.
func permit(ctx context.Context, sh *console.Shell, api *client.Client, ref string, a wire.Action) (permission, error) {
	said, err := askPeople(ctx, sh, api, "permit", wire.Ask{Ref: ref, Action: &a})
	switch {
	case err != nil:
		return permission{}, err
	case said.State == "allowed":
		return permission{Behavior: "allow", UpdatedInput: said.Input}, nil
	}
	return permission{Behavior: "deny", Message: "action_refused: " + said.Text}, nil
}

// AskCmd asks people a question from inside a run.
type AskCmd struct {
	Question []string `arg:"" help:"What you want to know; - reads it from standard input."`
	Choice   []string `sep:"none" help:"An answer to choose from; may be repeated." placeholder:"A"`
	To       string   `help:"The group of people to ask." placeholder:"GROUP"`
}

// Run prints the answer alone. Where nobody answered it ends with 1.
func (c *AskCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	text, err := sh.Words(c.Question)
	if err != nil {
		return err
	}
	said, err := askPeople(ctx, sh, api, "ask", wire.Ask{Ref: rand.Text(), Question: &wire.Asked{Text: text, Choices: c.Choice, To: c.To}})
	if err != nil {
		return err
	}
	if said.State != "answered" {
		return console.Fail(console.ExitFailed, "%s: %s", console.Line(said.State), console.Line(said.Text))
	}
	return sh.Foreign(said.Text)
}

// askPeople asks until there is an answer, also over a restart of the server.
func askPeople(ctx context.Context, sh *console.Shell, api *client.Client, command string, in wire.Ask) (wire.Answered, error) {
	h, err := handOn(sh, api, command)
	if err != nil {
		return wire.Answered{}, err
	}
	for {
		said, err := h.api.Ask(ctx, in)
		var refused *client.Error
		switch {
		case err == nil && said.Value.State != "open":
			return said.Value, nil
		case err == nil:
			h.patience.reset()
			continue
		case ctx.Err() != nil, errors.As(err, &refused) && refused.Status < 500 && refused.Status != 429:
			return wire.Answered{}, err
		}
		if err := h.patience.wait(ctx, err); err != nil {
			return wire.Answered{}, err
		}
	}
}

// AnswerCmd answers a question of an agent.
type AnswerCmd struct {
	ID   string   `arg:"" help:"A request's id, or a task's while one of its requests is pending."`
	Text []string `arg:"" help:"The answer, or one of the choices; - reads it from standard input."`
}

// Run sends the answer to the question as it is now.
func (c *AnswerCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	text, err := sh.Words(c.Text)
	if err != nil {
		return err
	}
	found, err := findRequest(ctx, sh, api, c.ID, "pending")
	if err != nil {
		return err
	}
	if found.Value.Kind != "question" {
		return console.Fail(console.ExitFailed, "%s asks no question. Use gatehouse review %s, then approve or reject.", console.Line(found.Value.ID), console.Short(found.Value.ID))
	}
	v := wire.Verdict{Verdict: "answer", Comment: text}
	if slices.Contains(found.Value.Question.Choices, strings.TrimSpace(text)) {
		v.Comment, v.Choice = "", strings.TrimSpace(text)
	}
	return decide(ctx, sh, api, found.Value, v)
}

// GrantsCmd lists what people allowed for the rest of a task, and takes it back.
type GrantsCmd struct {
	ID     string `arg:"" help:"A task's or a delegation's id; with --revoke a grant's."`
	Revoke bool   `help:"End the grant with this id: from now on people are asked again."`
}

// Run prints a line for each grant.
func (c *GrantsCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.Revoke {
		got, err := api.Revoke(ctx, c.ID)
		return act(sh, got, err, func(g wire.Grant) error {
			return sh.Say("%s ended: %s is asked about again.", console.Line(g.ID), console.Line(g.Scope))
		})
	}
	got, err := api.Grants(ctx, c.ID)
	return act(sh, got, err, func(g wire.Grants) error {
		if len(g.Items) == 0 {
			return sh.Say("Nothing is allowed for the rest of this task.")
		}
		for _, one := range g.Items {
			state := console.Counted(one.Uses, "use")
			if one.RevokedAt != nil {
				state += ", ended by " + console.Line(one.RevokedBy)
			}
			if err := sh.Say("%s  %s: %s  (by %s, %s)", console.Line(one.ID), console.Line(one.Agent), console.Line(one.Scope), console.Line(strings.Join(one.By, ", ")), state); err != nil {
				return err
			}
		}
		return nil
	})
}

// asksWhat is what a call or a question asks for, in the place of where a patch would land.
func asksWhat(r wire.Request) string {
	if r.Action != nil {
		return "call of " + console.Line(r.Action.Tool)
	}
	return "question"
}

// showAsked shows a call or a question whole.
func showAsked(ctx context.Context, sh *console.Shell, r wire.Request) error {
	var text strings.Builder
	fmt.Fprintln(&text, sh.Paint("strong", console.Line(r.Title)))
	showHeader(sh, &text, r)
	quoted(&text, cmp.Or(console.Line(r.Agent), "an agent")+" asks:", r.Text)
	if r.Scope != "" {
		fmt.Fprintf(&text, "for the rest of the task: %s\n", console.Line(r.Scope))
	}
	yours(&text, r)
	return paged(ctx, sh, []byte(text.String()))
}
