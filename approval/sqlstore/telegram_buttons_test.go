package sqlstore_test

import (
	"reflect"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/orchestrator"
)

var buttonTests = map[string]func(*Suite){
	"a button stands for what it was bound to": buttons,
	"a question is answered once":              prompts,
	"old buttons and questions are forgotten":  buttonsForgotten,
}

func buttons(s *Suite) {
	s.must(s.Store.AddButtons(s.ctx, nil))
	at := s.Clock.Now()
	want := telegram.Bound{Hash: "aa", RequestID: "apr_1", Revision: 2, Digest: "d", Chat: -100123, Verdict: approval.Respond, ForTask: true, Choice: 12, At: at}
	s.must(s.Store.AddButtons(s.ctx, []telegram.Bound{want, {Hash: "bb", RequestID: "apr_1", Revision: 2, Chat: 1001, Verdict: approval.Approve, At: at}}))
	if got, err := s.Store.Button(s.ctx, "aa"); err != nil || got != want {
		s.Errorf("button %+v %v", got, err)
	}
	s.must(s.Store.PutButtons(s.ctx, nil, 7))
	s.must(s.Store.PutButtons(s.ctx, []string{"aa", "cc"}, 7))
	want.Message = 7
	if got, err := s.Store.Button(s.ctx, "aa"); err != nil || got != want {
		s.Errorf("button of a message %+v %v", got, err)
	}
	_, err := s.Store.Button(s.ctx, "cc")
	s.is(err, orchestrator.ErrNotFound)
	if err := s.Store.AddButtons(s.ctx, []telegram.Bound{{Hash: "dd", At: at}, {Hash: "aa", At: at}}); err == nil {
		s.Error("a button was bound a second time")
	}
	_, err = s.Store.Button(s.ctx, "dd")
	s.is(err, orchestrator.ErrNotFound) // all or none
}

func prompts(s *Suite) {
	at := s.Clock.Now()
	want := telegram.Prompt{Chat: -100123, Message: 7, Account: 1001, RequestID: "apr_1", Revision: 2, Digest: "d", Verdict: approval.RequestChanges, At: at}
	s.must(s.Store.AddPrompt(s.ctx, want))
	s.must(s.Store.AddPrompt(s.ctx, want)) // after a crash, once more
	if got, err := s.Store.Prompt(s.ctx, -100123, 7); err != nil || !reflect.DeepEqual(got, want) {
		s.Errorf("prompt %+v %v", got, err)
	}
	_, err := s.Store.Prompt(s.ctx, 1001, 7)
	s.is(err, orchestrator.ErrNotFound)
	_, err = s.Store.OpenPrompt(s.ctx, -100123, 0, at)
	s.is(err, orchestrator.ErrNotFound)
	card := telegram.Prompt{Chat: -100123, Message: 8, RequestID: "apr_2", Revision: 1, Digest: "d", Verdict: approval.Respond, At: at} // a question's, for everybody
	s.must(s.Store.AddPrompt(s.ctx, card))
	if got, err := s.Store.OpenPrompt(s.ctx, -100123, 0, at); err != nil || !reflect.DeepEqual(got, card) {
		s.Errorf("the card of a question %+v %v", got, err)
	}
	later := want
	later.Message, later.At = 9, at.Add(time.Minute)
	s.must(s.Store.AddPrompt(s.ctx, later))
	if got, err := s.Store.OpenPrompt(s.ctx, -100123, 1001, at); err != nil || got.Message != 9 {
		s.Errorf("newest open one %+v %v", got, err)
	}
	_, err = s.Store.OpenPrompt(s.ctx, -100123, 1002, at)
	s.is(err, orchestrator.ErrNotFound)
	_, err = s.Store.OpenPrompt(s.ctx, -100123, 1001, at.Add(time.Hour))
	s.is(err, orchestrator.ErrNotFound)

	s.Clock.Add(time.Minute)
	wins := make([]bool, 8)
	for _, err := range together(8, func(i int) error {
		var err error
		wins[i], err = s.Store.UsePrompt(s.ctx, -100123, 9, s.Clock.Now())
		return err
	}) {
		s.must(err)
	}
	first := 0
	for _, won := range wins {
		if won {
			first++
		}
	}
	got, err := s.Store.Prompt(s.ctx, -100123, 9)
	if err != nil || first != 1 || got.Used == nil || !got.Used.Equal(s.Clock.Now()) {
		s.Errorf("%d were the first; %+v %v", first, got, err)
	}
	if got, err := s.Store.OpenPrompt(s.ctx, -100123, 1001, at); err != nil || got.Message != 7 {
		s.Errorf("the one that is left open: %+v %v", got, err)
	}
}

func buttonsForgotten(s *Suite) {
	at := s.Clock.Now()
	open := s.request(s.delegation(s.task("Fix it")))
	s.must(s.Store.AddButtons(s.ctx, []telegram.Bound{{Hash: "old", At: at}, {Hash: "new", At: at.Add(time.Hour)}, {Hash: "waits", RequestID: open.ID, At: at}}))
	s.must(s.Store.AddPrompt(s.ctx, telegram.Prompt{Chat: 1, Message: 1, At: at}))
	if n, err := s.Store.ForgetButtons(s.ctx, at.Add(time.Minute)); err != nil || n != 2 {
		s.Errorf("forgot %d: %v", n, err)
	}
	_, err := s.Store.Button(s.ctx, "old")
	s.is(err, orchestrator.ErrNotFound)
	for _, hash := range []string{"new", "waits"} {
		_, err = s.Store.Button(s.ctx, hash)
		s.must(err)
	}
}
