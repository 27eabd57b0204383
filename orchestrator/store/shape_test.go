package store_test

import (
	"strings"
	"testing"
	"time"
)

// TestTheTableOfTheSharedContext: other programs may read and write it, so its name, its
// columns and their limits are held by the database itself (K17–K26).
func TestTheTableOfTheSharedContext(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		s := open(t, url)
		long := func(n int) string { return "'" + strings.Repeat("x", n) + "'" }
		insert := func(values string) error {
			return s.Spoil(t.Context(), "insert into agent_shared_context (namespace, key_name, value, agent) values ("+values+")")
		}
		for values, fits := range map[string]bool{
			long(64) + "," + long(128) + ",''," + long(64): true, // K18, K19, K21
			long(65) + ",'k','v','a'":                      false,
			"'n'," + long(129) + ",'v','a'":                false,
			"'n','k','v'," + long(65):                      false,
			"null,'k','v','a'":                             false,
			"'n',null,'v','a'":                             false,
			"'n','k',null,'a'":                             false, // K20
			"'n','k','v',null":                             false,
		} {
			if err := insert(values); (err == nil) != fits {
				t.Errorf("%.20s…: %v", values, err)
			}
		}
		before := time.Now().Add(-time.Minute)
		if err := insert("'n','k','v','a'"); err != nil {
			t.Fatal(err)
		}
		if err := insert("'n','k','again','a'"); err == nil { // K25
			t.Error("one namespace has a key twice")
		}
		if err := insert("'m','k','v','a'"); err != nil {
			t.Errorf("another namespace cannot have the key: %v", err)
		}
		if err := insert("'n','k2','v','a'"); err != nil {
			t.Errorf("the namespace cannot have another key: %v", err)
		}
		e, err := s.Context("").Get(t.Context(), "n", "k")
		if err != nil || e.ExpiresAt != nil || e.CreatedAt.Before(before) || e.UpdatedAt.Before(before) || e.CreatedAt.After(time.Now().Add(time.Minute)) { // K22–K24
			t.Errorf("what another program wrote is %+v, %v", e, err)
		}
		for name, column := range map[string]string{"idx_namespace": "(namespace)", "idx_expires": "(expires_at)"} { // K26
			made, err := s.IndexText(t.Context(), name)
			if err != nil || !strings.Contains(made, "agent_shared_context") || !strings.HasSuffix(made, column) {
				t.Errorf("%s: %q, %v", name, made, err)
			}
		}
	})
}
