package people

import (
	"strings"
	"testing"
	"time"
)

func TestLinkCodesAreRandomAndTypable(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		code, hash := NewLinkCode()
		if len(code) != linkCodeChars || strings.Trim(code, crockford) != "" || seen[code] {
			t.Fatalf("code %q after %d others", code, len(seen))
		}
		seen[code] = true
		if strings.Contains(hash, code) || hash != HashLinkCode(code) {
			t.Fatalf("the hash of %s is %s", code, hash)
		}
	}
}

func TestACodeIsReadAsItWasMeant(t *testing.T) {
	const code = "0123ABCDEF10"
	for _, typed := range []string{"0123abcdef10", " 0123-ABCD-EF10\n", "o123abcdefio", "OI23ABCDEFL0", "0123 ABCD EF10"} {
		if HashLinkCode(typed) != HashLinkCode(code) {
			t.Errorf("%q is another code than %s", typed, code)
		}
	}
	for _, other := range []string{"", "0123ABCDEF11", "0123ABCDEF1", "0123ABCDEF1U", "0123ABCDEF10\x00"} {
		if HashLinkCode(other) == HashLinkCode(code) {
			t.Errorf("%q is taken for %s", other, code)
		}
	}
}

func TestAnAbsenceHoldsFromItsBeginningToItsEnd(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	a := &Away{To: "usr_cleo", From: noon, Until: noon.Add(time.Hour)}
	for after, want := range map[time.Duration]bool{-1: false, 0: true, time.Hour - 1: true, time.Hour: false} {
		if got := a.Now(noon.Add(after)); got != want {
			t.Errorf("%v after its beginning: %t", after, got)
		}
	}
	if (*Away)(nil).Now(noon) {
		t.Error("who is here is away")
	}
}

func TestWhoMayStandIn(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ann := User{ID: "usr_ann", Name: "ann", Roles: []Role{Approver}}
	cleo := User{ID: "usr_cleo", Name: "cleo", Roles: []Role{Admin, Approver}}
	left := cleo
	left.Disabled = true
	for name, c := range map[string]struct {
		to          User
		from, until time.Duration
		says        string
	}{
		"an approver":      {to: cleo, until: time.Hour},
		"since yesterday":  {to: cleo, from: -24 * time.Hour, until: time.Hour},
		"oneself":          {to: ann, until: time.Hour, says: "nobody stands in for themselves"},
		"who has left":     {to: left, until: time.Hour, says: "the deputy cleo is disabled"},
		"no approver":      {to: User{ID: "usr_dora", Name: "dora", Roles: []Role{Admin}}, until: time.Hour, says: "the deputy dora does not have the role approver"},
		"for no time":      {to: cleo, from: time.Hour, until: time.Hour, says: "must come after its beginning"},
		"that is over now": {to: cleo, from: -time.Hour, until: 0, says: "has passed already"},
	} {
		a := Away{To: c.to.ID, From: noon.Add(c.from), Until: noon.Add(c.until)}
		err := a.Check(ann, c.to, noon)
		if (err == nil) != (c.says == "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
