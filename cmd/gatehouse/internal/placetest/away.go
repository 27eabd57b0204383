package placetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// awayTeam has agents that work until a file is there.
const awayTeam = `
engine: {workers: 4, lease: LEASE}
repositories:
  app: {path: "REPO", branch: main}
agents:
  early: {kind: command, repository: app, sandbox: off, env: {PLACE: MARK}, command: [sh, "DIR/until", early]}
  late:  {kind: command, repository: app, sandbox: off, env: {PLACE: MARK}, command: [sh, "DIR/until", late]}
  boss:  {kind: command, sandbox: off, env: {PLACE: MARK, GORACE: NO_SLEEP}, command: [sh, "DIR/until", boss, clerk]}
  clerk: {kind: command, command: [echo, done]}
  coder: {kind: command, repository: app, sandbox: off, command: [sh, -c, "echo hello > coder"]}
`

// untilEnds is what these agents do: they say that they work, wait, change a file and
// may hand on.
const untilEnds = `cd "${0%/*}"; here=$OLDPWD
touch "$1-works"
until [ -e "$1-ends" ]; do sleep 0.05; done
echo "$1" > "$here/$1"
[ -z "$2" ] || gatehouse delegate "$2" "Do it"
`

// AwayPlace is a place with this team and leases of a length.
func AwayPlace(t *testing.T, database, lease string) *Place {
	t.Helper()
	p := New(t, database, strings.ReplaceAll(awayTeam, "LEASE", lease))
	p.Must(os.WriteFile(filepath.Join(p.Dir, "until"), []byte(untilEnds), 0o600))
	return p
}

// SqlitePlace is a place on SQLite for stories that are not about the database.
func SqlitePlace(t *testing.T, team string) *Place {
	t.Helper()
	return New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), team)
}
