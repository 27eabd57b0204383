package cli

import (
	"context"
	"fmt"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
)

// inboxOf says how full the queue of an agent is, "" where it is no agent any more.
func inboxOf(ctx context.Context, api *client.Client, name string) (string, error) {
	all, err := api.Agents(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range all.Items {
		if a.Name == name && a.Inbox.Size > 0 {
			return fmt.Sprintf("%d of %d wait for %s (%d %%)", a.Inbox.Waiting, a.Inbox.Size, console.Line(a.Name), a.Inbox.Percent), nil
		}
	}
	return "", nil
}
