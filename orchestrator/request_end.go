package orchestrator

// RequestEnd is how the request of a delegation ends with it. The gate's own states have
// the same words.
type RequestEnd string

// The ends.
const (
	RequestLanded    RequestEnd = "landed"
	RequestStale     RequestEnd = "stale" // what was approved no longer applies; it is asked again
	RequestRejected  RequestEnd = "rejected"
	RequestExpired   RequestEnd = "expired"
	RequestFailed    RequestEnd = "failed"
	RequestCancelled RequestEnd = "cancelled"
)

// requestEnd is how a request ends whose delegation ended in this state.
func requestEnd(s State) RequestEnd {
	switch s {
	case Rejected:
		return RequestRejected
	case Expired:
		return RequestExpired
	case Failed:
		return RequestFailed
	default:
		return RequestCancelled
	}
}
