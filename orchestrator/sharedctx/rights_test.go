package sharedctx

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRights(t *testing.T) {
	tests := []struct {
		name, ids   string
		reads       []string
		namespace   string
		read, write bool
	}{
		{"without reads anything", "K27", nil, "codebase", true, true},
		{"with reads only those", "K27", []string{"codebase", "reviewer"}, "performance", false, true},
		{"what reads name", "K27", []string{"codebase", "reviewer"}, "reviewer", true, true},
		{"no reads at all", "K27", []string{}, "codebase", false, true},
		{"its own memory", "K38", []string{}, "memory:coder", true, true},
		{"another's memory", "K38", nil, "memory:kik", false, false},
		{"another's memory by name", "K38", []string{"memory:kik"}, "memory:kik", true, false},
		{"its memory in another spelling is another's", "K38", nil, "memory:Coder", false, false},
		{"its memory with a look-alike is another's", "K38", nil, "memory:c\u043eder", false, false},
		{"its task's hand-over", "H8", []string{}, "handoff:tsk_1", true, true},
		{"another task's hand-over", "H8", []string{"handoff:tsk_2"}, "handoff:tsk_2", false, false},
		{"its task's board", "P6", []string{}, "task:tsk_1", true, true},
		{"another task's board", "P21b", nil, "task:tsk_2", false, false},
		{"another task's board by name", "P21b", []string{"task:tsk_2"}, "task:tsk_2", false, false},
		{"the records of its delegations", "O23", []string{}, "coder", true, true},
	}
	for _, tt := range tests {
		t.Run(tt.ids+" "+tt.name, func(t *testing.T) {
			r := Rights{Agent: "coder", TaskID: "tsk_1", Reads: tt.reads}
			if err := r.MayRead(tt.namespace); (err == nil) != tt.read {
				t.Errorf("read: %v", err)
			}
			if err := r.MayWrite(tt.namespace, "k"); (err == nil) != tt.write {
				t.Errorf("write: %v", err)
			}
		})
	}
	key := RecordKey("reviewer", noon, "x7f3") // O23
	if key != "delegation:reviewer:1782907200000-x7f3" {
		t.Errorf("record key %q", key)
	}
	if err := (Rights{Agent: "coder"}).MayWrite("coder", key); err == nil {
		t.Error("an agent may write the record of its own delegations")
	}
	longest := Entry{Namespace: strings.Repeat("a", MaxAgent), Key: RecordKey(strings.Repeat("a", MaxAgent), noon, "0123456789"), Agent: "a"}
	if err := longest.Check(); err != nil {
		t.Errorf("the record of the longest names: %v", err)
	}
}

func TestNamedLifeSpans(t *testing.T) {
	for s, want := range map[string]time.Duration{ // K35, K36, K37, K39
		"performance": 24 * time.Hour, "learnings": 30 * day, "pm_learnings": 30 * day, "security": 7 * day, "memory": 90 * day, "never": 0, "36h": 36 * time.Hour,
	} {
		if got, err := Named(s); err != nil || got != want {
			t.Errorf("Named(%q) = %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "Performance", "forever", "0", "-1h", "60", "perf\x00"} {
		if got, err := Named(s); err == nil || !strings.Contains(err.Error(), "security (7d)") {
			t.Errorf("Named(%q) = %s, %v", s, got, err)
		}
	}
	configured := Lifespans{"performance": day, "memory:*": 90 * day, "memory:kik": 0, "mem*": time.Hour, "*": 2 * time.Hour}
	for namespace, want := range map[string]time.Duration{
		"performance": day, "memory:coder": 90 * day, "memory:kik": 0, "memo": time.Hour, "performance2": 2 * time.Hour, "": 2 * time.Hour,
	} {
		if got := configured.Of(namespace); got != want {
			t.Errorf("%q lives %s, want %s", namespace, got, want)
		}
	}
	if got := Lifespans(nil).Of("performance"); got != 0 { // K29
		t.Errorf("without a configuration a write lives %s", got)
	}
}

func TestFit(t *testing.T) {
	of := func(lengths ...int) (entries []Entry) {
		for _, n := range lengths {
			entries = append(entries, Entry{Value: strings.Repeat("ü", n/2)})
		}
		return entries
	}
	lengths := func(given []Given) (all []int) {
		for _, g := range given {
			all = append(all, len(g.Value))
		}
		return all
	}
	for _, c := range []struct {
		entries []Entry
		bytes   int
		want    []int
	}{
		{of(), 1000, nil},
		{of(400, 400), 1000, []int{400, 400}},
		{of(4000, 100, 4000), 1100, []int{500, 100, 500}}, // the largest first, all to the same length
		{of(4000, 100), 1000, []int{900, 100}},
		{of(4000), 1001, []int{1000}},                       // no half character
		{of(100, 200, 300, 400, 500), 512, []int{100, 200}}, // the oldest are left out
		{of(1000), 10, []int{10}},
	} {
		got := Fit(c.entries, c.bytes)
		if !reflect.DeepEqual(lengths(got), c.want) {
			t.Errorf("%d entries in %d bytes: %v, want %v", len(c.entries), c.bytes, lengths(got), c.want)
		}
		for i, g := range got {
			if cut := len(g.Value) < len(c.entries[i].Value); cut != (g.Whole == len(c.entries[i].Value)) {
				t.Errorf("entry %d: whole %d of %d", i, g.Whole, len(c.entries[i].Value))
			}
		}
	}
}

func TestAnEntryTravelsAsJSON(t *testing.T) { // P1, P2, P3
	for _, ttl := range []time.Duration{0, time.Hour} {
		was := entry(t, "k", noon, ttl)
		text, err := json.Marshal(was)
		if err != nil {
			t.Fatal(err)
		}
		var is Entry
		if err := json.Unmarshal(text, &is); err != nil || !reflect.DeepEqual(is, was) {
			t.Errorf("%s became %+v, %v", text, is, err)
		}
	}
	var e Entry
	if err := json.Unmarshal([]byte(`{"namespace":`), &e); err == nil {
		t.Error("broken JSON was read")
	}
	if later := entry(t, "k", noon, time.Hour).At(noon.Add(day)); !later.ExpiresAt.Equal(noon.Add(day+time.Hour)) || !later.UpdatedAt.Equal(noon.Add(day)) {
		t.Errorf("written later: %+v", later)
	}
}
