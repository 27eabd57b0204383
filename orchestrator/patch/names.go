package patch

import (
	"strings"
	"unicode/utf8"
)

// gitName reports whether some file system would take a path component for
// ".git": in another case, with NTFS's short name, streams, trailing dots and
// blanks, or with code points that HFS+ ignores. The rules are those of git's
// verify_path (path.c, utf8.c), asked on every machine, since a patch made on
// one is checked out on others.
func gitName(name string) bool { return isNTFSDotGit(name) || isHFSDotGit(name) }

// isNTFSDotGit also covers plain case folding. A backslash and a colon end the
// name there, as on Windows.
func isNTFSDotGit(name string) bool {
	for part := range strings.SplitSeq(name, `\`) {
		part, _, _ = strings.Cut(part, ":")
		part = strings.ToLower(strings.TrimRight(part, ". "))
		if part == ".git" || part == "git~1" || part == ".git~1" {
			return true
		}
	}
	return false
}

// isHFSDotGit drops what HFS+ ignores, then compares without regard to case.
func isHFSDotGit(name string) bool {
	var b strings.Builder
	for i := 0; i < len(name); {
		c, n := utf8.DecodeRuneInString(name[i:])
		if !ignoredByHFS(c) {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return strings.EqualFold(b.String(), ".git")
}

func ignoredByHFS(c rune) bool {
	switch {
	case c >= 0x200c && c <= 0x200f, c >= 0x202a && c <= 0x202e, c >= 0x206a && c <= 0x206f, c == 0xfeff:
		return true
	}
	return false
}

// checkPath refuses a path that no tree may hold.
func checkPath(path string) *Refusal {
	switch {
	case path == "":
		return refuse(CodePathOutside, "", "A path is empty.")
	case strings.HasPrefix(path, "/"):
		return refuse(CodePathOutside, path, "%s is an absolute path. Use paths inside the repository.", Shown(path))
	case strings.ContainsRune(path, 0):
		return refuse(CodePathOutside, path, "%s holds a NUL byte.", Shown(path))
	case len(path) > 4096:
		return refuse(CodePathOutside, path[:200], "A path is %d bytes long; 4,096 is the limit.", len(path))
	}
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return refuse(CodePathOutside, path, "%s leaves the repository or is not in plain form.", Shown(path))
		case gitName(part):
			return refuse(CodeGitInternal, path, "%s would write into git's own folder.", Shown(path))
		case len(part) > 255:
			return refuse(CodePathOutside, path, "%s has a name of %d bytes; 255 is the limit.", Shown(part[:60]), len(part))
		}
	}
	return nil
}

// gitMeta reports whether a name is one of the files that git itself reads from
// a tree, in any disguise; those must be plain files.
func gitMeta(name string) bool {
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".gitignore" || name == ".gitattributes" || name == ".gitmodules" || name == ".mailmap"
}
