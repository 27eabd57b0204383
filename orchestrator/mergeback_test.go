package orchestrator_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // git names objects so
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
)

// A child's tree that cannot be taken over to its end, because an object of it was lost, has
// left some of its files in the checkout by then. They are in what the caller offers, so
// whoever the child belongs to has a part in that.
func TestWhatAHalfTakenChildBroughtComesWithItsPeople(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder", "deps")...)
		w.script("deps", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if err := writeFile(job.Dir, "z.txt", "this will be lost\n"); err != nil {
				return agent.Outcome{}, err
			}
			return writes("a.txt", "deps wrote this\n")(ctx, job, host)
		})
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			c, err := host.Delegate(ctx, agent.Hop{To: "deps", Text: "raise the versions"})
			if err != nil {
				return agent.Outcome{}, err
			}
			w.state(c.ID, orchestrator.Completed)
			if err := w.loses("this will be lost\n"); err != nil {
				return agent.Outcome{}, err
			}
			if _, err := host.Await(ctx, c.ID); err == nil {
				return agent.Outcome{}, errors.New("all of the child's tree came over")
			}
			return writes("code.txt", "code\n")(ctx, job, host)
		})
		c := w.gateway.Config()
		c.Agents = map[string]approval.AgentRule{"deps": {Owner: "bob"}}
		w.gateway.SetConfig(c)
		w.start()
		root := w.send("coder", "Do it")
		r := w.request(root.TaskID, 1)
		var paths []string
		for _, f := range r.Revision.Files {
			paths = append(paths, f.Path)
		}
		if !slices.Equal(paths, []string{"a.txt", "code.txt"}) {
			t.Fatalf("coder asks about %v\n%s", paths, w.history(root.TaskID))
		}
		if !slices.ContainsFunc(r.Revision.Authors, func(a orchestrator.Author) bool { return a.Agent == "deps" }) {
			t.Errorf("authors %+v", r.Revision.Authors)
		}
		_, err := w.gateway.Decide(t.Context(), w.ballot(w.bob, r, approval.Approve))
		w.refused(err, orchestrator.CodeFourEyes, "You own the agent deps, which worked on it")
		if got := w.reread(r.ID); got.State != approval.Pending || strings.Contains(w.git("ls-tree", "--name-only", "main"), "a.txt") {
			t.Errorf("the request is %s", got.State)
		}
	})
}

// loses takes a text that some tree has away from the mirror.
func (w *world) loses(text string) error {
	id := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)))
	found, err := filepath.Glob(filepath.Join(w.data, "mirrors", "*", "objects", id[:2], id[2:]))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("the mirror has %q at %v", text, found)
	}
	if err != nil {
		return err
	}
	return os.Remove(found[0])
}
