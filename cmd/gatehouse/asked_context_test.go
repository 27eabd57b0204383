package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/web/wire"
)

// whisperTeam is a caller that hands "release 8" to a deployer and, once people were asked,
// writes another release wherever the deployer might look, until it has ended.
const whisperTeam = `
engine: {workers: 4, lease: 5s}
agents:
  caller:
    kind: command
    sandbox: off
    command: [sh, -c, 'cat > /dev/null; printf %s "$GATEHOUSE_TOKEN" > DIR/token.new; mv DIR/token.new DIR/token; while [ ! -e DIR/ran ]; do sleep 0.05; done']
  deployer:
    kind: command
    sandbox: off
    ask_first: true
    reads: READS
    command: [sh, -c, 'cat > /dev/null; { cat "$GATEHOUSE_CONTEXT"; gatehouse context get "handoff:$GATEHOUSE_TASK_ID" release; gatehouse context list "handoff:$GATEHOUSE_TASK_ID"; gatehouse context get shared release; gatehouse context get named release; } > DIR/run 2>&1; mv DIR/run DIR/ran']
`

// TestWhatIsWrittenAfterTheYesIsNotRead: a yes to a hand-over covers its context. What its
// caller writes into the shared context beside it, nobody has read, so the agent does not
// read it either, unless its own reads name the place.
func TestWhatIsWrittenAfterTheYesIsNotRead(t *testing.T) {
	t.Parallel()
	for reads, named := range map[string]bool{"[named]": true, "[]": false, "": false} {
		t.Run("reads "+reads, func(t *testing.T) {
			t.Parallel()
			text := strings.ReplaceAll(whisperTeam, "READS", reads)
			if reads == "" {
				text = strings.ReplaceAll(whisperTeam, "    reads: READS\n", "")
			}
			p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), text)
			n := p.Start(p.Config, "")
			task := n.Send("caller", "", "release")
			p.Until("the caller", func() bool { return p.Exists("token") })
			secret, err := os.ReadFile(filepath.Join(p.Dir, "token"))
			p.Must(err)
			token := string(secret)
			var child wire.Delegation
			code, err := n.Call(http.MethodPost, "/api/v1/delegations", token, map[string]any{"to": "deployer", "text": "deploy", "context": map[string]string{"release": "eight"}}, &child)
			if p.Must(err); code != http.StatusCreated {
				t.Fatalf("the hand-over: %d", code)
			}
			r := p.Asked(task)
			for _, place := range []string{"handoff:" + task, "shared", "deployer", "named"} {
				for _, key := range []string{"release", "more"} {
					if code, err := n.Call(http.MethodPut, "/api/v1/context/"+place+"/"+key, token, map[string]any{"value": "whispered to " + place}, nil); err != nil || code >= http.StatusBadRequest {
						t.Fatalf("writing %s: %d, %v", place, code, err)
					}
				}
			}
			if code, why := yes(n, n.Approver, r); code != http.StatusOK {
				t.Fatalf("the yes: %d %+v", code, why)
			}
			p.Until("deployer's end", func() bool { return p.Exists("ran") })
			read, err := os.ReadFile(filepath.Join(p.Dir, "ran"))
			p.Must(err)
			got := string(read)
			if strings.Count(got, "eight") < 3 {
				t.Errorf("deployer was not given what was asked:\n%s", got)
			}
			for _, place := range []string{"handoff:" + task, "shared", "deployer"} {
				if strings.Contains(got, "whispered to "+place) {
					t.Errorf("deployer read what was written to %s after the question:\n%s", place, got)
				}
			}
			if strings.Contains(got, "whispered to named") != named {
				t.Errorf("reads is %q, and deployer read:\n%s", reads, got)
			}
			if !strings.Contains(got, "Hand it on as context, or add it to the agent's reads") {
				t.Errorf("nothing says what to do:\n%s", got)
			}
			n.Stop()
		})
	}
}
