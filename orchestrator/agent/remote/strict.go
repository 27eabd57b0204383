package remote

import (
	"bufio"
	"bytes"
	"io"

	"gatehouse/orchestrator/strictjson"
)

// maxNesting is how deep an answer may nest.
const maxNesting = 200

// strict is a body that the library gets to read only after it was looked at: whole, or
// event by event where it is a stream.
type strict struct {
	io.ReadCloser
	events bool
	lines  *bufio.Reader
	ready  []byte
	err    error
}

func (s *strict) Read(p []byte) (int, error) {
	for len(s.ready) == 0 && s.err == nil {
		if s.events {
			s.nextEvent()
		} else {
			s.whole()
		}
	}
	n := copy(p, s.ready)
	if s.ready = s.ready[n:]; n > 0 {
		return n, nil
	}
	return 0, s.err
}

// whole reads everything there is.
func (s *strict) whole() {
	body, err := io.ReadAll(s.ReadCloser)
	if err == nil && len(bytes.TrimSpace(body)) > 0 {
		err = strictjson.Check(body, maxNesting)
	}
	if s.err = err; err == nil {
		s.ready, s.err = body, io.EOF
	}
}

// nextEvent reads up to the blank line that ends an event.
func (s *strict) nextEvent() {
	if s.lines == nil {
		s.lines = bufio.NewReader(s.ReadCloser)
	}
	var event, data []byte
	for {
		line, err := s.lines.ReadBytes('\n')
		event = append(event, line...)
		text := bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			data = append(append(data, value...), '\n')
		}
		if err == nil && len(text) > 0 {
			continue
		}
		if s.err = err; len(data) > 0 && (err == nil || err == io.EOF) {
			if wrong := strictjson.Check(data, maxNesting); wrong != nil {
				if err == nil { // else the line was cut, and what is left of it is nothing
					s.err = wrong
				}
				return
			}
		}
		s.ready = event
		return
	}
}
