package patch

import (
	"strconv"
	"strings"

	"gatehouse/orchestrator/textcut"
)

// header is what stands before the hunks of one file.
type header struct {
	git              bool        // began with "diff --git"
	pairs            [][2]string // the ways to read that line, without a/ and b/
	oldMode, newMode string
	newFile, deleted string // the mode named there
	renameFrom       string
	renameTo         string
	copyFrom, copyTo string
	from, to         string // of --- and +++: "a/x", "b/x" or "/dev/null"; "" when absent
	seen             map[string]bool
}

// The extended header lines that git writes; each at most once.
var extendedLines = []string{"old mode ", "new mode ", "deleted file mode ", "new file mode ",
	"copy from ", "copy to ", "rename from ", "rename to ", "similarity index ", "dissimilarity index ", "index "}

// extended reads the lines between "diff --git" and "---".
func (p *parser) extended(h *header) error {
	h.seen = map[string]bool{}
	for {
		line, ok := p.peek()
		if !ok {
			return nil
		}
		if strings.HasPrefix(line, "GIT binary patch") || strings.HasPrefix(line, "Binary files ") {
			return p.bad("binary changes cannot come as text. Change the file in the checkout instead.")
		}
		key := ""
		for _, k := range extendedLines {
			if strings.HasPrefix(line, k) {
				key = k
				break
			}
		}
		if key == "" {
			return nil
		}
		if h.seen[key] {
			return p.bad("%q stands twice.", strings.TrimSpace(key))
		}
		h.seen[key] = true
		if !h.set(key, line[len(key):]) {
			return p.bad("%q cannot be read.", textcut.Brief(line, 80))
		}
		p.at++
	}
}

// set stores one extended header line.
func (h *header) set(key, value string) bool {
	name := func(to *string) bool {
		s, ok := unquoteName(value)
		*to = s
		return ok && s != ""
	}
	mode := func(to *string) bool {
		*to = value
		return len(value) == 6 && strings.Trim(value, "01234567") == ""
	}
	switch key {
	case "old mode ":
		return mode(&h.oldMode)
	case "new mode ":
		return mode(&h.newMode)
	case "deleted file mode ":
		return mode(&h.deleted)
	case "new file mode ":
		return mode(&h.newFile)
	case "copy from ":
		return name(&h.copyFrom)
	case "copy to ":
		return name(&h.copyTo)
	case "rename from ":
		return name(&h.renameFrom)
	case "rename to ":
		return name(&h.renameTo)
	case "similarity index ", "dissimilarity index ":
		n, ok := strings.CutSuffix(value, "%")
		v, ok2 := parseCount(n)
		return ok && ok2 && v <= 100
	}
	// "index": made-up ids are common and decide nothing, so only the shape counts.
	ids, m, has := strings.Cut(value, " ")
	a, b, ok := strings.Cut(ids, "..")
	return ok && isHex(a) && isHex(b) && (!has || (len(m) == 6 && strings.Trim(m, "01234567") == ""))
}

func isHex(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// resolve decides what happens to which file; all that the header says must
// agree. It returns what is wrong, or "".
func (h *header) resolve(f *filePatch) string {
	if problem := h.kind(f); problem != "" {
		return problem
	}
	if !h.git {
		return h.plain(f)
	}
	old, new, ok := h.names()
	if !ok {
		return "the names of \"diff --git\" differ from each other or from the lines below it."
	}
	if f.status == Modified { // "--- /dev/null" may stand in for a missing "new file mode"
		switch {
		case h.from == "/dev/null" && h.oldMode == "" && h.newMode == "":
			f.status, f.newMode = Added, modeFile
		case h.to == "/dev/null" && h.oldMode == "" && h.newMode == "":
			f.status = Deleted
		}
	}
	if f.status != Added {
		f.old = old
	}
	if f.status != Deleted {
		f.new = new
	}
	if h.from == "" {
		return ""
	}
	wantFrom, wantTo := "a/"+f.old, "b/"+f.new
	if f.status == Added {
		wantFrom = "/dev/null"
	}
	if f.status == Deleted {
		wantTo = "/dev/null"
	}
	if h.from != wantFrom || h.to != wantTo {
		return "the names after --- and +++ are not those of \"diff --git\"."
	}
	return ""
}

// kind reads status and modes from the extended lines.
func (h *header) kind(f *filePatch) string {
	kinds := 0
	for _, k := range []string{"new file mode ", "deleted file mode ", "rename from ", "copy from "} {
		if h.seen[k] {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return "the file is said to be two of new, deleted, renamed and copied."
	case (h.renameFrom == "") != (h.renameTo == ""), (h.copyFrom == "") != (h.copyTo == ""):
		return "a rename or copy needs both its from and its to."
	case (h.oldMode == "") != (h.newMode == ""):
		return "a change of mode needs both old mode and new mode."
	case h.oldMode != "" && (h.newFile != "" || h.deleted != ""):
		return "a new or deleted file has no change of mode."
	}
	f.status, f.oldMode, f.newMode = Modified, h.oldMode, h.newMode
	switch {
	case h.newFile != "":
		f.status, f.newMode = Added, h.newFile
	case h.deleted != "":
		f.status, f.oldMode = Deleted, h.deleted
	case h.renameFrom != "":
		f.status = Renamed
	case h.copyFrom != "":
		f.status = Copied
	}
	return ""
}

// names picks the reading of "diff --git" that the other lines agree with.
func (h *header) names() (old, new string, ok bool) {
	from, to := h.renameFrom+h.copyFrom, h.renameTo+h.copyTo
	for _, p := range h.pairs {
		if from != "" && p[0] == from && p[1] == to && from != to {
			return p[0], p[1], true
		}
		if from == "" && p[0] == p[1] {
			return p[0], p[1], true
		}
	}
	return "", "", false
}

// plain resolves a file that has only --- and +++.
func (h *header) plain(f *filePatch) string {
	old, okOld := strings.CutPrefix(h.from, "a/")
	new, okNew := strings.CutPrefix(h.to, "b/")
	okOld, okNew = okOld && old != "", okNew && new != ""
	switch {
	case h.from == "/dev/null" && okNew:
		f.status, f.new, f.newMode = Added, new, modeFile
	case okOld && h.to == "/dev/null":
		f.status, f.old = Deleted, old
	case okOld && okNew && old == new:
		f.old, f.new = old, new
	case !okOld || !okNew:
		return "names stand as a/NAME and b/NAME, or /dev/null."
	default:
		return "--- and +++ name two files. A rename needs the lines that git diff writes."
	}
	return ""
}

// splitNames gives every way to read `a/x b/y`.
func splitNames(s string) [][2]string {
	var pairs [][2]string
	add := func(a, b string) {
		a, okA := strings.CutPrefix(a, "a/")
		b, okB := strings.CutPrefix(b, "b/")
		if okA && okB && a != "" && b != "" {
			pairs = append(pairs, [2]string{a, b})
		}
	}
	if strings.HasPrefix(s, `"`) {
		a, rest, ok := unquotePrefix(s)
		if !ok || !strings.HasPrefix(rest, " ") {
			return nil
		}
		if b, ok := unquoteName(rest[1:]); ok {
			add(a, b)
		}
		return pairs
	}
	for i := 0; i < len(s) && len(pairs) < 64; i++ {
		if s[i] != ' ' {
			continue
		}
		if strings.HasPrefix(s[i+1:], "b/") {
			add(s[:i], s[i+1:])
		} else if strings.HasPrefix(s[i+1:], `"b/`) {
			if b, ok := unquoteName(s[i+1:]); ok {
				add(s[:i], b)
			}
		}
	}
	return pairs
}

// headerName reads what follows --- or +++: a name, and after a tab a time that
// some programs write, which is dropped.
func headerName(s string) (string, bool) {
	if strings.HasPrefix(s, `"`) {
		name, rest, ok := unquotePrefix(s)
		return name, ok && (rest == "" || rest[0] == '\t')
	}
	name, _, _ := strings.Cut(s, "\t")
	return name, plainName(name)
}

// unquoteName reads a whole text as a plain or quoted name.
func unquoteName(s string) (string, bool) {
	if strings.HasPrefix(s, `"`) {
		name, rest, ok := unquotePrefix(s)
		return name, ok && rest == ""
	}
	return s, plainName(s)
}

// plainName: git quotes names with control bytes, quotes or backslashes.
func plainName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return s != ""
}

// unquotePrefix reads a C-style quoted name at the start of s.
func unquotePrefix(s string) (name, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c != '\\':
			b.WriteByte(c)
		case i+3 < len(s) && s[i+1] >= '0' && s[i+1] <= '3':
			n, err := strconv.ParseUint(s[i+1:i+4], 8, 8)
			if err != nil {
				return "", "", false
			}
			b.WriteByte(byte(n))
			i += 3
		default:
			if i++; i == len(s) {
				return "", "", false
			}
			at := strings.IndexByte(`abtnvfr"\`, s[i])
			if at < 0 {
				return "", "", false
			}
			b.WriteByte("\a\b\t\n\v\f\r\"\\"[at])
		}
	}
	return "", "", false
}

// quoteName is the inverse: always quoted, ASCII only.
func quoteName(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			b.WriteByte('\\')
			b.WriteByte('0' + c>>6)
			b.WriteByte('0' + c>>3&7)
			b.WriteByte('0' + c&7)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
