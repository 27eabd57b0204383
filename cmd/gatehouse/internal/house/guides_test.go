package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Who does not know the code goes where doc.go and the README point. A file that was renamed sends them into the void.
var (
	fileInRoom = regexp.MustCompile(`(?:^|[\s(,])([a-z0-9_]+\.go)\b`)
	fileByPath = regexp.MustCompile("(?:^|[`(\\s])((?:cmd|web|views|handlers|approval|orchestrator)/[a-z0-9_/]+\\.go)\\b")
)

// astray are the files of a text that are not in a folder.
func astray(names *regexp.Regexp, text, folder string) []string {
	var lost []string
	for _, found := range names.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(folder, found[1])); err != nil {
			lost = append(lost, found[1])
		}
	}
	return lost
}

func TestGuidesPointToFilesThatAreThere(t *testing.T) {
	root := moduleRoot(t)
	for _, p := range modulePackages(t) {
		text, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
		if err != nil {
			continue // its comment stands in another file
		}
		lost := append(astray(fileInRoom, string(text), p.Dir), astray(fileByPath, string(text), root)...)
		if lost != nil {
			t.Errorf("doc.go of %s names files that are not there: %s", p.path(), strings.Join(lost, ", "))
		}
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lost := astray(fileByPath, string(readme), root); lost != nil {
		t.Errorf("README.md names files that are not there: %s", strings.Join(lost, ", "))
	}
}

func TestAGuideThatPointsNowhereIsSeen(t *testing.T) {
	text := "// All rules stand here (rules_test.go, gone.go), and lost.go\n// applies them; orchestrator/store/tx.go is elsewhere."
	if got := strings.Join(astray(fileInRoom, text, "."), " "); got != "gone.go lost.go" {
		t.Errorf("astray are %q", got)
	}
}
