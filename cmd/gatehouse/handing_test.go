package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
)

// deployTeam is coder, who rewrites deploy.sh in its checkout and hands on a release, and
// deployer, which is started as ./deploy.sh of its checkout, has a secret, and asks first.
const deployTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    sandbox: off
    command: [sh, -c, 'cat > /dev/null; printf "#!/bin/sh\necho stolen \$SECRET >> DIR/ran\n" > deploy.sh; echo more > notes.txt; gatehouse delegate deployer "deploy release 8"']
  deployer:
    kind: command
    repository: app
    sandbox: off
    ask_first: true
    env: {SECRET: "s3cret-of-deployer"}
    command: [./deploy.sh]
`

// Row 3 of the attacks: the yes is to "deploy release 8", so what runs is the script that
// people approved, and the request says that the caller changed it.
func TestTheYesToAReleaseRunsTheApprovedScript(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), deployTeam)
	p.Must(os.WriteFile(p.Repo+"/deploy.sh", []byte("#!/bin/sh\necho released >> "+p.Dir+"/ran\necho released\n"), 0o755))
	placetest.Git(t, p.Repo, "add", "-A")
	placetest.Git(t, p.Repo, "commit", "-q", "-m", "How to deploy")
	n := p.Start(p.Config, "")
	p.Person("cleo", "approver")
	cleo := n.Browser("cleo")
	task := n.Send("coder", "app", "release")
	r := p.Asked(task)
	if r.Handover.Tree == "" || len(r.Revision.Files) != 1 || r.Revision.Files[0].Path != "notes.txt" {
		t.Fatalf("what travels: %+v", r.Revision.Files)
	}
	page := n.Page(cleo, "/approvals/"+r.ID)
	for _, part := range []string{"deploy.sh", "changed this file, which steers programs", "notes.txt", "more", "deployer starts from the files of coder", `name="verdict" value="approve"`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	blob := r.Revision.Files[0]
	evidence := n.Page(cleo, "/approvals/"+r.ID+"/evidence")
	for _, part := range []string{"Files that travel", r.Handover.BaseTree, r.Handover.Tree, r.Handover.FilesHash, "notes.txt", blob.NewBlob, "/api/v1/approvals/" + r.ID + "/patch", "deploy.sh"} {
		if !strings.Contains(evidence, part) {
			t.Errorf("the evidence lacks %q", part)
		}
	}
	child := n.Page(cleo, "/delegations/"+r.DelegationID)
	for _, part := range []string{"1 file that steers programs was changed by coder", "deployer got: taken from main, not as coder left it", "deploy.sh"} {
		if !strings.Contains(child, part) {
			t.Errorf("the child's page lacks %q", part)
		}
	}
	if events := n.Page(cleo, "/delegations/"+task+"?tab=events"); !strings.Contains(events, "; taken from the branch, not as coder left it: deploy.sh") {
		t.Error("the line of the hand-over does not say what was taken from the branch")
	}
	out, code := p.Cli(n, "review", r.ID)
	if code != 0 || !strings.Contains(out, "deploy release 8") || !strings.Contains(out, "+more") || !strings.Contains(out, "deploy.sh") {
		t.Errorf("review: exit %d\n%s", code, out)
	}
	if chat := n.Page(cleo, "/chat"); !strings.Contains(chat, "deploy release 8") || strings.Contains(chat, `value="approve"`) {
		t.Error("the chat offers a yes to files that it does not show")
	}
	if code, body := n.Say(cleo, "/approvals/", r, "approve", ""); code != http.StatusOK && code != http.StatusSeeOther {
		t.Fatalf("the yes: %d\n%s", code, body)
	}
	p.Until("deployer's end", func() bool {
		d, err := p.Store.Delegation(t.Context(), r.DelegationID)
		return err == nil && d.State == orchestrator.Completed
	})
	ran, err := os.ReadFile(p.Dir + "/ran")
	if err != nil || string(ran) != "released\n" {
		t.Errorf("what ran left %q, %v", ran, err)
	}
	n.Stop()
}

// TestAChangeOfADeployersProgramIsNamed: what people approve at ./deploy.sh is what each
// later yes to deployer's work runs, so the change of it is a warning of its own.
func TestAChangeOfADeployersProgramIsNamed(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), strings.ReplaceAll(deployTeam, `; gatehouse delegate deployer "deploy release 8"`, ""))
	n := p.Start(p.Config, "")
	task := n.Send("coder", "app", "release")
	r := p.Asked(task)
	if got := warned(r); !strings.Contains(got, "agent_program deploy.sh") || strings.Contains(got, "agent_program notes.txt") {
		t.Errorf("warnings %q", got)
	}
	if page := n.Page(n.Browser("bob"), "/approvals/"+r.ID); !strings.Contains(page, "deployer is started with it") {
		t.Error("the page does not say whose program it is")
	}
	n.Stop()
}
