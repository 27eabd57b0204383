package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Artifact is something a run made that is not a change of the repository (H4). An agent
// gives it with a Text, or with the Path of a file in its checkout. Once the run has ended
// its content is stored under SHA256, and outlives the checkout.
type Artifact struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type,omitempty"`
	Path      string `json:"path,omitempty"` // as the agent gave it; only results of before have it
	// Text is the whole content: of a stored one only where that is a short text.
	Text   string `json:"text,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // of the content, in hex; "" before it is stored
	Size   int64  `json:"size,omitempty"`   // bytes
	URL    string `json:"url,omitempty"`    // where callers get the content, from the server's address on
}

// The limits of artifacts.
const (
	MaxArtifacts    = 100     // of one result
	MaxArtifact     = 8 << 20 // bytes of one
	MaxArtifactSum  = 32 << 20
	MaxArtifactName = 200 // bytes
)

// Check says what is wrong with an artifact as an agent gives it; nil is fine.
func (a Artifact) Check() *Failure {
	switch {
	case strings.TrimSpace(a.Name) == "":
		return Fail(CodeArtifact, "An artifact has no name. Give each one a name.")
	case len(a.Name) > MaxArtifactName || !utf8.ValidString(a.Name) || strings.ContainsFunc(a.Name, unicode.IsControl):
		return Fail(CodeArtifact, "The artifact %.60q has no name that can be kept. Use up to %d bytes of text in one line.", a.Name, MaxArtifactName)
	case a.Text != "" && a.Path != "":
		return Fail(CodeArtifact, "The artifact %q has both a text and a path. Give one of them.", a.Name)
	case len(a.Text) > MaxArtifact:
		return Fail(CodeArtifact, "The artifact %q has %d bytes; %d is the limit. Make it smaller.", a.Name, len(a.Text), MaxArtifact)
	case a.Path != "" && !inside(a.Path):
		return Fail(CodeArtifact, "The artifact %q is at %q, which is not below the checkout. Name a file in the checkout by its path from there, without \"..\".", a.Name, a.Path)
	}
	return nil
}

// inside reports whether a path stays in the checkout, outside of git's own folder.
func inside(p string) bool {
	if !filepath.IsLocal(p) || strings.ContainsRune(p, 0) {
		return false
	}
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(p)), "/") {
		if strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

// Read returns the content of an artifact of a run that worked in dir, which is "" without
// a checkout. A path that is, or leads over, a link is refused: it could lead anywhere.
func (a Artifact) Read(dir string) ([]byte, error) {
	if f := a.Check(); f != nil {
		return nil, f
	}
	if a.Path == "" {
		return []byte(a.Text), nil
	}
	if dir == "" {
		return nil, Fail(CodeArtifact, "The artifact %q is at %q, but the run had no checkout. Give it as a text.", a.Name, a.Path)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the artifact %s: %w", a.Name, err)
	}
	defer root.Close() //nolint:errcheck // it was only read
	name := filepath.Clean(a.Path)
	found, err := plainFile(root, name)
	if err != nil {
		return nil, a.unread(err)
	}
	if found.Size() > MaxArtifact {
		return nil, Fail(CodeArtifact, "The artifact %q has %d bytes; %d is the limit. Make it smaller.", a.Name, found.Size(), MaxArtifact)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, a.unread(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if opened, err := f.Stat(); err != nil || !os.SameFile(found, opened) {
		return nil, a.unread(errNoFile)
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxArtifact+1))
	if err == nil && len(content) > MaxArtifact {
		err = errNoFile
	}
	if err != nil {
		return nil, a.unread(err)
	}
	return content, nil
}

var errNoFile = errors.New("it is no plain file")

// plainFile is the file at a path over which no link leads.
func plainFile(root *os.Root, name string) (fs.FileInfo, error) {
	parts := strings.Split(filepath.ToSlash(name), "/")
	for i := range parts {
		info, err := root.Lstat(filepath.FromSlash(path.Join(parts[:i+1]...)))
		last := i == len(parts)-1
		switch {
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, errors.New("a link leads there")
		case last && !info.Mode().IsRegular():
			return nil, errNoFile
		case last:
			return info, nil
		}
	}
	return nil, errNoFile
}

// unread is the failure of a path that cannot be read.
func (a Artifact) unread(err error) *Failure {
	why := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		why = "there is no such file"
	}
	return Fail(CodeArtifact, "The artifact %q at %q was not taken: %s. Name a plain file in the checkout.", a.Name, a.Path, why)
}

// Words is a stored artifact as a calling agent reads it: its name, what it is, and the text
// where that is short.
func (a Artifact) Words() string {
	head := "Artifact " + a.Name
	switch {
	case a.SHA256 != "":
		head += fmt.Sprintf(" (%s, %d bytes, sha256 %s)", a.MediaType, a.Size, a.SHA256)
	case a.Path != "":
		head += " " + a.Path
	}
	return strings.TrimRight(head+"\n"+a.Text, "\n ")
}

// TypeOf is the media type of an artifact: the one that was given where it is one, else by
// the ending of its path or name, else by its content.
func (a Artifact) TypeOf(content []byte) string {
	if given, params, err := mime.ParseMediaType(a.MediaType); err == nil && strings.Contains(given, "/") {
		if t := mime.FormatMediaType(given, params); t != "" {
			return t
		}
	}
	for _, name := range []string{a.Path, a.Name} {
		switch ext := strings.ToLower(path.Ext(name)); ext {
		case "":
		case ".md":
			return "text/markdown; charset=utf-8"
		default:
			if t := mime.TypeByExtension(ext); t != "" {
				return t
			}
		}
	}
	if utf8.Valid(content) {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
