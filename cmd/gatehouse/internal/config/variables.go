package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// sources is where the texts of a file take what they name as ${NAME} or ${file:PATH}.
type sources struct {
	env    func(string) (string, bool)
	file   func(path string) (text, warning string, err error) // nil: readSecret
	needed func(key string) bool                               // whether it is a mistake that what stands at a key is missing
}

// Unset is a text that could not be put in, where the command that asks can do without.
type Unset struct {
	Key   string // channels.telegram.token
	Name  string // a variable, or file:PATH
	Place string // file:line:column
	Why   string
}

// everything is needed: by the server.
func everything(string) bool { return true }

// needed names the keys that matter, each with all below it.
func needed(keys ...string) func(string) bool {
	return func(key string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return below(key, k) })
	}
}

// below says whether a key is another one or stands below it.
func below(key, above string) bool {
	rest, ok := strings.CutPrefix(key, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// nowhere has an empty text for everything.
var nowhere = sources{env: func(string) (string, bool) { return "", true }, file: func(string) (string, string, error) { return "", "", nil }, needed: everything}

// LoadFor is Load for a command that uses only what stands at the keys: a variable or a
// file of secrets that is missing elsewhere is no mistake, and is among Unset. Its place
// keeps the text as it is written.
func LoadFor(path string, env func(string) (string, bool), keys ...string) (*Config, error) {
	return load(path, sources{env: env, needed: needed(keys...)})
}

// Unset lists what could not be put in, by its key; none after Load.
func (c *Config) Unset() []Unset {
	if c.doc == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(c.doc.unset), func(x, y Unset) int { return strings.Compare(x.Key+x.Name, y.Key+y.Name) })
}

// Lacks names what could not be put in at a key or below it, "" when all of it is known.
func (c *Config) Lacks(key string) string {
	for _, u := range c.Unset() {
		if below(u.Key, key) {
			return u.Name
		}
	}
	return ""
}

var variable = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// expand replaces ${NAME} and ${file:PATH} in every text below n, which stands at key;
// $${NAME} stays as ${NAME}.
func (d *document) expand(n *yaml.Node, key string) Problems {
	var problems Problems
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			problems = append(problems, d.expand(c, fmt.Sprintf("%s[%s]", key, called(c, i)))...)
		case n.Kind != yaml.MappingNode:
			problems = append(problems, d.expand(c, key)...)
		case i%2 == 1:
			problems = append(problems, d.expand(c, under(key, n.Content[i-1].Value))...)
		}
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		return problems
	}
	written := n.Value
	n.Value = variable.ReplaceAllStringFunc(written, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		name := m[2 : len(m)-1]
		value, why := d.fetch(n, name)
		if why == "" {
			return value
		}
		p := d.at(n, why)
		if !d.from.needed(key) {
			d.unset[n] = Unset{Key: key, Name: name, Place: fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column), Why: why}
			return m
		}
		problems = append(problems, p)
		return value
	})
	if n.Value != written || variable.MatchString(written) {
		d.raw[n] = written
	}
	return problems
}

// fetch is what a name stands for, or why nobody can tell and what to do.
func (d *document) fetch(n *yaml.Node, name string) (value, why string) {
	path, file := strings.CutPrefix(name, "file:")
	if !file {
		value, ok := d.from.env(name)
		if !ok {
			return "", fmt.Sprintf("the environment variable %s is not set. Set it before the start, or write the value here.", name)
		}
		return value, ""
	}
	if path == "" {
		return "", "${file:} names no file. Write ${file:/run/secrets/NAME}."
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.name), path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err.Error() + "."
	}
	if !slices.Contains(d.files, path) {
		d.files = append(d.files, path)
	}
	read := d.from.file
	if read == nil {
		read = readSecret
	}
	value, warning, err := read(path)
	if err != nil {
		return "", err.Error() + "."
	}
	if warning != "" {
		d.loose = append(d.loose, d.at(n, warning).Error())
	}
	return value, ""
}

// unknown says that a text at n, or right below it, could not be put in, so that nobody
// can judge here what stands there.
func (d *document) unknown(n *yaml.Node) bool {
	if n == nil || len(d.unset) == 0 {
		return false
	}
	missing := func(n *yaml.Node) bool { _, ok := d.unset[n]; return ok }
	return missing(n) || slices.ContainsFunc(n.Content, missing)
}

// maxSecret is the most that a file named by ${file:PATH} may have, in bytes.
const maxSecret = 64 << 10

// readSecret reads the text of a file without its last line ends. The warning says who else
// may read or write it. It never waits: a pipe is refused.
func readSecret(path string) (text, warning string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", fmt.Errorf("the file %s is not there. Make it, or name another one", path)
	case errors.As(err, &at):
		return "", "", fmt.Errorf("the file %s cannot be read: %w. Let this user read it", path, at.Err)
	case err != nil:
		return "", "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", "", err
	}
	if !info.Mode().IsRegular() {
		return "", "", fmt.Errorf("%s is no plain file. Name a file with the value in it", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", "", fmt.Errorf("the file %s cannot be read: %w", path, err)
	case len(b) > maxSecret:
		return "", "", fmt.Errorf("the file %s has more than %d kB. Name one with the value alone", path, maxSecret>>10)
	case !utf8.Valid(b) || strings.ContainsRune(string(b), 0):
		return "", "", fmt.Errorf("the file %s is no text. Name one with the value alone", path)
	}
	text = strings.TrimRight(string(b), "\r\n")
	if text == "" {
		return "", "", fmt.Errorf("the file %s is empty. Write the value into it", path)
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		warning = fmt.Sprintf("the file %s can be changed by others of this machine. Run: chmod 600 %s", path, path)
	case mode&0o004 != 0:
		warning = fmt.Sprintf("the file %s can be read by everybody on this machine. Run: chmod 600 %s", path, path)
	}
	return text, warning, nil
}
