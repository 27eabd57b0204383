package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/web/client"
)

// Exit codes, as the contract lists them; 130 is the field's for an interrupt.
const (
	exitFailed      = 1   // the thing asked about failed, was rejected or expired
	exitUsage       = 2   // bad usage or configuration
	exitNotFound    = 3   // no such thing
	exitNotAllowed  = 4   // not allowed
	exitUnreachable = 5   // the server is not reachable
	exitTimeout     = 124 // wait ran out of time
	exitInterrupted = 130 // Ctrl-C
)

// failure ends the program with a code and one line on stderr; an empty line says
// that everything was said already.
type failure struct {
	code    int
	message string
	cause   error
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.cause }

func fail(code int, format string, args ...any) error {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

// mistake is a usage error in the words of a rule elsewhere.
func mistake(err error) error { return usage("%s.", capital(line(err.Error()))) }

func usage(format string, args ...any) error { return fail(exitUsage, format, args...) }

// verdict turns what a command returned into an exit code and the line to print.
func verdict(err error) (int, string) {
	var known *failure
	var refused *client.Error
	var away *client.Unreachable
	var mistakes config.Problems
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &known):
		return known.code, known.message
	case errors.As(err, &mistakes):
		return exitUsage, block(err.Error())
	case errors.As(err, &refused):
		return codeOf(refused), sentence(refused)
	case errors.As(err, &away):
		return exitUnreachable, line(away.Error())
	case errors.Is(err, context.Canceled):
		return exitInterrupted, ""
	}
	return exitFailed, capital(line(err.Error()))
}

// capital begins a sentence with a capital letter, as errors for people do.
func capital(s string) string {
	r, width := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[width:]
}

// codeOf maps what the server answered.
func codeOf(e *client.Error) int {
	switch {
	case e.Status == http.StatusNotFound || e.Code == "unknown_agent":
		return exitNotFound
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return exitNotAllowed
	case e.Code == "ambiguous" || e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity ||
		e.Status == http.StatusRequestEntityTooLarge:
		return exitUsage
	case e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout:
		return exitUnreachable
	}
	return exitFailed
}

// sentence is the server's sentence with its code, and what to do where only the
// program knows it.
func sentence(e *client.Error) string {
	text := line(e.Error())
	if e.Code != "" && !strings.Contains(text, e.Code) {
		text += " (" + line(e.Code) + ")"
	}
	if e.Status == http.StatusUnauthorized {
		text += " Set GATEHOUSE_TOKEN, or make a token with `gatehouse token create`."
	}
	return text
}
