package trigger

// MaxBody is the largest body that a webhook may send, in bytes. Sources send up to
// 25 MB; what a task is made of stands in far less.
const MaxBody = 1 << 20
