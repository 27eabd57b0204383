package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
)

// secretTeam is an agent that looks into a folder that it is shown, in which the server's
// secrets lie as well.
const secretTeam = `
agents:
  peek: {kind: command, env: {LOOK: "DIR/shared"}, command: [sh, -c, 'cd "$LOOK" && for f in open first second; do printf "%s " "$f $(cat $f 2>/dev/null || echo hidden)"; done']}
providers: {openai: {api_key: "${file:DIR/shared/KEY}"}}
`

// A file that the configuration reads a secret from is seen by no agent, wherever it lies; a
// reload that names another one hides that.
func TestAFileWithASecretIsSeenByNoAgent(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), strings.Replace(secretTeam, "KEY", "first", 1))
	p.Must(os.Mkdir(filepath.Join(p.Dir, "shared"), 0o700))
	for _, name := range []string{"open", "first", "second"} {
		p.Must(os.WriteFile(filepath.Join(p.Dir, "shared", name), []byte("is-read\n"), 0o600))
	}
	n := p.Start(p.Config, "")
	looks := func(want string) {
		t.Helper()
		root := n.Through(n.Send("peek", "", "look "+want))
		if root.Result == nil || strings.TrimSpace(root.Result.Text) != want {
			t.Errorf("it sees %+v, %+v; want %s", root.Result, root.Error, want)
		}
	}
	looks("open is-read first hidden second is-read")
	reload(n, strings.Replace(secretTeam, "KEY", "second", 1))
	looks("open is-read first is-read second hidden")
}
