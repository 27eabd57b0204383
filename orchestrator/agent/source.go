package agent

import (
	"fmt"
	"net/url"
	"strings"
)

// Source is what a task is about elsewhere: the issue, merge request or chat that it comes
// from (A8). It is a fact for people and agents; nothing is fetched from it.
type Source struct {
	Kind  string `json:"kind"`            // github, gitlab, issue, chat, …
	Ref   string `json:"ref,omitempty"`   // its name there, such as group/app!17
	URL   string `json:"url,omitempty"`   // http or https
	Title string `json:"title,omitempty"` // in words, for people
}

// Check says in a sentence what is wrong with a source, and what to do.
func (s *Source) Check() error {
	if s == nil {
		return nil
	}
	if CheckName(s.Kind) != nil {
		return fmt.Errorf("source.kind is %.40q: name what it is, such as github, gitlab, issue or chat", s.Kind)
	}
	for _, f := range []struct {
		name, value string
		most        int
	}{{"ref", s.Ref, 300}, {"url", s.URL, 2000}, {"title", s.Title, 500}} {
		if len(f.value) > f.most {
			return fmt.Errorf("source.%s has %d bytes; %d is the limit", f.name, len(f.value), f.most)
		}
		if strings.ContainsFunc(f.value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("source.%s has a line break or a control character: write it in one line", f.name)
		}
	}
	if s.URL == "" {
		return nil
	}
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("source.url is no address: write one that begins with https:// or http://")
	}
	return nil
}

// String is the source in one line, as an agent reads it.
func (s *Source) String() string {
	if s == nil {
		return ""
	}
	line := strings.TrimSpace(s.Kind + " " + s.Ref)
	if s.Title != "" {
		line += fmt.Sprintf(" %q", s.Title)
	}
	if s.URL != "" {
		line += " <" + s.URL + ">"
	}
	return line
}
