package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Error is an answer that is not a yes: the problem document of RFC 9457.
type Error struct {
	Status int    // HTTP status
	Code   string // such as superseded; "" where something other than Gatehouse answered
	Title  string
	Detail string // one sentence or more for people
}

// Error is the sentence.
func (e *Error) Error() string {
	switch {
	case e.Detail != "":
		return e.Detail
	case e.Title != "":
		return e.Title
	}
	return fmt.Sprintf("The server answered %d %s.", e.Status, http.StatusText(e.Status))
}

// Unreachable says that no server answered, or something that is no Gatehouse.
type Unreachable struct {
	Base string
	Err  error
}

// Error says what happened and what to do.
func (u *Unreachable) Error() string {
	return fmt.Sprintf("No answer from %s: %v. Is `gatehouse serve` running? Set GATEHOUSE_URL if it is elsewhere.", u.Base, u.Err)
}

// Unwrap returns the cause.
func (u *Unreachable) Unwrap() error { return u.Err }

// problem reads what the server said; a proxy's page is not repeated.
func problem(res *http.Response) error {
	e := &Error{Status: res.StatusCode}
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil || !strings.Contains(res.Header.Get("Content-Type"), "json") {
		return e
	}
	var doc struct {
		Code   string `json:"code"`
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(body, &doc) == nil {
		e.Code, e.Title, e.Detail = doc.Code, doc.Title, doc.Detail
	}
	return e
}
