package patch

import (
	"bytes"
	"strconv"
	"strings"

	"gatehouse/orchestrator/textcut"
)

// The strict parser reads a unified diff and takes nothing on trust: every
// count must be right, every name must be plain, nothing may stand between the
// files. What it accepts is written out again in one canonical form (render.go),
// so that git never reads the agent's own text.

// filePatch is one file of a parsed diff.
type filePatch struct {
	status  Status // Added, Modified, Deleted, Renamed, Copied or ModeChanged
	old     string // "" for Added
	new     string // "" for Deleted
	oldMode string // "" when the diff does not say
	newMode string
	hunks   []textHunk
	line    int // where it begins in the text, 1-based
}

// path is the name that the file is known by.
func (f *filePatch) path() string {
	if f.new != "" {
		return f.new
	}
	return f.old
}

type textHunk struct {
	oldStart, oldLines int
	newStart, newLines int
	lines              []textLine
}

type textLine struct {
	op   byte   // '+', '-' or ' '
	text string // with its line feed, unless the file ends without one
}

// parser walks over the lines of a diff.
type parser struct {
	lines []string // without line feeds
	at    int
}

// parsePatch reads a whole diff. Blank text is no files and no error; every
// error is a *Refusal. Paths are checked, and none comes twice.
func parsePatch(text []byte, limits Limits) ([]filePatch, error) {
	if len(text) > limits.TextBytes {
		return nil, refuse(CodeTooLarge, "", "The patch is %d bytes long; %d is the limit.", len(text), limits.TextBytes)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	p := &parser{lines: strings.Split(string(text), "\n")}
	if n := len(p.lines); p.lines[n-1] == "" {
		p.lines = p.lines[:n-1]
	}
	var files []filePatch
	touched := map[string]bool{}
	for {
		for p.at < len(p.lines) && p.lines[p.at] == "" {
			p.at++
		}
		if p.at == len(p.lines) {
			return files, nil
		}
		f, err := p.file()
		if err != nil {
			return nil, err
		}
		if err := checkFile(f, touched); err != nil {
			return nil, err
		}
		if files = append(files, *f); len(files) > limits.Files {
			return nil, refuse(CodeTooLarge, "", "The patch changes more than %d files.", limits.Files)
		}
	}
}

// checkFile refuses bad paths, bad modes and a second change of one path.
func checkFile(f *filePatch, touched map[string]bool) error {
	names := []string{f.new}
	if f.old != f.new && f.status != Copied {
		names = append(names, f.old)
	}
	for _, name := range []string{f.old, f.new} {
		if name == "" {
			continue
		}
		if r := checkPath(name); r != nil {
			return r
		}
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if touched[name] {
			return refuse(CodeDuplicateFile, name, "%s is changed twice in one patch (line %d). Put all its changes into one part.", Shown(name), f.line)
		}
		touched[name] = true
	}
	for _, mode := range []string{f.oldMode, f.newMode} {
		if r := checkMode(mode, f.path()); mode != "" && r != nil {
			return r
		}
	}
	return nil
}

// checkMode refuses every mode but those of a file, a program and a link.
func checkMode(mode, path string) *Refusal {
	switch mode {
	case modeFile, modeExec, modeLink:
		return nil
	case modeGit:
		return refuse(CodeGitlink, path, "%s would become a submodule, which agents may not make or change.", Shown(path))
	}
	return refuse(CodeBadMode, path, "%s has mode %s; only 100644, 100755 and links are taken.", Shown(path), Shown(mode))
}

func (p *parser) bad(format string, args ...any) error {
	return p.badAt(p.at, format, args...)
}

func (p *parser) badAt(at int, format string, args ...any) error {
	r := refuse(CodeMalformed, "", format, args...)
	r.Message = "Line " + strconv.Itoa(at+1) + " of the patch: " + r.Message
	return r
}

func (p *parser) peek() (string, bool) {
	if p.at < len(p.lines) {
		return p.lines[p.at], true
	}
	return "", false
}

// file reads one file's headers and hunks.
func (p *parser) file() (*filePatch, error) {
	f := &filePatch{line: p.at + 1}
	start := p.at
	line, _ := p.peek()
	h := &header{}
	if rest, ok := strings.CutPrefix(line, "diff --git "); ok {
		p.at++
		h.git = true
		h.pairs = splitNames(rest)
		if len(h.pairs) == 0 {
			return nil, p.badAt(start, "the two names cannot be told apart. Names stand as a/NAME b/NAME.")
		}
		if err := p.extended(h); err != nil {
			return nil, err
		}
	} else if !strings.HasPrefix(line, "--- ") {
		return nil, p.bad("expected \"diff --git a/… b/…\" or \"--- a/…\", found %q. Send the bare diff without other text.", textcut.Brief(line, 60))
	}
	if err := p.fromTo(h); err != nil {
		return nil, err
	}
	if err := h.resolve(f); err != "" {
		return nil, p.badAt(start, "%s", err)
	}
	if h.from != "" {
		if err := p.hunks(f); err != nil {
			return nil, err
		}
	}
	return f, p.complete(f, start)
}

// complete checks that the headers and the hunks tell the same story.
func (p *parser) complete(f *filePatch, start int) error {
	changed := f.oldMode != "" && f.newMode != "" && f.oldMode != f.newMode
	if len(f.hunks) == 0 && f.status == Modified {
		if !changed {
			return p.badAt(start, "%s has no hunk and no change of mode.", Shown(f.path()))
		}
		f.status = ModeChanged
	}
	for _, h := range f.hunks {
		if f.status == Added && h.oldLines != 0 {
			return p.badAt(start, "%s is new but has lines of an old file.", Shown(f.new))
		}
		if f.status == Deleted && h.newLines != 0 {
			return p.badAt(start, "%s is deleted but has lines of a new file.", Shown(f.old))
		}
	}
	if (f.status == Added || f.status == Deleted) && len(f.hunks) > 1 {
		return p.badAt(start, "%s is added or deleted in more than one hunk.", Shown(f.path()))
	}
	return nil
}

// fromTo reads the lines "--- a/x" and "+++ b/x", if they are there.
func (p *parser) fromTo(h *header) error {
	line, _ := p.peek()
	rest, ok := strings.CutPrefix(line, "--- ")
	if !ok {
		return nil
	}
	from, ok := headerName(rest)
	if !ok {
		return p.bad("the name after --- cannot be read.")
	}
	p.at++
	line, _ = p.peek()
	rest, ok = strings.CutPrefix(line, "+++ ")
	if !ok {
		return p.bad("expected +++ after ---.")
	}
	to, ok := headerName(rest)
	if !ok {
		return p.bad("the name after +++ cannot be read.")
	}
	p.at++
	h.from, h.to = from, to
	return nil
}

// hunks reads what follows +++; at least one hunk must.
func (p *parser) hunks(f *filePatch) error {
	delta, end := 0, 0
	for {
		line, ok := p.peek()
		if !ok || !strings.HasPrefix(line, "@@") {
			break
		}
		h, err := p.hunk(line)
		if err != nil {
			return err
		}
		at := h.oldStart
		if h.oldLines > 0 {
			at--
		}
		if at < end {
			return p.badAt(p.at-1, "a hunk of %s begins before the one above it ends.", Shown(f.path()))
		}
		want := at + delta
		if h.newLines > 0 {
			want++
		}
		if h.newStart != want {
			return p.badAt(p.at-1, "a hunk of %s says +%d; by the hunks above it must be +%d.", Shown(f.path()), h.newStart, want)
		}
		end = at + h.oldLines
		delta += h.newLines - h.oldLines
		f.hunks = append(f.hunks, *h)
	}
	if len(f.hunks) == 0 {
		return p.bad("expected a hunk (@@ -… +… @@) of %s.", Shown(f.path()))
	}
	return nil
}

// hunk reads one hunk and holds its counts against its lines.
func (p *parser) hunk(head string) (*textHunk, error) {
	h, ok := parseHunkHead(head)
	if !ok {
		return nil, p.bad("%q is no hunk header. It looks like @@ -1,3 +1,4 @@.", textcut.Brief(head, 60))
	}
	start := p.at
	p.at++
	oldLeft, newLeft := h.oldLines, h.newLines
	changes := 0
	for oldLeft > 0 || newLeft > 0 {
		line, ok := p.peek()
		if !ok {
			return nil, p.badAt(start, "the hunk is cut short: %d old and %d new lines are missing.", oldLeft, newLeft)
		}
		op, text := byte(' '), ""
		if line != "" { // some programs strip the blank of an empty context line
			op, text = line[0], line[1:]
		}
		switch op {
		case ' ':
			oldLeft--
			newLeft--
		case '-':
			oldLeft--
			changes++
		case '+':
			newLeft--
			changes++
		default:
			return nil, p.bad("a line of a hunk begins with %q. %d old and %d new lines are still missing by its header.", op, oldLeft, newLeft)
		}
		if oldLeft < 0 || newLeft < 0 {
			return nil, p.bad("the hunk that begins in line %d has more lines than its header says.", start+1)
		}
		p.at++
		h.lines = append(h.lines, textLine{op: op, text: text + "\n"})
		if err := p.noNewline(h, oldLeft, newLeft); err != nil {
			return nil, err
		}
	}
	if changes == 0 {
		return nil, p.badAt(start, "the hunk changes nothing.")
	}
	return h, nil
}

// noNewline takes the mark that a side ends without a line feed.
func (p *parser) noNewline(h *textHunk, oldLeft, newLeft int) error {
	if line, ok := p.peek(); !ok || !strings.HasPrefix(line, `\ `) {
		return nil
	}
	last := &h.lines[len(h.lines)-1]
	if (last.op != '+' && oldLeft > 0) || (last.op != '-' && newLeft > 0) {
		return p.bad("\"No newline at end of file\" stands before the side's last line.")
	}
	last.text = strings.TrimSuffix(last.text, "\n")
	p.at++
	return nil
}

// parseHunkHead reads "@@ -1,3 +1,4 @@ section".
func parseHunkHead(s string) (*textHunk, bool) {
	s, ok := strings.CutPrefix(s, "@@ -")
	if !ok {
		return nil, false
	}
	s, section, ok := strings.Cut(s, " @@")
	if !ok || (section != "" && section[0] != ' ') {
		return nil, false
	}
	old, new, ok := strings.Cut(s, " +")
	if !ok {
		return nil, false
	}
	var h textHunk
	var ok1, ok2 bool
	h.oldStart, h.oldLines, ok1 = parseRange(old)
	h.newStart, h.newLines, ok2 = parseRange(new)
	if !ok1 || !ok2 || (h.oldLines == 0 && h.newLines == 0) {
		return nil, false
	}
	return &h, true
}

// parseRange reads "12,3" or "12". Line 0 exists only for an empty side.
func parseRange(s string) (start, count int, ok bool) {
	a, b, has := strings.Cut(s, ",")
	start, ok = parseCount(a)
	count = 1
	if has && ok {
		count, ok = parseCount(b)
	}
	return start, count, ok && (start > 0 || count == 0)
}

func parseCount(s string) (int, bool) {
	if s == "" || len(s) > 9 || (len(s) > 1 && s[0] == '0') {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
