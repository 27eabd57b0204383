// Command pack packs the highlighting library's lexers for the program: one archive that is read
// when a file is shown. The library itself reads all of them whenever a program begins.
//
// What the library writes in Go and not as data cannot be packed, and stays plain.
package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unsafe"

	"gatehouse/views/internal/lexers"

	"github.com/alecthomas/chroma/v2"
	library "github.com/alecthomas/chroma/v2/lexers"
)

func main() {
	raw, err := pack(library.GlobalLexerRegistry)
	if err == nil {
		err = os.WriteFile(os.Args[1], raw, 0o644) //nolint:gosec // the file is part of the source
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pack makes the archive of all lexers of from that are data.
func pack(from *chroma.LexerRegistry) ([]byte, error) {
	var index []lexers.Packed
	rules := map[string][]byte{}
	for _, l := range from.Lexers {
		c := l.Config()
		p := lexers.Packed{Name: c.Name, Aliases: c.Aliases, Filenames: c.Filenames, AliasFilenames: c.AliasFilenames, Priority: c.Priority}
		regex, around := inside(l)
		if regex == nil {
			continue
		}
		if around != nil {
			p.Around = around.Config().Name
		}
		raw, err := rulesOf(regex)
		if errors.Is(err, chroma.ErrNotSerialisable) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		rules[p.Name] = raw
		index = append(index, p)
	}
	slices.SortFunc(index, func(a, b lexers.Packed) int { return strings.Compare(a.Name, b.Name) })
	index = whole(index, rules)
	return archive(index, rules)
}

// inside finds a lexer's rules, and the lexer of the language around it.
func inside(l chroma.Lexer) (rules *chroma.RegexLexer, around chroma.Lexer) {
	if regex, ok := l.(*chroma.RegexLexer); ok {
		return regex, nil
	}
	v := reflect.ValueOf(l).Elem()
	field := func(name string) chroma.Lexer {
		f := v.FieldByName(name)
		if !f.IsValid() {
			return nil
		}
		inner, _ := reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Interface().(chroma.Lexer) //nolint:gosec // the library has no other way to its own field
		return inner
	}
	if inner, ok := field("language").(*chroma.RegexLexer); ok {
		return inner, field("root")
	}
	regex, _ := field("Lexer").(*chroma.RegexLexer)
	return regex, nil
}

// rulesOf writes a lexer's rules down, in one order.
func rulesOf(l *chroma.RegexLexer) ([]byte, error) {
	all, err := l.Rules()
	if err != nil {
		return nil, err
	}
	for _, state := range all {
		for i, r := range state {
			state[i].Type = written(r.Type)
		}
	}
	c := *l.Config()
	c.Analyse = nil // files are known by their names
	same, err := chroma.NewLexer(&c, func() chroma.Rules { return all })
	if err != nil {
		return nil, err
	}
	raw, err := chroma.Marshal(same)
	if err != nil {
		return nil, err
	}
	return inOrder(raw)
}

// written is e where it is data. A function, such as what reads templates inside Go's raw strings,
// becomes the kind of what it begins with, else text.
func written(e chroma.Emitter) chroma.Emitter {
	if e == nil {
		return nil
	}
	if _, ok := e.(chroma.SerialisableEmitter); !ok {
		return chroma.Text
	}
	v := reflect.Indirect(reflect.ValueOf(e))
	if v.Kind() != reflect.Struct || !v.FieldByName("Emitters").IsValid() {
		return e
	}
	parts, _ := v.FieldByName("Emitters").Interface().(chroma.Emitters)
	for _, part := range parts {
		if part == nil || written(part) != part {
			return written(parts[0])
		}
	}
	return e
}

// inOrder sorts the states, which the library writes in a new order each time.
func inOrder(raw []byte) ([]byte, error) {
	type state struct {
		Name string `xml:"name,attr"`
		In   string `xml:",innerxml"`
	}
	var doc struct {
		XMLName xml.Name `xml:"lexer"`
		Config  struct {
			In string `xml:",innerxml"`
		} `xml:"config"`
		Rules struct {
			States []state `xml:"state"`
		} `xml:"rules"`
	}
	if err := xml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	slices.SortFunc(doc.Rules.States, func(a, b state) int { return strings.Compare(a.Name, b.Name) })
	return xml.Marshal(doc)
}

var uses = regexp.MustCompile(`<using lexer="([^"]*)"`)

// whole leaves out lexers that need one which is not there.
func whole(index []lexers.Packed, rules map[string][]byte) []lexers.Packed {
	for {
		names := map[string]bool{"": true}
		for _, p := range index {
			for _, name := range append([]string{p.Name}, p.Aliases...) {
				names[strings.ToLower(name)] = true
			}
		}
		n := len(index)
		index = slices.DeleteFunc(index, func(p lexers.Packed) bool {
			return !names[strings.ToLower(p.Around)] || slices.ContainsFunc(uses.FindAllSubmatch(rules[p.Name], -1), func(m [][]byte) bool {
				return !names[strings.ToLower(string(m[1]))]
			})
		})
		if len(index) == n {
			return index
		}
	}
}

func archive(index []lexers.Packed, rules map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	list, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	files := []struct {
		name string
		data []byte
	}{{lexers.Index, list}}
	for _, p := range index {
		files = append(files, struct {
			name string
			data []byte
		}{p.File(), rules[p.Name]})
	}
	for _, f := range files {
		in, err := w.Create(f.name)
		if err != nil {
			return nil, err
		}
		if _, err := in.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
