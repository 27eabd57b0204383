package web_test

import (
	"crypto/ed25519"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/orchestrator/store/storetest"
)

// An export of more tasks than its seal lists is held against the checkpoints all the same.
func TestAnExportOfManyTasksHasItsCheckpoints(t *testing.T) {
	address := storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "house.db"))
	made := storetest.Seed(t, address, 30_000, time.Now())
	if made.Tasks <= proof.MaxListed {
		t.Fatalf("%d tasks are not many", made.Tasks)
	}
	h := openAt(t, address)
	public, key, err := ed25519.GenerateKey(nil)
	h.must(err)
	h.must(h.store.SaveSealKey(h.ctx, public))
	for deadline := h.soon(); ; {
		grown := h.store.Grown().Changed()
		pos, err := h.store.LastPosition(h.ctx)
		h.must(err)
		if pos >= int64(made.Events) {
			break
		}
		select {
		case <-grown:
		case <-time.After(time.Until(deadline)):
			t.Fatalf("%d events of %d are in order", pos, made.Events)
		}
	}
	sealed, err := h.store.Seal(h.ctx, func(m []byte) ([]byte, string) { return ed25519.Sign(key, m), proof.Fingerprint(public) })
	if err != nil || !sealed {
		t.Fatalf("sealed %t, %v", sealed, err)
	}
	token := h.token(h.user("aud", people.Auditor))
	file := h.expect(http.StatusOK, "", "GET", v1+"/audit/export", token, "").body
	found, err := proof.Verify(strings.NewReader(file), proof.Options{})
	h.must(err)
	if !found.OK() || found.Events < made.Events || found.Tasks <= made.Tasks || found.Covered < made.Tasks {
		t.Errorf("of %d tasks and %d events: %+v", made.Tasks, made.Events, found)
	}
	// The same file, cut where the checkpoints begin.
	body, _, _ := strings.Cut(file, `{"type":"checkpoint"`)
	if found, err = proof.Verify(strings.NewReader(body), proof.Options{}); err != nil || found.OK() {
		t.Errorf("without its end it verifies: %+v, %v", found, err)
	}
}
