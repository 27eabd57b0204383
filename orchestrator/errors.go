package orchestrator

import (
	"errors"
	"fmt"

	"gatehouse/orchestrator/patch"
)

// Error is an error for people and programs: a code of the contract, a sentence
// that says what happened and what to do, and the cause. web maps codes to HTTP
// statuses in one place.
type Error struct {
	Code    string
	Reason  Reason
	Message string
	Err     error
}

// The codes that are not a guard's or a patch's.
const (
	CodeNotFound       = "not_found"
	CodeAmbiguous      = "ambiguous"
	CodeBadRequest     = "bad_request"
	CodeForbidden      = "forbidden"
	CodeConflict       = "conflict"
	CodeEnded          = "already_ended"
	CodeNotEnded       = "not_ended"
	CodeLanding        = "landing"
	CodeKeyReused      = "key_reused"
	CodeAlreadyDecided = "already_decided"
	CodeSuperseded     = "superseded"
	CodeNotTicked      = "not_ticked"
	CodeStale          = "stale"
	CodeExpired        = "expired"
	CodeFourEyes       = "four_eyes"
	CodeNotAnApprover  = "not_an_approver"
	CodeUnavailable    = "unavailable"
	CodeBadRef         = patch.CodeBadRef
)

// Reason tells the cases of one code apart, for who says one of them otherwise: nobody reads
// a sentence for that. It is not published; "" is any case that nobody tells apart.
type Reason string

// The reasons, each with its code.
const (
	ReasonAsked Reason = "asked" // CodeFourEyes: the person asked for the task
	ReasonAway  Reason = "away"  // CodeForbidden: the person is out of office; the cause is the sentence without advice
)

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error; %w keeps the cause.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Because gives e its reason.
func (e *Error) Because(why Reason) *Error {
	e.Reason = why
	return e
}

// CodeOf returns the code of err, or "" when it has none.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// What a Store answers where the caller has to tell cases apart.
var (
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
	// ErrLost: the compare-and-set found another state or attempt. Whoever gets it
	// has lost and must not write again.
	ErrLost = errors.New("lost: the row has moved on")
	// ErrExists: a row with this unique key exists.
	ErrExists = errors.New("exists already")
)
