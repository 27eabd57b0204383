package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Refused is what a service said in place of an answer, before anybody read it.
type Refused struct {
	Status int // HTTP; 0 inside a stream that had begun well
	Header http.Header
	Body   []byte
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the service refused with HTTP %d", r.Status)
}

// Post sends q as JSON to path below base and opens the stream that answers it. Whoever gets
// one closes it. A status from 400 on is a *Refused with the whole of what came.
func (x *Exchange) Post(ctx context.Context, base, path string, header http.Header, q any) (*Events, error) {
	raw, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil {
		return nil, err
	}
	if at, err = at.Parse(path); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json") // a failure is no stream
	r.Header.Set("User-Agent", "Gatehouse")
	client := http.Client{Transport: x}
	res, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= http.StatusBadRequest {
		defer res.Body.Close() //nolint:errcheck // it is read to its end
		said, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		return nil, &Refused{Status: res.StatusCode, Header: res.Header, Body: said}
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, Limit)
	return &Events{header: res.Header, body: res.Body, lines: lines}, nil
}

// Events reads the server-sent events of one answer.
type Events struct {
	header http.Header
	body   io.Closer
	lines  *bufio.Scanner
	name   string
	data   []byte
}

// Next reads one event; false is the end of the stream, or Err. An event that the stream ends
// in the middle of is none.
func (e *Events) Next() bool {
	e.name, e.data = "", e.data[:0]
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if len(line) == 0 {
			if e.name == "" && len(e.data) == 0 {
				continue
			}
			return true
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) { // a comment has no name
		case "event":
			e.name = string(value)
		case "data":
			e.data = append(append(e.data, value...), '\n')
		}
	}
	return false
}

// Name is the event's, "" when it has none.
func (e *Events) Name() string { return e.name }

// Data is the event's, until the next one is read.
func (e *Events) Data() []byte { return e.data }

// Err is why reading failed.
func (e *Events) Err() error { return e.lines.Err() }

// Refused is the event as a failure of the service.
func (e *Events) Refused() error {
	return &Refused{Header: e.header, Body: bytes.Clone(e.data)}
}

// Close ends the stream, wherever it is.
func (e *Events) Close() error { return e.body.Close() }
