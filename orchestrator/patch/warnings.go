package patch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"gatehouse/orchestrator/mask"
)

// warningWords says what each warning means, in the order in which pages show
// them: what runs by itself first.
var warningWords = []struct{ code, text string }{
	{"ci_file", "CI file changed: it runs on the build machines, often with their secrets."},
	{"autorun", "Runs by itself: editors, shells or package managers execute this without being asked."},
	{"agent_config", "Agent configuration changed: it steers what agents do from now on."},
	{"secret_like", "Looks like a password, key or token."},
	{"bidi", "Text direction is switched: the line may read differently from what runs."},
	{"invisible", "Invisible characters were added, or blanks that are none to a program."},
	{"lookalike", "Look-alike letters were added: a word mixes alphabets or a mark poses as another."},
	{"control_chars", "Control characters were added: a terminal may act on them."},
	{WarnLineEndings, "Line endings changed: carriage returns were added or taken away."},
	{"git_attributes", "Git attributes changed: they decide how git shows and converts files."},
	{"submodule", "Submodule settings changed."},
	{"symlink", "Symbolic link added or changed."},
	{"mode_change", "File mode changed: a file became a program, or a program a file."},
	{"case_collision", "Names differ only in case or accents: on some machines they are one file."},
	{"mass_deletion", "Many files are deleted or moved away."},
	{"binary", "Binary file: the page cannot show what changed."},
	{"cut", "Cut where it is shown: a line or a file is longer than what is drawn of it at once. Links at the cut lead to the rest."},
	{"large", "Large change: too much to read in one go."},
	{"renamed_unseen", "Moved or copied file: nobody has approved this content at this place."},
	{"copy", "Copied file: its content comes from another file."},
	{"lock_file", "Lock file changed: other versions of dependencies are used."},
}

// WarningTitle is a warning's short name for badges and ticks, such as "CI file changed".
func WarningTitle(code string) string {
	for _, w := range warningWords {
		if w.code == code {
			title, _, _ := strings.Cut(w.text, ":")
			return strings.TrimSuffix(title, ".")
		}
	}
	switch code {
	case "checks_failed":
		return "Checks failed"
	case "agent_program":
		return "Program of an agent that asks first"
	case "no_checks":
		return "No checks are set up"
	case "no_sandbox":
		return "Ran without a sandbox"
	case "need_two":
		return "More than one person decides"
	case "rule_error":
		return "A rule could not be evaluated"
	case "steering_files":
		return "Steers programs, left behind"
	case "trust_checkout":
		return "Steers programs, taken as it is"
	}
	return strings.ReplaceAll(code, "_", " ")
}

// largeBytes is from where on one file counts as large; in lines it is MaxLines.
const largeBytes = 1 << 20

// warn fills in warnings and notes.
func (r *Mirror) warn(ctx context.Context, review *Review, baseTree, tree string, scan *scanned) error {
	found := map[string]map[string]bool{} // code → paths
	add := func(code, path string) {
		if found[code] == nil {
			found[code] = map[string]bool{}
		}
		found[code][path] = true
	}
	deleted, moved, lines := 0, 0, 0
	for i := range review.Files {
		f := &review.Files[i]
		switch f.Status {
		case Deleted:
			deleted++
		case Renamed: // it counts as deleted where it was
			moved++
		}
		added, removed := f.Whole()
		lines += added + removed
		r.warnFile(f, scan, add)
		scripts, err := r.packageScripts(ctx, f)
		if err != nil {
			return err
		}
		if scripts {
			add("autorun", f.Path)
		}
	}
	if scan.cut { // the changed lines were too many to be looked through
		add("cut", "")
	}
	if scan.cut || lines > MaxLines {
		add("large", "")
	}
	if deleted+moved > 0 {
		review.Notes = append(review.Notes, Note{"deletion", deletionText(deleted, moved)})
		many, err := r.massDeletion(ctx, baseTree, deleted+moved)
		if err != nil {
			return err
		}
		if many {
			add("mass_deletion", "")
		}
	}
	if err := r.collisions(ctx, review.Files, tree, add); err != nil {
		return err
	}
	for _, w := range warningWords {
		for _, p := range sortedKeys(found[w.code]) {
			review.Warnings = append(review.Warnings, Warning{Code: w.code, Path: p, Text: w.text})
		}
	}
	return nil
}

// deletionText says how many files are not where they were.
func deletionText(deleted, moved int) string {
	switch {
	case moved == 0:
		return countText(deleted, "file is", "files are") + " deleted."
	case deleted == 0:
		return countText(moved, "file is", "files are") + " moved away."
	default:
		return countText(deleted, "file is", "files are") + " deleted and " + countText(moved, "is", "are") + " moved away."
	}
}

// WithWarning puts one more warning among those of a review, in its place by importance
// and path.
func WithWarning(warnings []Warning, code, path string) []Warning {
	rank := func(code string) int {
		for i, w := range warningWords {
			if w.code == code {
				return i
			}
		}
		return len(warningWords)
	}
	w := Warning{Code: code, Path: path}
	if n := rank(code); n < len(warningWords) {
		w.Text = warningWords[n].text
	}
	at := slices.IndexFunc(warnings, func(o Warning) bool {
		return cmp.Or(cmp.Compare(rank(o.Code), rank(code)), cmp.Compare(o.Path, path)) > 0
	})
	if at < 0 {
		at = len(warnings)
	}
	return slices.Insert(slices.Clone(warnings), at, w)
}

func (r *Mirror) warnFile(f *File, scan *scanned, add func(code, path string)) {
	for _, p := range []string{f.Path, f.OldPath} {
		if p == "" {
			continue
		}
		for _, code := range pathWarnings(p) {
			add(code, f.Path)
		}
	}
	for code := range scan.risks[f.Path] {
		add(code, f.Path)
	}
	if f.Status != Deleted {
		for _, p := range Visible(f.Path) {
			if p.Risk != "" {
				add(p.Risk, f.Path)
			}
		}
		if lookalike(f.Path) {
			add(RiskLookalike, f.Path)
		}
	}
	switch {
	case f.OldMode == modeGit || f.NewMode == modeGit:
		add("submodule", f.Path)
	case f.NewMode == modeLink || f.OldMode == modeLink && f.Status != Deleted:
		add("symlink", f.Path)
	case f.OldMode != "" && f.NewMode != "" && f.OldMode != f.NewMode, f.Status == Added && f.NewMode == modeExec:
		add("mode_change", f.Path)
	}
	if f.Binary {
		add("binary", f.Path)
	}
	if f.Status == Copied || f.CopyOf != "" {
		add("copy", f.Path)
	}
	if scan.long[f.Path] || f.TooLarge() {
		add("cut", f.Path)
	}
	if added, removed := f.Whole(); added+removed > MaxLines || max(f.OldSize, f.NewSize) > largeBytes {
		add("large", f.Path)
	}
}

// massDeletion: over 20 files, or half of all (and more than one).
func (r *Mirror) massDeletion(ctx context.Context, baseTree string, deleted int) (bool, error) {
	if deleted > 20 {
		return true, nil
	}
	if deleted < 2 {
		return false, nil
	}
	all, err := r.names(ctx, baseTree)
	return 2*deleted >= len(all), err
}

// collisions finds new names that differ from another only in case or accents,
// in any of their folders.
func (r *Mirror) collisions(ctx context.Context, files []File, tree string, add func(code, path string)) error {
	fresh := map[string][]string{} // folded → new paths and their folders
	for _, f := range files {
		if f.Status == Added || f.Status == Renamed || f.Status == Copied {
			for p := f.Path; p != "."; p = path.Dir(p) {
				fresh[foldName(p)] = append(fresh[foldName(p)], f.Path)
			}
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	all, err := r.names(ctx, tree)
	if err != nil {
		return err
	}
	spelled := map[string]string{}
	seen := map[string]bool{}
	for _, name := range all {
		for p := name; p != "." && !seen[p]; p = path.Dir(p) {
			seen[p] = true
			key := foldName(p)
			news, ok := fresh[key]
			if !ok {
				continue
			}
			if was, ok := spelled[key]; ok && was != p {
				for _, n := range news {
					add("case_collision", n)
				}
			}
			spelled[key] = p
		}
	}
	return nil
}

func foldName(s string) string { return strings.ToLower(norm.NFC.String(s)) }

func countText(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := slices.Sorted(maps.Keys(m))
	return keys
}

// privateKey is a PEM or PGP private key with its body, also when it stands
// escaped in a string. A header alone, as programs that look for keys have it,
// is only worth a warning.
var privateKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----` +
		`(?:\s|\\n|\\r|["'+,]|[A-Za-z-]+: [^\n]*\n)+[A-Za-z0-9+/=]{16}(?:[A-Za-z0-9+/=]|\s|\\n|\\r|["'+,]){40}`)
})

// assigned is something that is called a password, key or token and gets a value; and the
// header of a private key. The shapes of tokens are package mask's.
var assigned = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY` +
	`|(?i:\b(?:password|passwd|secret|api_?key|access_?token|auth_?token)["']?\s*[:=]\s*["'][^"'\s$\{<]{10,}["'])`)

// assignedHints are the letters without one of which nothing matches assigned, in small.
// An expression takes a second for a line of some megabytes, and a search for letters does not.
var assignedHints = []string{"private key", "password", "passwd", "secret", "apikey", "api_key", "token"}

// secretLike reports whether a line of a file, of any length, has what mostly is a
// credential. It stays in the patch as it is: people approve bytes.
func secretLike(line string) bool {
	lower := strings.ToLower(line) // of letters that are not ASCII, an expression folds more
	hinted := strings.ContainsFunc(line, func(r rune) bool { return r > unicode.MaxASCII }) || slices.ContainsFunc(assignedHints, func(h string) bool { return strings.Contains(lower, h) })
	return hinted && assigned.MatchString(line) || mask.Has(line)
}

func countPrivateKeys(content []byte) int {
	if !bytes.Contains(content, []byte("PRIVATE KEY")) {
		return 0
	}
	return len(privateKey().FindAllIndex(content, -1))
}
