package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"

	"golang.org/x/tools/txtar"
)

//go:embed internal/sample/sample.txtar
var sample []byte

// Names of the demo's team. kik plans, coder changes, reviewer looks.
const (
	demoPerson  = "you"
	demoTask    = "Modernise this repository with go fix."
	demoRefused = "Try to hand this back to where it came from."
)

// demoCoder modernises the checkout with the tool that the Go toolchain ships, and
// hands it to the reviewer before it is done.
const demoCoder = `go fix ./...
if [ -z "$(git status --porcelain)" ]; then
  echo "There is nothing to modernise here: go fix changed no file."
  exit 0
fi
echo "go fix changed:" >&2
git diff --stat >&2
verdict=$(gatehouse delegate reviewer "Build, vet and test this change.")
printf 'I ran go fix over every package.\n\nreviewer says: %s\n' "$verdict"
`

// demoReviewer builds, vets and tests what coder made; it changes nothing.
const demoReviewer = `say() { printf '%s\n' "$1"; }
for step in "go build ./..." "go vet ./..." "go test ./..."; do
  echo "$step" >&2
  if ! out=$($step 2>&1); then
    say "$step fails:"; say "$out" | tail -n 20
    exit 0
  fi
done
say "build, vet and tests pass"
`

// demoEcho tries what a guard refuses, and tells what it was told.
const demoEcho = `if answer=$(gatehouse delegate boomerang "Do it again." 2>&1); then
  printf '%s\n' "$answer"
else
  printf 'I was refused, as it should be.\n\n%s\n' "$answer"
fi
`

// demo is one run of the demo.
type demo struct {
	house *house
	you   people.User
	repo  string // the demo's own clone
	given string // the folder that was cloned, "" for the sample
	out   io.Writer
	err   io.Writer
}

// plant makes the demo's own repository in its data folder: a clone of the given
// one, which is only read, or the sample.
func (d *demo) plant(ctx context.Context, given, folder string) error {
	d.repo = filepath.Join(folder, "repository")
	if _, err := os.Stat(filepath.Join(d.repo, ".git")); err == nil {
		return nil // a demo that is continued
	}
	mirrors := patch.NewMirrors(filepath.Join(folder, "seed"), patch.Options{})
	if given == "" {
		files := map[string][]byte{}
		for _, f := range txtar.Parse(sample).Files {
			files[f.Name] = f.Data
		}
		return mirrors.Plant(ctx, d.repo, files, "A small uploader")
	}
	abs, err := filepath.Abs(given)
	if err != nil {
		return err
	}
	d.given = abs
	var source *patch.SourceError
	_, err = mirrors.Open(patch.Repository{Name: "--repo", Source: abs}).Clone(ctx, d.repo)
	switch {
	case errors.As(err, &source) && source.Code == patch.SourceNoBranch:
		return console.Usage("%s is on no branch that can be cloned. Check out a branch there (and fetch its whole history if the clone is shallow), then try again.", given)
	case err != nil:
		return console.Usage("%v", err)
	}
	if _, err := os.Stat(filepath.Join(d.repo, "go.mod")); err != nil {
		return console.Usage("%s has no go.mod in its last commit, and the demo's coder modernises Go code. Name the folder of a Go module with --repo, or leave it out for a sample", given)
	}
	return nil
}

// demoConfig is the demo's gatehouse.yaml. It is written into the data folder, so
// that a newcomer can read it and start from it.
func demoConfig(listen, repo string) string {
	return fmt.Sprintf(`# The demo's team. Copy this file to start your own: gatehouse --config gatehouse.yaml serve
server: {listen: %q}
database: sqlite:./gatehouse.db
data: ./data
repositories:
  demo:
    path: %q
    checks: ["go build ./...", "go vet ./..."]
agents:
  kik:                       # plans, and hands the work on
    kind: workflow
    capabilities: [planning]
    steps:
      - {id: change, agent: coder, task: "{{.Task}}"}
  coder:                     # changes files; a person must say yes before they land
    kind: command
    role: developer
    repository: demo
    delegates_to: [reviewer]
    command: ["sh", "-ceu", %q]
  reviewer:                  # looks at coder's files as they are; its answers pass by themselves
    kind: command
    role: specialist
    repository: demo
    analysis_only: true
    approval: auto
    command: ["sh", "-cu", %q]
  boomerang:                 # shows what a refusal looks like
    kind: workflow
    steps:
      - {id: throw, agent: echo, task: "{{.Task}}"}
  echo:
    kind: command
    command: ["sh", "-cu", %q]
approval:
  four_eyes: false           # one person alone could never approve otherwise; on by default with serve
`, listen, repo, demoCoder, demoReviewer, demoEcho)
}

// enter makes the demo's own person, who may do everything, and a sign-in code.
func (d *demo) enter(ctx context.Context) (string, error) {
	var err error
	d.you, err = d.house.store.UserByName(ctx, demoPerson)
	if errors.Is(err, orchestrator.ErrNotFound) {
		d.you = people.User{Name: demoPerson, Roles: people.Roles()}
		d.you, err = d.house.store.CreateUser(ctx, "gatehouse demo", d.you)
	}
	if err != nil {
		return "", err
	}
	return signinCode(ctx, d.house.store, d.you)
}

// once sends the demo's task, approves its request as the demo's person and waits
// until it has landed.
func (d *demo) once(ctx context.Context) (demoResult, error) {
	e := d.house.engine
	t, _, _, err := e.Submit(ctx, orchestrator.Submission{Agent: "kik", Text: demoTask, Repository: "demo", Via: origin.From(origin.CLI), RequesterID: d.you.ID, Requester: d.you.Name})
	if err != nil {
		return demoResult{}, err
	}
	fmt.Fprintf(d.err, "%s sent to kik\n", t.ID)
	res := demoResult{TaskID: t.ID, Repository: d.repo}
	sub := e.Hub().Watch(t.ID, 256)
	defer sub.Close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for shown := int64(0); ; {
		if shown, err = d.follow(ctx, t.ID, shown); err != nil {
			return res, err
		}
		root, err := d.house.store.Delegation(ctx, t.RootID)
		if err != nil {
			return res, err
		}
		if root.State.Ended() {
			return res, d.outcome(ctx, root, &res)
		}
		if err := d.approve(ctx, t.ID, &res); err != nil {
			return res, err
		}
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-sub.C:
		case <-tick.C:
		}
	}
}

// follow prints what happened since the event with number after.
func (d *demo) follow(ctx context.Context, taskID string, after int64) (int64, error) {
	events, err := d.house.store.Events(ctx, taskID, after, 200)
	for _, e := range events {
		after = e.N
		if line := demoLine(e); line != "" {
			fmt.Fprintln(d.err, line)
		}
	}
	return after, err
}

// demoLine is an event for a person who watches the demo, "" for the small ones.
func demoLine(e event.Event) string {
	kind, _ := event.KindOf(e.Type)
	switch d := e.Payload().(type) {
	case event.DelegatedData:
		return fmt.Sprintf("  %s %s %s: %s", e.Actor, kind.Icon, d.To, d.Title)
	case event.ProgressData:
		return "  " + e.Actor + ": " + strings.ReplaceAll(strings.TrimSpace(d.Text), "\n", "\n  "+e.Actor+": ")
	case event.RequestedData:
		return "  " + kind.Icon + " awaiting approval"
	case event.DecidedData:
		return fmt.Sprintf("  %s approved by %s", kind.Icon, e.Actor)
	case event.PatchLandedData:
		return fmt.Sprintf("  %s landed %s on %s", kind.Icon, d.Commit, d.Branch)
	case event.DelegationRefusedData:
		return fmt.Sprintf("  %s refused: %s", kind.Icon, d.Message)
	}
	return ""
}

// approve says yes, as the demo's person, to the digest that the request shows.
func (d *demo) approve(ctx context.Context, taskID string, res *demoResult) error {
	ids, err := d.house.store.PendingOf(ctx, taskID)
	if err != nil || len(ids) == 0 {
		return err
	}
	r, err := d.house.store.Request(ctx, ids[0])
	if err != nil {
		return err
	}
	res.ApprovalID = r.ID
	_, err = d.house.gateway.Decide(ctx, approval.Ballot{RequestID: r.ID, Principal: people.As(d.you, nil), Channel: "cli", Verdict: approval.Approve,
		Digest: r.Revision.Digest, Revision: r.Revision.N, Seen: approval.Seen{Surface: "demo"}})
	if orchestrator.CodeOf(err) == orchestrator.CodeAlreadyDecided {
		return nil
	}
	return err
}

// demoResult is what demo --once ends with.
type demoResult struct {
	TaskID     string     `json:"task_id"`
	ApprovalID string     `json:"approval_id"`
	Commit     string     `json:"commit"`
	Repository string     `json:"repository"`
	Chain      []demoStep `json:"chain"`
}

type demoStep struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// outcome gathers the chain and the commit of the ended task.
func (d *demo) outcome(ctx context.Context, root orchestrator.Delegation, res *demoResult) error {
	tree, err := d.house.store.Tree(ctx, root.TaskID)
	if err != nil {
		return err
	}
	deepest := root
	for _, x := range tree {
		if x.Depth > deepest.Depth {
			deepest = x
		}
		if x.Result != nil && x.Result.Commit != "" {
			res.Commit = x.Result.Commit
		}
	}
	for _, s := range deepest.Chain.Steps() {
		res.Chain = append(res.Chain, demoStep{s.From, s.To})
	}
	switch {
	case root.State != orchestrator.Completed && root.Error != nil:
		return console.Fail(console.ExitFailed, "The task ended as %s: %s", root.State, root.Error.Message)
	case res.Commit == "":
		what := "the sample"
		if d.given != "" {
			what = d.given
		}
		return console.Fail(console.ExitFailed, "There is nothing to modernise in %s: go fix changed no file, so nothing was asked and nothing landed.", what)
	}
	return nil
}

// openBrowser shows url in the person's browser where there is a display.
func openBrowser(url string) {
	if os.Getenv("SSH_CONNECTION") != "" || os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	if path, err := exec.LookPath("xdg-open"); err == nil {
		cmd := exec.Command(path, url)
		if cmd.Start() == nil {
			go cmd.Wait() //nolint:errcheck // the browser lives on by itself
		}
	}
}

// demoFolder is where a demo keeps its things: the given folder, or a fresh one.
func demoFolder(given string) (string, error) {
	if given == "" {
		return os.MkdirTemp("", "gatehouse-demo-")
	}
	abs, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	return abs, os.MkdirAll(abs, 0o700)
}

// loadDemo writes the demo's configuration and reads it back as any other.
func loadDemo(folder, listen, repo string) (*config.Config, error) {
	path := filepath.Join(folder, "gatehouse.yaml")
	if err := os.WriteFile(path, []byte(demoConfig(listen, repo)), 0o600); err != nil {
		return nil, err
	}
	return config.Load(path, os.LookupEnv)
}
