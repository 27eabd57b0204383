package trigger

import "time"

// Why a call is answered 401, or 429. A stranger is not told which.
const (
	Unsigned       = "no signature as this source makes it"
	WrongSignature = "the signature is wrong, or too old"
	OverRate       = "more calls than its rate lets through"
)

// Refusals counts the calls of a webhook that were answered 401 or 429. Of the last one it has
// what was wrong and where it came from; the call itself is not kept.
type Refusals struct {
	Calls   int64
	Last    time.Time
	Reason  string
	Address string
}

// And is both counts together, with the later of the last calls.
func (r Refusals) And(o Refusals) Refusals {
	if o.Last.After(r.Last) {
		r.Last, r.Reason, r.Address = o.Last, o.Reason, o.Address
	}
	r.Calls += o.Calls
	return r
}
