package storetest

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"gatehouse/orchestrator"
)

var auditTests = map[string]func(*Suite){
	"an intact history verifies":    intact,
	"heads are sealed into a chain": seals,
}

func intact(s *Suite) {
	for i := range 3 {
		task := s.task(fmt.Sprint(i))
		s.in(task.ID, func(tx orchestrator.Tx) error {
			return errors.Join(appendOne(s.ctx, "a")(tx), appendOne(s.ctx, "b")(tx))
		})
	}
	s.user("ann")
	n, err := s.Store.VerifyAll(s.ctx, func(id string, err error) { s.Errorf("%s: %v", id, err) })
	if err != nil || n != 4 {
		s.Errorf("verified %d, %v", n, err)
	}
	s.is(s.Store.VerifyTask(s.ctx, "tsk_none"), orchestrator.ErrNotFound)
}

func seals(s *Suite) {
	public, private, err := ed25519.GenerateKey(nil)
	s.must(err)
	sign := func(m []byte) ([]byte, string) { return ed25519.Sign(private, m), "k1" }
	seal := func(want bool) {
		s.Helper()
		if made, err := s.Store.Seal(s.ctx, sign); err != nil || made != want {
			s.Errorf("sealed %t %v", made, err)
		}
	}
	s.run(s.Store)
	seal(false)
	task := s.task("one")
	for i := range 3 {
		s.in(task.ID, appendOne(s.ctx, fmt.Sprint(i)))
		s.eventually("the event has a position", func() bool {
			pos, err := s.Store.LastPosition(s.ctx)
			s.must(err)
			return pos == int64(i+2)
		})
		seal(true)
		seal(false)
	}
	check := func(m, sig []byte, key string) error {
		if key != "k1" || !ed25519.Verify(public, m, sig) {
			return errors.New("not our signature")
		}
		return nil
	}
	if n, err := s.Store.VerifySeals(s.ctx, check); err != nil || n != 3 {
		s.Errorf("%d seals, %v", n, err)
	}
	no := errors.New("no")
	_, err = s.Store.VerifySeals(s.ctx, func([]byte, []byte, string) error { return no })
	s.is(err, no)
}
