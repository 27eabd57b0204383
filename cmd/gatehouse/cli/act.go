package cli

import (
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
)

// act says what came of one thing that the server was asked for; with --json the document that it answered.
func act[T any](sh *console.Shell, got client.Answer[T], err error, say func(T) error) error {
	switch {
	case err != nil:
		return err
	case sh.JSON:
		return sh.Document(got.Raw)
	}
	return say(got.Value)
}

// orFailed ends a command with exit code 1 where the answer is no, once that was said.
func orFailed(yes bool, err error) error {
	if err == nil && !yes {
		return &console.Failure{Code: console.ExitFailed}
	}
	return err
}

// list shows a row for each thing that the server was asked for; with --json the document that it answered. An empty
// list is explained.
func list[T any](sh *console.Shell, all client.List[T], err error, row func(T) []string, empty string) error {
	if err != nil {
		return err
	}
	return console.List(sh, all.Raw, all.Items, empty, row)
}

// page is a list of which the server may have more than the limit; the next one to ask with is named then.
func page[T any](sh *console.Shell, all client.List[T], err error, row func(T) []string, empty string, next int) error {
	err = list(sh, all, err, row, empty)
	if err == nil && all.Next != "" {
		sh.Hint("There are more: --limit %d", next)
	}
	return err
}
