package views

import (
	"fmt"
	"net/url"
	"strconv"
)

// Where the forms and links of the pages lead. Handlers register these routes.
const (
	SendPath   = "/delegations" // POST agent, text, repository, handoffs, key
	LoginPath  = "/login"       // POST name, password, next
	LinkPath   = "/login/link"  // GET ?code= shows the button; POST code uses it up
	LogoutPath = "/logout"      // POST
)

// DelegationHref is the page of a task or delegation.
func DelegationHref(id string) string { return "/delegations/" + url.PathEscape(id) }

// CancelHref takes the POST that stops a task.
func CancelHref(id string) string { return DelegationHref(id) + "/cancel" }

// PauseHref takes the POST that holds a task.
func PauseHref(id string) string { return DelegationHref(id) + "/pause" }

// ResumeHref takes the POST that lets it go on.
func ResumeHref(id string) string { return DelegationHref(id) + "/resume" }

// TellHref takes the POST that says something to an agent.
func TellHref(id string) string { return DelegationHref(id) + "/messages" }

// ForkHref takes the POST that makes a task of a turn.
func ForkHref(id string) string { return DelegationHref(id) + "/fork" }

// RetryHref takes the POST that runs a failed delegation again.
func RetryHref(id string) string { return DelegationHref(id) + "/retry" }

// ApprovalHref is the review page of a request.
func ApprovalHref(id string) string { return "/approvals/" + url.PathEscape(id) }

// DecisionHref takes the POST of a verdict: verdict, digest, revision, comment, tick (one per
// warning kind), back; of a call scope (once or task) and input, of a question choice.
func DecisionHref(id string) string { return ApprovalHref(id) + "/decision" }

// DraftsHref takes the POST of a line comment that is not sent yet: revision, path, side,
// line, text, do (save or delete), back.
func DraftsHref(id string) string { return ApprovalHref(id) + "/drafts" }

// ThreadsHref is where answers to line comments are sent.
func ThreadsHref(id string) string { return ApprovalHref(id) + "/threads" }

// ThreadAnchor names a line comment that was sent, on its page.
func ThreadAnchor(thread string) string { return "t-" + thread }

// SinceHref is what changed from one revision of a request to a newer one.
func SinceHref(id string, newer, older int) string {
	return WithQuery(WithQuery(ApprovalHref(id), "rev", strconv.Itoa(newer)), "since", strconv.Itoa(older))
}

// ViewedHref takes the POST of a mark on a file: revision, file (its number), viewed (empty
// removes the mark), back.
func ViewedHref(id string) string { return ApprovalHref(id) + "/viewed" }

// OpenedHref takes the POST of files that were before the reader: revision, file.
func OpenedHref(id string) string { return ApprovalHref(id) + "/opened" }

// EditHref takes the POST of edited files: digest, comment, text-N for file N, back.
func EditHref(id string) string { return ApprovalHref(id) + "/edit" }

// RevertHref takes the POST that asks for the reverse of a landed change.
func RevertHref(id string) string { return ApprovalHref(id) + "/revert" }

// LandHref takes the POST that tries a refused landing again.
func LandHref(id string) string { return ApprovalHref(id) + "/land" }

// RevokeGrantHref takes the POST that ends what was allowed for the rest of a task.
func RevokeGrantHref(id string) string { return "/grants/" + url.PathEscape(id) + "/revoke" }

// EvidenceHref is the printable page of a request.
func EvidenceHref(id string) string { return ApprovalHref(id) + "/evidence" }

// EvidenceBundleHref is what verifies offline.
func EvidenceBundleHref(id string) string {
	return "/api/v1" + EvidenceHref(id) + "?format=bundle"
}

// checkHref is the page that says guard by guard whether one agent may hand to another.
func checkHref(from, to string) string {
	return "/agents?" + url.Values{"from": {from}, "to": {to}}.Encode() + "#check"
}

// AgentHref is the page of an agent.
func AgentHref(name string) string { return "/agents/" + url.PathEscape(name) }

// WithQuery sets one parameter of an address and keeps the others; an empty value removes it.
func WithQuery(address, key, value string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	q := u.Query()
	if value == "" {
		q.Del(key)
	} else {
		q.Set(key, value)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Where the auditor's pages are.
const (
	AuditPath       = "/audit"
	AuditExportPath = "/audit/export" // says what an export will have
	AuditVerifyPath = "/audit/verify" // GET shows the last result, POST runs one
	// AuditVerifyStream runs one, too, and says line by line how far it is.
	AuditVerifyStream = "/api/v1/audit/verify"
	AuditViewsPath    = "/audit/views" // POST name, list, filter, columns, shared
)

// Where the settings are. Forms are plain POSTs: /you/password, /you/sessions, /you/zone;
// people below PeoplePath; tokens at TokensPath and TokensPath/revoke.
const (
	YouPath    = "/settings/you"
	PeoplePath = "/settings/people"
	TokensPath = "/settings/tokens"
	PolicyPath = "/settings/policy"
	ConfigPath = "/settings/config"
)

// ContextPath is the page of the shared context: GET ns, key, prefix, after; POST ns,
// key, value, ttl, do (save or delete).
const ContextPath = "/context"

// ContextHref is the page of a namespace, or of one value in it.
func ContextHref(namespace, key string) string {
	q := url.Values{"ns": {namespace}}
	if key != "" {
		q.Set("key", key)
	}
	return ContextPath + "?" + q.Encode()
}

// ChatPath is the page of the chat; a POST there sends a message: agent, text,
// repository, handoffs, key, thread.
const ChatPath = "/chat"

// ThreadHref is one thread of the chat, by any of its tasks.
func ThreadHref(id string) string { return ChatPath + "?thread=" + url.QueryEscape(id) }

// MoreThreadsHref is the chat with the threads before one, by the root of its newest task.
func MoreThreadsHref(before string) string { return ChatPath + "?threads=" + url.QueryEscape(before) }

// ChatTaskHref is the chat with one message alone.
func ChatTaskHref(id string) string { return ChatPath + "?task=" + url.QueryEscape(id) }

// ChatDecisionHref takes the POST of a verdict that is given in the chat: verdict,
// digest, revision, comment, scope, choice.
func ChatDecisionHref(id string) string {
	return ChatPath + "/approvals/" + url.PathEscape(id) + "/decision"
}

// WaitsPath is the page of who waits for whom.
const WaitsPath = "/waits"

// InsightsPath is the page of figures.
const InsightsPath = "/insights"

// TriggersPath lists what makes tasks by itself.
const TriggersPath = "/triggers"

// TriggerHref is the page of one trigger; POST event and body tries it.
func TriggerHref(name string) string { return TriggersPath + "/" + url.PathEscape(name) }

// DeliveryHref is the page of one delivery; a POST there delivers it again.
func DeliveryHref(name, id string) string {
	return TriggerHref(name) + "/deliveries/" + url.PathEscape(id)
}

// ChannelsPath is the page of the channels; forms are below it: /retry takes letter,
// channel or all; /test and /link take channel; /unlink takes channel and account.
const ChannelsPath = "/settings/channels"

// StopPath is where admins stop all work, or one agent's.
const StopPath = "/delegations/stop"

// HoldsPath is where legal holds are listed, set and lifted.
const HoldsPath = "/audit/holds"

// HoldHref lifts a hold.
func HoldHref(id string) string { return HoldsPath + "/" + url.PathEscape(id) + "/lift" }

// PersonHref is the page of a person, where an admin changes them: POST do (roles,
// disable, enable, link, away or back).
func PersonHref(name string) string { return PeoplePath + "/" + url.PathEscape(name) }

// ArtifactHref gets one artifact of a delegation, counted from 1.
func ArtifactHref(id string, n int) string {
	return fmt.Sprintf("%s/artifacts/%d", DelegationHref(id), n)
}

// AttachmentHref gets one file that came with the task of a delegation, counted from 1.
func AttachmentHref(id string, n int) string {
	return fmt.Sprintf("%s/attachments/%d", DelegationHref(id), n)
}

// AuditViewHref takes the POST that removes a view.
func AuditViewHref(id string) string { return AuditViewsPath + "/" + id + "/delete" }

// FlowHref is the flow view of a task.
func FlowHref(id string) string { return DelegationHref(id) + "/flow" }
