package browser

import (
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// hearingTeam has a program that takes one line of what people say whenever a file is there.
const hearingTeam = `
agents:
  coder: {kind: command, protocol: jsonl, sandbox: off, command: [sh, -c, 'read -r task; while [ ! -f DIR/read ]; do sleep 0.05; done; read -r first; read -r second; while [ ! -f DIR/end ]; do sleep 0.05; done; echo "{\"type\":\"result\",\"text\":\"heard\"}"']}
`

// TestSayingSomethingToAnAgentInTheBrowser: whoever asked for a task says something to its agent
// from its page, with the keyboard, without script and on a phone, and sees when it was told.
func TestSayingSomethingToAnAgentInTheBrowser(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), hearingTeam)
	p.Person("olga", people.Operator)
	n := p.Start(p.Config, "")
	u, err := p.Store.UserByName(t.Context(), "olga")
	p.Must(err)
	code, err := placetest.SignedIn(t.Context(), p.Store, u)
	p.Must(err)
	olga := browsertest.New(t).Page()
	olga.Open(n.URL + "/login/link?code=" + code)
	olga.WaitText("Needs you")
	olga.Choose("Agent", "coder")
	olga.Fill("Task", "Write it")
	olga.Click("button", "Send")
	olga.WaitText("Say something to coder")
	address := strings.Split(olga.URL(), "?")[0]
	gallery(t, olga, "messages-none", address)
	olga.Desktop().Light().Open(address)
	olga.Fill("Say something to coder", "Keep the old name as an alias, and say so in the log.\nThank you.")
	olga.Click("button", "Send message")
	olga.WaitText("Keep the old name as an alias")
	if strings.Contains(olga.Text(), "U+000D") {
		t.Error("the line ends of the form are shown")
	}

	olga.Open(address)
	olga.Fill("Say something to coder", "And "+strings.Repeat("ä", 4100)) // more bytes than characters
	olga.Expect("400 (Bad Request)")
	olga.Click("button", "Send message")
	olga.WaitText("8192 is the limit")
	if got := browsertest.Eval[int](olga, "document.getElementById('tell-text').value.length"); got != 4104 {
		t.Errorf("%d characters of what was refused are kept", got)
	}
	olga.Shot("messages-refused")
	for _, v := range olga.Violations() {
		t.Errorf("refused: %+v", v)
	}
	olga.Script(false).Open(address)
	olga.Fill("Say something to coder", "And write it in French.")
	olga.Click("button", "Send message")
	olga.WaitText("And write it in French.")
	olga.Script(true)
	p.Touch("read")
	olga.Desktop().Light().Open(address)
	olga.WaitGone("not told yet")
	gallery(t, olga, "messages-read", address)
	for _, v := range olga.Violations() {
		t.Errorf("read: %+v", v)
	}
	p.Touch("end")
	id := strings.TrimPrefix(address, n.URL+"/delegations/")
	p.Until("the end", func() bool { return p.Root(id).State == orchestrator.Completed })
	olga.WaitGone("Send message")
	olga.WaitText("And write it in French.")
	gallery(t, olga, "messages-ended", address)
}
