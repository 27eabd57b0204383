package lexers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/chroma/v2"
	library "github.com/alecthomas/chroma/v2/lexers"
)

// gone are the library's lexers that are written in Go, so that they cannot be packed. Their files
// are shown plain.
var gone = []string{"Common Lisp", "EmacsLisp", "Haxe", "Raku"}

// Each lexer of the library is there, but for those that are known to be gone.
func TestTheLibrarysLexersAreThere(t *testing.T) {
	var missing []string
	for _, l := range library.GlobalLexerRegistry.Lexers {
		if c := l.Config(); !slices.ContainsFunc(All().Lexers, func(o chroma.Lexer) bool { return o.Config().Name == c.Name }) {
			missing = append(missing, c.Name)
		}
	}
	slices.Sort(missing)
	if !slices.Equal(missing, gone) {
		t.Errorf("missing are %q, want %q", missing, gone)
	}
}

// Files of the languages that people use read as they do with the library, those too whose
// lexers stand in one another or are written in Go there.
func TestLexersReadAsTheLibrarysDo(t *testing.T) {
	template := "{% for a in b %}{{ a }}{% end %}\n<?php if (1) { echo \"a\"; } ?>\n<b class=\"x\">x</b>\n---\nkey: 'v' # d\n"
	code := "import a\nfunc main() { x := \"a\" + 1 } // c\n/* d */ class A: def f(self): return 'x'\nconst y = (z) => { return <B c={1}>d</B> }\n#!/bin/sh\n$(call a)\n"
	for _, name := range []string{"Go", "Go HTML Template", "Go Text Template", "Python", "JavaScript", "TypeScript", "react", "vue", "Svelte", "HTML", "CSS", "SCSS", "PHP", "PHTML", "Ruby", "ERB",
		"Java", "Kotlin", "Scala", "Groovy", "C", "C++", "C#", "Objective-C", "Swift", "Rust", "Zig", "Dart", "Elixir", "Erlang", "Haskell", "OCaml", "Clojure", "Lua", "Perl", "R", "Julia", "Bash", "PowerShell", "Makefile", "CMake",
		"Docker", "Terraform", "HCL", "Nix", "YAML", "JSON", "TOML", "INI", "XML", "SQL", "PostgreSQL SQL dialect", "MySQL", "Protocol Buffer", "GraphQL", "markdown", "HTTP", "Nginx configuration file", "Diff", "plaintext", "Templ"} {
		l := All().Get(name)
		if l == nil || l.Config().Name != name {
			t.Errorf("there is no lexer %s", name)
			continue
		}
		for _, text := range []string{template, code} {
			we, err := chroma.Tokenise(l, nil, text)
			they, theirErr := chroma.Tokenise(library.Get(name), nil, text)
			if err != nil || theirErr != nil || !slices.Equal(we, they) {
				t.Errorf("%s reads %q as\n%v, %v\nthe library as\n%v, %v", name, text, we, err, they, theirErr)
			}
		}
	}
}

// A patch may say that it holds any language: a lexer that never comes to an end is left.
func TestALexerThatNeverEndsIsLeft(t *testing.T) {
	text := strings.Repeat("package x // y\n\nfunc f() { return \"z\" }\n", 20)
	began := time.Now()
	if _, err := chroma.Tokenise(chroma.Coalesce(All().Get("Jungle")), nil, text); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > patience+10*time.Second {
		t.Errorf("it took %s", took)
	}
}
