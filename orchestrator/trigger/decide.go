package trigger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"gatehouse/orchestrator/strictjson"
)

// Codes of deliveries that made no task, beside those of the engine.
const (
	CodeFiltered = "filtered"  // the condition was not met
	CodePing     = "ping"      // the sender only asked whether somebody is there
	CodeJSON     = "malformed" // the body is no strict JSON object
	CodeTemplate = "template"  // the text could not be made
	CodeOwner    = "owner"     // there is no such person, or they may not sign in or start tasks
	CodeGone     = "gone"      // the trigger is not configured any more
	CodeOverlap  = "overlap"   // the task before still lived
	CodeMissed   = "missed"    // its time had passed
)

// Outcome is what a trigger makes of a delivery.
type Outcome struct {
	Fires   bool
	Text    string
	Key     string // as the template made it, "" without one
	Code    string // where it does not fire
	Message string
}

// Decide says what a delivery means. It is the same for the same delivery, however often
// it is asked.
func (t *Trigger) Decide(d Delivery) Outcome {
	f := Facts{Event: map[string]any{}, Name: d.Event, Delivery: d.ExternalID, Trigger: t.Name, Source: string(t.Source)}
	if t.Kind == Webhook {
		payload, err := strictjson.Object(d.Body)
		if err != nil {
			return Outcome{Code: CodeJSON, Message: sentence(err.Error())}
		}
		f.Event = payload
		if t.Source == GitHub && d.Event == "ping" {
			return Outcome{Code: CodePing, Message: "GitHub asked whether somebody is there. The webhook works."}
		}
	}
	yes, err := t.when.holds(f, len(d.Body))
	switch {
	case err != nil:
		return Outcome{Code: CodeFiltered, Message: fmt.Sprintf("The condition could not be decided, so nothing was started: %s.", err)}
	case !yes:
		return Outcome{Code: CodeFiltered, Message: "The condition of the trigger was not met: " + t.When}
	}
	o := Outcome{Fires: true}
	if o.Text, err = t.task.render(f, len(d.Body)); err != nil {
		return Outcome{Code: CodeTemplate, Message: fmt.Sprintf("The task's template was not filled in: %s.", err)}
	}
	if t.key != nil {
		if o.Key, err = t.key.render(f, len(d.Body)); err != nil {
			return Outcome{Code: CodeTemplate, Message: fmt.Sprintf("The template of the key was not filled in: %s.", err)}
		}
		o.Key = shortKey(o.Key)
	}
	return o
}

// maxKey is the longest key that is taken as it is, in bytes.
const maxKey = 100

// shortKey is the key itself, or its hash where it is long or cannot be read.
func shortKey(key string) string {
	if len(key) <= maxKey && !strings.ContainsFunc(key, unicode.IsControl) {
		return key
	}
	return Hash([]byte(key))
}

// Hash is SHA-256 as lower-case hex.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(s string) string {
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
