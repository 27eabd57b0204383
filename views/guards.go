package views

// GuardVerdict is the answer of one guard.
type GuardVerdict struct {
	Guard   string
	Allowed bool
	Skipped bool // not asked: one before it refused
	Code    string
	Message string
}
