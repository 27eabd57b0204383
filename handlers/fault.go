package handlers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/patch"

	"github.com/labstack/echo/v4"
)

// Codes of errors that only the server itself gives.
const (
	CodeUnauthorized = "unauthorized"
	CodeRateLimited  = "rate_limited"
	CodeTooLarge     = "too_large"
	CodeMethod       = "method_not_allowed"
	CodeBadHost      = "bad_host"
	CodeCrossOrigin  = "cross_origin"
	CodeInternal     = "internal"
	CodeMediaType    = "unsupported_media_type" // a body that does not say it is JSON
	CodeConfig       = "config"                 // a configuration file that was not taken
)

// MaxBody is how long a request may be without the files that come with it, in bytes: a text
// of the largest size, escaped.
const MaxBody = 2 << 20

// statuses maps every code to its HTTP status, once.
var statuses = map[string]int{
	CodeUnauthorized: http.StatusUnauthorized,
	CodeRateLimited:  http.StatusTooManyRequests,
	CodeTooLarge:     http.StatusRequestEntityTooLarge,
	CodeMethod:       http.StatusMethodNotAllowed,
	CodeBadHost:      http.StatusForbidden,
	CodeCrossOrigin:  http.StatusForbidden,
	CodeInternal:     http.StatusInternalServerError,

	CodeMediaType: http.StatusUnsupportedMediaType,
	CodeConfig:    http.StatusUnprocessableEntity,

	orchestrator.CodeNotFound:       http.StatusNotFound,
	orchestrator.CodeAmbiguous:      http.StatusConflict,
	orchestrator.CodeBadRequest:     http.StatusBadRequest,
	orchestrator.CodeBadRef:         http.StatusBadRequest,
	orchestrator.CodeForbidden:      http.StatusForbidden,
	orchestrator.CodeConflict:       http.StatusConflict,
	orchestrator.CodeEnded:          http.StatusConflict,
	orchestrator.CodeNotEnded:       http.StatusConflict,
	orchestrator.CodeLanding:        http.StatusConflict,
	orchestrator.CodeKeyReused:      http.StatusConflict,
	orchestrator.CodeAlreadyDecided: http.StatusConflict,
	orchestrator.CodeSuperseded:     http.StatusConflict,
	orchestrator.CodeNotTicked:      http.StatusConflict,
	orchestrator.CodeStale:          http.StatusConflict,
	orchestrator.CodeExpired:        http.StatusConflict,
	orchestrator.CodeFourEyes:       http.StatusForbidden,
	orchestrator.CodeNotAnApprover:  http.StatusForbidden,
	orchestrator.CodeCannotHear:     http.StatusConflict,
	orchestrator.CodeUnavailable:    http.StatusServiceUnavailable,

	guard.CodeUnknown: http.StatusConflict, guard.CodeSelf: http.StatusConflict, guard.CodeNotAllowed: http.StatusConflict,
	guard.CodeCycle: http.StatusConflict, guard.CodeMaxDepth: http.StatusConflict, guard.CodeMaxHandoffs: http.StatusConflict,
	guard.CodeNoCapacity: http.StatusConflict,

	agent.CodeAttachment: http.StatusBadRequest,

	patch.SourceMissing: http.StatusServiceUnavailable, patch.SourceNotRepository: http.StatusServiceUnavailable,
	patch.SourceEmpty: http.StatusServiceUnavailable, patch.SourceNoBranch: http.StatusServiceUnavailable,
	patch.SourceAuth: http.StatusServiceUnavailable, patch.SourceUnreachable: http.StatusServiceUnavailable,
}

// statusOf is the status of a code. One that is not in the map comes from a patch or
// an agent: the request was understood and could not be done as things are.
func statusOf(code string) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusConflict
}

// Fault is an error on its way out: what is told of it.
type Fault struct {
	Status     int
	Code       string
	Message    string
	Candidates []string // of an ambiguous id
	ID         string   // names it in the log; set when it is our failure
}

// FaultOf decides what is told of an error. Only sentences that were written for
// people leave the server; everything else is an id to look up in the log.
func FaultOf(err error) Fault {
	var coded *orchestrator.Error
	var ambiguous *Ambiguous
	var failure *agent.Failure
	var source *patch.SourceError
	var refusal *patch.Refusal
	var plain *echo.HTTPError
	var large *http.MaxBytesError
	f := Fault{}
	switch {
	case errors.As(err, &coded):
		f.Code, f.Message = coded.Code, coded.Message
		if errors.As(err, &ambiguous) {
			f.Candidates = ambiguous.Candidates
		}
	case errors.As(err, &failure):
		f.Code, f.Message = failure.Code, failure.Message
	case errors.As(err, &source):
		f.Code, f.Message = source.Code, source.Message
	case errors.As(err, &refusal):
		f.Code, f.Message = refusal.Code, refusal.Message
	case errors.As(err, &large):
		f.Code, f.Message = CodeTooLarge, "The request is larger than the "+agent.Size(large.Limit)+" that this address takes. Send less at once."
	case errors.Is(err, orchestrator.ErrNotFound):
		f.Code, f.Message = orchestrator.CodeNotFound, "There is nothing here under that name. Check the address."
	case errors.Is(err, orchestrator.ErrLost), errors.Is(err, orchestrator.ErrExists):
		f.Code, f.Message = orchestrator.CodeConflict, "Somebody else changed this at the same moment. Look again, then try again."
	case errors.Is(err, context.DeadlineExceeded):
		f.Code, f.Message = orchestrator.CodeUnavailable, "This is busy right now. Try again in a moment."
	case errors.As(err, &plain):
		return faultOfEcho(plain)
	default:
		f.Code, f.ID = CodeInternal, ErrorID()
		f.Message = "That failed on our side (err " + f.ID + "). Try again; if it happens again, look for this id in the server's log."
	}
	f.Status = statusOf(f.Code)
	return f
}

// faultOfEcho translates what the router itself says.
func faultOfEcho(err *echo.HTTPError) Fault {
	switch err.Code {
	case http.StatusNotFound:
		return Fault{Status: err.Code, Code: orchestrator.CodeNotFound, Message: "There is nothing at this address. Check it, or start at the overview."}
	case http.StatusMethodNotAllowed:
		return Fault{Status: err.Code, Code: CodeMethod, Message: "This address does not answer that method."}
	case http.StatusRequestEntityTooLarge:
		return Fault{Status: err.Code, Code: CodeTooLarge, Message: "The request is larger than this server takes. Send less at once."}
	}
	return Fault{Status: err.Code, Code: orchestrator.CodeBadRequest, Message: http.StatusText(err.Code) + "."}
}

// ErrorID is a random name for one answer or failure.
func ErrorID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Refuse makes an error with a code and a sentence for people.
func Refuse(code, message string) error { return &orchestrator.Error{Code: code, Message: message} }

// SentenceOf is an error as the form shows it.
func SentenceOf(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", ". ")
	first, size := utf8.DecodeRuneInString(text)
	return strings.ToUpper(string(first)) + text[size:] + "."
}
