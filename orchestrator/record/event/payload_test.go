package event

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// The stored data is published and hashed: keys, kinds of values and what is left out stay
// as they are, whatever the structs are called.
func TestDataIsStoredAsItAlwaysWas(t *testing.T) {
	at, usd := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), 0.25
	about := About{ApprovalID: "apr_a", Revision: 2, Digest: "d"}
	for _, c := range []struct {
		said   Payload
		stored string
	}{
		{TaskCreatedData{Agent: "kik", Title: "Fix"}, `{"agent":"kik","title":"Fix","repository":"","via":""}`},
		{TaskCreatedData{Agent: "kik", Complexity: "high", Independent: true, Why: "w", Source: map[string]string{"url": "u"}},
			`{"agent":"kik","title":"","repository":"","via":"","complexity":"high","independent":true,"why":"w","source":{"url":"u"}}`},
		{QueuedData{Agent: "coder"}, `{"agent":"coder"}`},
		{QueuedData{Agent: "coder", From: Given(""), Why: Given("yes")}, `{"agent":"coder","from":"","why":"yes"}`},
		{QueuedData{Agent: "coder", Why: Given("again"), FromRevision: Given(0)}, `{"agent":"coder","why":"again","from_revision":0}`},
		{ProgressData{Text: "x"}, `{"text":"x"}`},
		{ProgressData{DroppedLines: 3}, `{"text":"","dropped_lines":3}`},
		{ProgressData{Text: "x", Check: "go vet", OK: Given(false)}, `{"text":"x","check":"go vet","ok":false}`},
		{ProgressData{Text: "x", Code: LandingHeld, Retry: Given(false)}, `{"text":"x","code":"landing_held","retry":false}`},
		{ProgressData{Text: "x", Code: RuleChanged, ApprovalID: "apr_a", Revision: 1, Rule: Given(""), Need: Given(0), From: Given[[]string](nil)},
			`{"text":"x","code":"rule_changed","approval_id":"apr_a","revision":1,"rule":"","need":0,"from":null}`},
		{DelegatedData{To: "coder", Guards: []string{}}, `{"to":"coder","child":"","title":"","guards":[]}`},
		{DelegatedData{Steering: []string{"a"}, TrustCheckout: Given(false)}, `{"to":"","child":"","title":"","guards":null,"steering":["a"],"trust_checkout":false}`},
		{CompletedData{End: End{Agent: "kik", State: "completed"}, Text: Given("")}, `{"agent":"kik","state":"completed","text":""}`},
		{FailedData{End{State: "rejected", Code: Given("no"), Message: Given(""), Reason: "r"}}, `{"agent":"","state":"rejected","code":"no","message":"","reason":"r"}`},
		{ForkedData{Agent: "kik", Task: "tsk_a", Delegation: "dlg_a"}, `{"agent":"kik","task":"tsk_a","delegation":"dlg_a","turn":0}`},
		{ForkedData{Agent: "kik", FromTask: "tsk_a", From: "dlg_a", Turn: 2}, `{"agent":"kik","from_task":"tsk_a","from":"dlg_a","turn":2}`},
		{MessageCompletedData{Turn: 1}, `{"turn":1,"model":"","stop":"","text":"","calls":null,"took_ms":0}`},
		{ToolCompletedData{OK: Given(false)}, `{"turn":0,"id":"","name":"","ok":false,"text":""}`},
		{UsageRecordedData{InputTokens: 1}, `{"input_tokens":1,"output_tokens":0,"usd":null}`},
		{UsageRecordedData{USD: &usd, Lost: true}, `{"input_tokens":0,"output_tokens":0,"usd":0.25,"lost":true}`},
		{UsageRecordedData{USD: &usd, Model: Given(""), Turn: Given(1)}, `{"input_tokens":0,"output_tokens":0,"usd":0.25,"model":"","turn":1}`},
		{ContextWrittenData{Entry: Entry{Namespace: "n", Key: "k"}}, `{"namespace":"n","key":"k"}`},
		{ContextWrittenData{Entry: Entry{Namespace: "n", Key: "k"}, TTLSeconds: Given[int64](0)}, `{"namespace":"n","key":"k","ttl_seconds":0}`},
		{RequestedData{About: about, Files: Given(0), Added: Given(0), Removed: Given(0), Branch: Given("main")},
			`{"approval_id":"apr_a","revision":2,"digest":"d","rule":"","need":0,"from":null,"repository":"","warnings":null,"branch":"main","files":0,"added":0,"removed":0}`},
		{RequestedData{About: About{"apr_a", 1, "d", "handover"}, To: Given("coder"), Title: Given("")},
			`{"approval_id":"apr_a","revision":1,"digest":"d","kind":"handover","rule":"","need":0,"from":null,"repository":"","warnings":null,"to":"coder","title":""}`},
		{DecidedData{Verdict: Verdict{Verdict: "approve"}, Rule: "analysis-only", Text: "t"}, `{"verdict":"approve","rule":"analysis-only","text":"t"}`},
		{DecidedData{Verdict: Verdict{About: about, DecisionID: "dec", Verdict: "reject", Channel: "web", State: "rejected", Have: Given(0), Need: Given(1), Seen: struct{}{}}},
			`{"approval_id":"apr_a","revision":2,"digest":"d","decision_id":"dec","verdict":"reject","channel":"web","state":"rejected","have":0,"need":1,"seen":{}}`},
		{ChangesRequestedData{Verdict: Verdict{Verdict: "request_changes", Files: []string{}}, StartOver: true}, `{"verdict":"request_changes","start_over":true}`},
		{VerdictRefusedData{Channel: "telegram", Code: "c"}, `{"channel":"telegram","code":"c","message":""}`},
		{SupersededData{About: about, By: 3}, `{"approval_id":"apr_a","revision":2,"digest":"d","by":3}`},
		{PatchRevertedData{About: about, By: "apr_b"}, `{"approval_id":"apr_a","revision":2,"digest":"d","by":"apr_b","task":"","commit":""}`},
		{PatchLandedData{Declined: []string{}}, `{"commit":"","repository":"","branch":"","deliver":"","digest":"","approved_by":null,"carried_over":false}`},
		{BreakerOpenedData{Agent: "coder", Failures: 3, Until: at}, `{"agent":"coder","failures":3,"until":"2026-07-01T12:00:00Z","reason":""}`},
		{ConfigurationChangedData{AsOf: Given(at)}, `{"how":"","node":"","file":"","was":"","is":"","count":0,"changes":null,"as_of":"2026-07-01T12:00:00Z"}`},
		{&UserChangedData{UserID: "usr_a", Away: Given[*Away](nil)}, `{"user_id":"usr_a","away":null}`},
		{&UserChangedData{UserID: "usr_a", Password: Given(false), TokensRevoked: Given([]string{})}, `{"user_id":"usr_a","password":false,"tokens_revoked":[]}`},
		{SessionEndedData{}, `{}`},
		{AuditExportedData{List: "log", Format: "csv", UpTo: Given[int64](0)}, `{"list":"log","format":"csv","up_to":0}`},
		{AuditExportedData{List: "events", Filter: Given(""), Rows: Given[int64](0)}, `{"list":"events","format":"","filter":"","rows":0}`},
	} {
		e := Of("dlg_a", "coder", c.said)
		if string(e.Data) != string(Data(values(t, []byte(c.stored)))) {
			t.Errorf("%s\nis  %s\nwas %s", e.Type, e.Data, c.stored)
		}
		if again := Of("dlg_a", "coder", e.Payload()); !reflect.DeepEqual(values(t, again.Data), values(t, e.Data)) && e.Type != UserChanged && e.Type != Progress {
			t.Errorf("%s is %s, and read and written again %s", e.Type, e.Data, again.Data)
		}
	}
}

func values(t *testing.T, data []byte) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}

func TestAccessIsReadOfWhateverTellsOfIt(t *testing.T) {
	for _, c := range []struct {
		said   Payload
		user   string
		tokens []string
	}{
		{SessionEndedData{UserID: "usr_a"}, "usr_a", nil},
		{TokenRevokedData{TokenID: "tok_a"}, "", []string{"tok_a"}},
		{&UserChangedData{UserID: "usr_a", Disabled: Given(true), TokensRevoked: Given([]string{"tok_a", "tok_b"})}, "usr_a", []string{"tok_a", "tok_b"}},
		{HoldSetData{Subject: "tsk_a", Reason: "usr_a"}, "", nil},
	} {
		if user, tokens := Of("", "root", c.said).Access(); user != c.user || !reflect.DeepEqual(tokens, c.tokens) {
			t.Errorf("%T is about %q and %q", c.said, user, tokens)
		}
	}
}

// One key that is of another shape says nothing; the others still do.
func TestReadingTakesWhatFits(t *testing.T) {
	e := Event{Type: Progress, Data: []byte(`{"code":7,"ok":"yes","need":2,"text":"here"}`)}
	if p := Read[ProgressData](e); p.Text != "here" || p.Code != "" || p.OK.Set || p.Need != Given(2) {
		t.Errorf("%+v", p)
	}
	if p := Read[WaitingData](e); p != (WaitingData{}) {
		t.Errorf("a progress was read as %+v", p)
	}
}
