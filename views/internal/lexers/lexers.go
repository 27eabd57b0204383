// Package lexers has the highlighting library's lexers, each read when a file of its language is
// first shown. A process that shows none pays nothing: this program is also a supervisor of
// agents, and a shell's completion.
package lexers

import (
	"archive/zip"
	_ "embed" // the archive
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
)

//go:generate go run ./pack lexers.zip

//go:embed lexers.zip
var archive string

// Index is the file of the archive that lists the others.
const Index = "index.json"

// Packed is a lexer of the archive, before its rules are read.
type Packed struct {
	Name           string   `json:"name"`
	Aliases        []string `json:"aliases,omitempty"`
	Filenames      []string `json:"filenames,omitempty"`
	AliasFilenames []string `json:"alias_filenames,omitempty"`
	Priority       float32  `json:"priority,omitempty"`
	Around         string   `json:"around,omitempty"` // the lexer of the language that it stands in
}

// File is where the rules of p are in the archive.
func (p Packed) File() string { return strings.ReplaceAll(p.Name, "/", "_") + ".xml" }

// All are the lexers. It panics when the archive is broken, which a test would see.
var All = sync.OnceValue(func() *chroma.LexerRegistry {
	files, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic(err)
	}
	raw, err := contents(files, Index)
	if err != nil {
		panic(err)
	}
	var index []Packed
	if err := json.Unmarshal(raw, &index); err != nil {
		panic(err)
	}
	all := chroma.NewLexerRegistry()
	for _, p := range index {
		c := chroma.Config{Name: p.Name, Aliases: p.Aliases, Filenames: p.Filenames, AliasFilenames: p.AliasFilenames, Priority: p.Priority}
		all.Register(&lexer{config: c, rules: sync.OnceValues(func() (chroma.Lexer, error) { return p.open(files, all) })})
	}
	return all
})

// open reads the rules of p.
func (p Packed) open(files *zip.Reader, all *chroma.LexerRegistry) (chroma.Lexer, error) {
	raw, err := contents(files, p.File())
	if err != nil {
		return nil, err
	}
	inner, err := chroma.Unmarshal(raw)
	if err != nil {
		return nil, err
	}
	inner.SetRegistry(all)
	if p.Around == "" {
		return inner, nil
	}
	around := all.Get(p.Around)
	if around == nil {
		return nil, fmt.Errorf("lexer %s stands in %s, which is not there", p.Name, p.Around)
	}
	return chroma.DelegatingLexer(around, inner), nil
}

func contents(files *zip.Reader, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is read to its end
	return io.ReadAll(f)
}

// lexer is a chroma.Lexer whose rules are read when they are needed.
type lexer struct {
	config chroma.Config
	rules  func() (chroma.Lexer, error)
}

// Config makes a lexer a chroma.Lexer.
func (l *lexer) Config() *chroma.Config { return &l.config }

// Tokenise makes a lexer a chroma.Lexer.
func (l *lexer) Tokenise(o *chroma.TokeniseOptions, text string) (chroma.Iterator, error) {
	rules, err := l.rules()
	if err != nil {
		return nil, err
	}
	next, err := rules.Tokenise(o, text)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(patience)
	return func() chroma.Token {
		if time.Now().After(until) {
			return chroma.EOF
		}
		return next()
	}, nil
}

// patience is how long one text is read; the rest stays plain. Some lexers of the library never
// come to an end with texts that are not of their language.
const patience = 2 * time.Second

// SetRegistry makes a lexer a chroma.Lexer; its rules know their registry.
func (l *lexer) SetRegistry(*chroma.LexerRegistry) chroma.Lexer { return l }

// SetAnalyser makes a lexer a chroma.Lexer; files are known by their names.
func (l *lexer) SetAnalyser(func(string) float32) chroma.Lexer { return l }

// AnalyseText makes a lexer a chroma.Lexer.
func (l *lexer) AnalyseText(string) float32 { return 0 }
