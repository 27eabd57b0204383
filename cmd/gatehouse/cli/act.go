package cli

import (
	"context"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
)

// act asks the server for one thing and says what came of it; with --json the document that it answered.
func act[T any](ctx context.Context, sh *console.Shell, call func(*client.Client) (client.Answer[T], error), say func(*client.Client, T) error) error {
	api, err := sh.Client(ctx)
	if err != nil {
		return err
	}
	got, err := call(api)
	switch {
	case err != nil:
		return err
	case sh.JSON:
		return sh.Document(got.Raw)
	}
	return say(api, got.Value)
}

// list asks the server for a list and shows a row for each; with --json the document that it answered. An empty one is
// explained.
func list[T any](ctx context.Context, sh *console.Shell, call func(*client.Client) (client.List[T], error), row func(T) []string, empty string) error {
	api, err := sh.Client(ctx)
	if err != nil {
		return err
	}
	all, err := call(api)
	switch {
	case err != nil:
		return err
	case sh.JSON:
		return sh.Document(all.Raw)
	case len(all.Items) == 0:
		sh.Hint("%s", empty)
		return nil
	}
	rows := make([][]string, len(all.Items))
	for i, item := range all.Items {
		rows[i] = row(item)
	}
	return console.Table(sh.Out, rows)
}
