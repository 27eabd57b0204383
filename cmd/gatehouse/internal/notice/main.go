// Command notice writes the licences of all that the program is made of, for `gatehouse licenses`:
// the modules that are linked for Linux, Go's own library, and what static/vendor serves.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	raw, err := notice()
	if err == nil {
		err = os.WriteFile(os.Args[1], raw, 0o644) //nolint:gosec // the file is part of the source
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// part is something with a licence.
type part struct {
	name  string   // with its version
	files []string // its licence, and what it wants to be said beside it
}

// notice is the whole text: what there is, and each text once, below all that it belongs to.
func notice() ([]byte, error) {
	parts, err := parts()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("Gatehouse is made of the following, each with its own licence.\n\n")
	var texts []string
	of := map[string][]string{}
	for _, p := range parts {
		fmt.Fprintln(&out, p.name)
		for _, f := range p.files {
			raw, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(raw), "\r\n", "\n"))
			if of[text] == nil {
				texts = append(texts, text)
			}
			of[text] = append(of[text], p.name)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(of[text], "\n"), text)
	}
	return out.Bytes(), nil
}

// parts lists them. The platform is fixed, so that the same comes out everywhere.
func parts() ([]part, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	lines := slices.DeleteFunc(strings.Split(string(list), "\n"), func(l string) bool { return l == "" })
	slices.Sort(lines)
	all := []part{{"Go's standard library", []string{filepath.Join(strings.TrimSpace(string(root)), "LICENSE")}}}
	for _, line := range slices.Compact(lines) {
		name, dir, _ := strings.Cut(line, "\t")
		files, err := licences(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, part{name, files})
	}
	vendored, err := filepath.Glob("../../static/vendor/*.LICENSE")
	if err != nil {
		return nil, err
	}
	for _, f := range vendored {
		all = append(all, part{strings.TrimSuffix(filepath.Base(f), ".LICENSE"), []string{f}})
	}
	return all, nil
}

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-.].*)?$`)

// licences are the files of a module that have its licence.
func licences(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if licence.MatchString(e.Name()) && !e.IsDir() && filepath.Ext(e.Name()) != ".go" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no licence is found in %s", dir)
	}
	return files, err
}
