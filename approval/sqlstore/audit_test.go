package sqlstore_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/proof"
)

var auditTests = map[string]func(*Suite){
	"an intact history verifies":    intact,
	"heads are sealed into a chain": seals,
	"checkpoints prove a period":    eachProof,
}

// eachProof asks for the checkpoints over some of the positions, newest first.
func eachProof(s *Suite) {
	public, private, err := ed25519.GenerateKey(nil)
	s.must(err)
	s.must(s.Store.SaveSealKey(s.ctx, public))
	s.run(s.Store)
	var ends []int64
	for i := range 4 {
		task := s.task(fmt.Sprint(i))
		s.in(task.ID, appendOne(s.ctx, "a"))
		s.eventually("the events have positions", func() bool {
			pos, err := s.Store.LastPosition(s.ctx)
			s.must(err)
			return pos >= int64(2*(i+1))
		})
		made, err := s.Store.Seal(s.ctx, func(m []byte) ([]byte, string) { return ed25519.Sign(private, m), proof.Fingerprint(public) })
		if err != nil || !made {
			s.Fatalf("sealed %t %v", made, err)
		}
		last, err := s.Store.SealedUpTo(s.ctx)
		s.must(err)
		ends = append(ends, last.Pos)
	}
	for _, c := range []struct {
		from, to int64
		most     int
		want     []int64
	}{
		{1, ends[3], 100, []int64{ends[3], ends[2], ends[1], ends[0]}},
		{1, ends[3] + 50, 100, []int64{ends[3], ends[2], ends[1], ends[0]}},
		{ends[0] + 1, ends[2], 100, []int64{ends[2], ends[1]}},
		{ends[1], ends[1], 100, []int64{ends[1]}},
		{1, ends[3], 2, []int64{ends[3], ends[2]}},
		{1, ends[3], 0, nil},
	} {
		var got []int64
		s.must(s.Store.EachProof(s.ctx, c.from, c.to, c.most, func(p proof.Proof) error {
			sum := proof.NewHeads()
			for _, h := range p.Heads {
				sum.Add(h)
			}
			if sum.Sum() != p.Checkpoint.Heads || !ed25519.Verify(p.Key, p.Message(), p.Signature) {
				s.Errorf("the checkpoint at %d does not prove its heads", p.Pos)
			}
			got = append(got, p.Pos)
			return nil
		}))
		if !slices.Equal(got, c.want) {
			s.Errorf("%d to %d, at most %d: %v, want %v", c.from, c.to, c.most, got, c.want)
		}
	}
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
