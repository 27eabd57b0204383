package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/web/client"
)

// Exit codes, as the contract lists them; 130 is the field's for an interrupt.
const (
	ExitFailed      = 1   // the thing asked about failed, was rejected or expired
	ExitUsage       = 2   // bad usage or configuration
	ExitNotFound    = 3   // no such thing
	ExitNotAllowed  = 4   // not allowed
	exitUnreachable = 5   // the server is not reachable
	ExitTimeout     = 124 // wait ran out of time
	ExitInterrupted = 130 // Ctrl-C
)

// Failure ends the program with a code and one line on stderr; an empty line says
// that everything was said already.
type Failure struct {
	Code    int
	Message string
	Cause   error
}

func (f *Failure) Error() string { return f.Message }
func (f *Failure) Unwrap() error { return f.Cause }

func Fail(code int, format string, args ...any) error {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Mistake is a usage error in the words of a rule elsewhere.
func Mistake(err error) error { return Usage("%s.", Capital(Line(err.Error()))) }

func Usage(format string, args ...any) error { return Fail(ExitUsage, format, args...) }

// Verdict turns what a command returned into an exit code and the line to print.
func Verdict(err error) (int, string) {
	var known *Failure
	var refused *client.Error
	var away *client.Unreachable
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &known):
		return known.Code, known.Message
	case errors.As(err, &refused):
		return codeOf(refused), sentence(refused)
	case errors.As(err, &away):
		return exitUnreachable, Line(away.Error())
	case errors.Is(err, context.Canceled):
		return ExitInterrupted, ""
	}
	return ExitFailed, Capital(Line(err.Error()))
}

// Capital begins a sentence with a capital letter, as errors for people do.
func Capital(s string) string {
	r, width := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[width:]
}

// codeOf maps what the server answered.
func codeOf(e *client.Error) int {
	switch {
	case e.Status == http.StatusNotFound || e.Code == "unknown_agent":
		return ExitNotFound
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return ExitNotAllowed
	case e.Code == "ambiguous" || e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity ||
		e.Status == http.StatusRequestEntityTooLarge:
		return ExitUsage
	case e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout:
		return exitUnreachable
	}
	return ExitFailed
}

// sentence is the server's sentence with its code, and what to do where only the
// program knows it.
func sentence(e *client.Error) string {
	text := Line(e.Error())
	if e.Code != "" && !strings.Contains(text, e.Code) {
		text += " (" + Line(e.Code) + ")"
	}
	if e.Status == http.StatusUnauthorized {
		text += " Set GATEHOUSE_TOKEN, or make a token with `gatehouse token create`."
	}
	return text
}
