package cli

import (
	"context"
	"encoding/json"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// siteStatus tells how many workers of the node are busy, and of each repository in which
// approved changes wait how many they are and at which pace they land.
func siteStatus(ctx context.Context, sh *console.Shell, api *client.Client) error {
	answer, err := api.Waits(ctx, "", 1)
	if err != nil {
		return err
	}
	found := answer.Value
	if sh.JSON {
		var told struct {
			Slots    json.RawMessage `json:"slots"`
			Landings json.RawMessage `json:"landings"`
		}
		if err := json.Unmarshal(answer.Raw, &told); err != nil {
			return err
		}
		return sh.Document(told)
	}
	verb := "are"
	if found.Slots.Used == 1 {
		verb = "is"
	}
	if err := sh.Say("%d of %s of this node %s busy", found.Slots.Used, console.Counted(found.Slots.Size, "worker"), verb); err != nil {
		return err
	}
	for _, q := range found.Landings {
		if err := sh.Say("%s", console.Line(q.Says)); err != nil {
			return err
		}
	}
	if len(found.Landings) == 0 {
		return sh.Say("no approved change waits to land")
	}
	return nil
}

// landingOf says how landing stands in the repository of a change that waits to land.
func landingOf(ctx context.Context, api *client.Client, d wire.Delegation) (string, error) {
	if d.State != "landing" {
		return "", nil
	}
	found, err := api.Waits(ctx, d.TaskID, 0)
	if err != nil {
		return "", err
	}
	for _, w := range found.Value.Items {
		for _, q := range found.Value.Landings {
			if w.DelegationID == d.ID && w.Repository == q.Repository {
				return console.Line(q.Says), nil
			}
		}
	}
	return "", nil
}
