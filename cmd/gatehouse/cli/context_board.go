package cli

import (
	"os"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/sharedctx"
)

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
