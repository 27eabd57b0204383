package sharedctx

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestNew(t *testing.T) {
	tests := []struct {
		name, ids             string
		namespace, key, value string
		agent                 string
		ttl                   time.Duration
		says                  string // "" when it is fine
	}{
		{"the sources' names", "K38", "memory:coder", "module:<billing>", "v", "coder", 0, ""},
		{"a project's memory", "K38", "memory:coder", "project:17", "v", "coder", 0, ""},
		{"a finding", "K38", "performance", "n1_invoices_route", "v", "coder", 0, ""},
		{"a lesson", "K38", "pm_learnings", "module:coder:billing", "v", "coder", 0, ""},
		{"an attack", "K38", "security", "sqli_attempt_2001:db8::7", "v", "coder", 0, ""},
		{"an empty value", "K20", "ns", "k", "", "coder", 0, ""},
		{"64 characters, not bytes", "K18 K19 K21", strings.Repeat("ä", 64), strings.Repeat("ö", 128), "v", strings.Repeat("ü", 64), 0, ""},
		{"a value at the limit", "", "ns", "k", strings.Repeat("v", MaxValue), "coder", 0, ""},
		{"a long namespace", "K18", strings.Repeat("n", 65), "k", "v", "coder", 0, "namespace has 65 characters"},
		{"a long key", "K19", "ns", strings.Repeat("k", 129), "v", "coder", 0, "key has 129 characters"},
		{"a long agent", "K21", "ns", "k", "v", strings.Repeat("a", 65), 0, "agent has 65 characters"},
		{"no namespace", "K18", " ", "k", "v", "coder", 0, "namespace is empty"},
		{"no key", "K19", "ns", "", "v", "coder", 0, "key is empty"},
		{"no agent", "K21", "ns", "k", "v", "", 0, "agent is empty"},
		{"a newline in a name", "", "ns", "k\nx", "v", "coder", 0, `"k\nx" has control`},
		{"a bidi override in a name", "", "n\u202es", "k", "v", "coder", 0, "invisible"},
		{"broken UTF-8 in a name", "", "ns", "k\xff", "v", "coder", 0, "not UTF-8"},
		{"a value too large", "", "ns", "k", strings.Repeat("v", MaxValue+1), "coder", 0, "262145 bytes"},
		{"a NUL in a value", "", "ns", "k", "a\x00b", "coder", 0, "NUL"},
		{"broken UTF-8 in a value", "", "ns", "k", "a\xff", "coder", 0, "not UTF-8"},
		{"a life span in the past", "K28", "ns", "k", "v", "coder", -time.Second, "life span"},
		{"a life span past all time", "K28", "ns", "k", "v", "coder", MaxTTL + 1, "life span"},
	}
	for _, tt := range tests {
		t.Run(tt.ids+" "+tt.name, func(t *testing.T) {
			_, err := New(noon, tt.namespace, tt.key, tt.value, tt.agent, tt.ttl)
			if tt.says == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v lacks %q", err, tt.says)
			}
		})
	}
}

func entry(t *testing.T, key string, written time.Time, ttl time.Duration) Entry {
	t.Helper()
	e, err := New(written, "ns", key, `{"n":1}`, "coder", ttl)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestExpiry(t *testing.T) {
	e := entry(t, "k", noon, time.Minute) // K33: not expired means null, or later than now
	for at, want := range map[time.Duration]bool{0: false, time.Minute - 1: false, time.Minute: true, time.Hour: true} {
		if got := e.Expired(noon.Add(at)); got != want {
			t.Errorf("expired after %s = %t", at, got)
		}
	}
	if e := entry(t, "k", noon, 0); e.ExpiresAt != nil || e.Expired(noon.Add(MaxTTL)) { // K22, K29
		t.Errorf("an entry without a life span expires: %+v", e)
	}
}

func TestTouch(t *testing.T) {
	later := noon.Add(time.Minute)
	e, ok := entry(t, "k", noon, time.Hour).Touched(later, 0) // K40, K43: read again, lives 90 days more
	if !ok || !e.ExpiresAt.Equal(later.Add(90*day)) || e.Value != `{"n":1}` || !e.UpdatedAt.Equal(later) || !e.CreatedAt.Equal(noon) {
		t.Errorf("touched: %+v %t", e, ok)
	}
	if e, _ := entry(t, "k", noon, time.Hour).Touched(later, time.Second); !e.ExpiresAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("a touch shortened the life to %s", e.ExpiresAt)
	}
	if e, ok := entry(t, "k", noon, 0).Touched(later, time.Second); !ok || e.ExpiresAt != nil {
		t.Errorf("a touch made an unlimited entry expire: %+v", e)
	}
	if _, ok := entry(t, "k", noon, time.Minute).Touched(later, time.Hour); ok {
		t.Error("a touch revived what had expired")
	}
	original := entry(t, "k", noon, time.Hour)
	original.Touched(later, 0)
	if !original.ExpiresAt.Equal(noon.Add(time.Hour)) {
		t.Error("a touch changed the entry that it was called on")
	}
}

func TestUnits(t *testing.T) {
	// K35–K37 and K39 with X7: presets and what 129,600 counts.
	for name, got := range map[string][2]time.Duration{
		"K35": {PerformanceTTL, 86_400 * time.Second},
		"K36": {LearningsTTL, 30 * 24 * time.Hour},
		"K37": {SecurityTTL, 7 * 24 * time.Hour},
		"K39": {ExtensionTTL, 90 * 24 * time.Hour},
		"X7":  {ExtensionTTL, 129_600 * time.Minute},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, want %s", name, got[0], got[1])
		}
	}
	if d, err := Seconds(90); err != nil || d != 90*time.Second {
		t.Errorf("Seconds(90) = %s, %v", d, err)
	}
	for _, n := range []int64{0, -1, 1 << 62, int64(MaxTTL/time.Second) + 1} {
		if d, err := Seconds(n); err == nil {
			t.Errorf("Seconds(%d) = %s", n, d)
		}
	}
}

func TestParseTTL(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "24h": day, "1h30m": 90 * time.Minute, "30d": 30 * day, "2w": 14 * day, "36500d": MaxTTL,
	} {
		if got, err := ParseTTL(s); err != nil || got != want {
			t.Errorf("ParseTTL(%q) = %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "0", "60", "-1h", "1.5s", "500ms", "d", "1.5d", "-3d", "0d", "36501d", "99999999999d", "2147483647w", "1y", " 1h"} {
		if got, err := ParseTTL(s); err == nil {
			t.Errorf("ParseTTL(%q) = %s, want an error", s, got)
		}
	}
}

func TestEscapeLike(t *testing.T) {
	// K41: % and _ in a prefix are letters like others; so is the escape itself.
	if got, want := EscapeLike(`50%_a\b`), `50\%\_a\\b`; got != want {
		t.Errorf("EscapeLike = %s, want %s", got, want)
	}
}

func TestMerge(t *testing.T) {
	// K27, K32: an agent reads codebase and reviewer, and is given one list.
	a, b, c := entry(t, "a", noon, 0), entry(t, "b", noon.Add(2*time.Second), 0), entry(t, "c", noon.Add(time.Second), 0)
	gone := entry(t, "gone", noon, time.Second)
	older := a
	older.Value, older.UpdatedAt = "old", noon.Add(-time.Second)
	now := noon.Add(time.Minute)

	got := Merge(now, 0, []Entry{older, gone, b}, []Entry{a, c}, nil)
	var keys []string
	for _, e := range got {
		keys = append(keys, e.Key)
	}
	if strings.Join(keys, " ") != "b c a" {
		t.Errorf("merged %v, want the newest first, without the expired one", keys)
	}
	if got[2].Value != a.Value {
		t.Errorf("the older of two readings won: %q", got[2].Value)
	}
	if got := Merge(now, 2, []Entry{a, b, c}); len(got) != 2 || got[1].Key != "c" {
		t.Errorf("limit 2 gave %v", got)
	}
}

func TestJSON(t *testing.T) {
	var into struct{ N int }
	e := entry(t, "k", noon, 0)
	if err := e.Decode(&into); err != nil || into.N != 1 { // K42
		t.Errorf("Decode: %+v, %v", into, err)
	}
	e.Value = "no JSON"
	if err := e.Decode(&into); err == nil || !strings.Contains(err.Error(), "ns/k") {
		t.Errorf("Decode of text: %v", err)
	}
	got, err := json.Marshal(e)
	want := `{"namespace":"ns","key":"k","value":"no JSON","agent":"coder","scope":"house","expires_at":null,"created_at":"2026-07-01T12:00:00Z","updated_at":"2026-07-01T12:00:00Z"}`
	if err != nil || string(got) != want {
		t.Errorf("JSON %s, %v", got, err)
	}
}
