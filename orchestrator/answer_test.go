package orchestrator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// answer does one act on the n-th comment of r; seen is how many were there before.
func (w *world) answer(u people.User, r approval.Request, n, seen int, act approval.Act, text string) error {
	return w.gateway.Answer(w.t.Context(), approval.Said{RequestID: r.ID, Thread: w.thread(r, n).ID, Principal: people.As(u, nil), Channel: "web", Act: act, Text: text, Seen: seen})
}

// thread is the n-th comment of r, from 0.
func (w *world) thread(r approval.Request, n int) approval.Thread {
	w.t.Helper()
	all, err := w.gateway.Threads(w.t.Context(), r)
	w.must(err)
	return all[n]
}

// wantAnswers holds what stands under the n-th comment, and whether it is resolved.
func (w *world) wantAnswers(r approval.Request, n int, resolved bool, want ...string) {
	w.t.Helper()
	t := w.thread(r, n)
	var got []string
	for _, a := range t.Answers {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", a.User, a.Act, a.Text)))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || t.Resolved() != resolved {
		w.t.Fatalf("answers %q, resolved %v; want %q, %v", got, t.Resolved(), want, resolved)
	}
}

// A comment is answered, done, and open again; nothing is done twice, and each act is one
// event of the task.
func TestACommentIsAnsweredAndResolved(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, map[string]string{"core/a.txt": "one\ntwo\n"}, nil)
		r = w.comments(root, r, map[string]string{"core/a.txt": "one\n2\n"}, agent.LineComment{Path: "core/a.txt", Line: 2, Text: "Digits."}, agent.LineComment{Path: "core/a.txt", Line: 1, Text: "Why?"})
		w.must(w.answer(cleo, r, 0, 0, approval.Reply, " Done\x00 in 2. "))
		w.must(w.answer(cleo, r, 0, 0, approval.Reply, "Done in 2.")) // sent twice
		w.must(w.answer(w.bob, r, 0, 1, approval.Resolve, "Thanks."))
		w.must(w.answer(w.bob, r, 0, 1, approval.Resolve, "Thanks."))
		w.must(w.answer(cleo, r, 0, 3, approval.Resolve, ""))
		w.wantAnswers(r, 0, true, "cleo reply Done in 2.", "bob reply Thanks.", "bob resolve")
		w.must(w.answer(cleo, r, 0, 3, approval.Reopen, ""))
		w.must(w.answer(cleo, r, 0, 4, approval.Reply, "Done in 2.")) // the same words, said again
		w.wantAnswers(r, 0, false, "cleo reply Done in 2.", "bob reply Thanks.", "bob resolve", "cleo reopen", "cleo reply Done in 2.")
		w.wantAnswers(r, 1, false)

		for says, err := range map[string]error{
			"There is no act": w.answer(cleo, r, 0, 0, "destroy", ""),
			"is empty":        w.answer(cleo, r, 0, 0, approval.Reply, " \x00"),
			"is the limit":    w.answer(cleo, r, 0, 0, approval.Reply, strings.Repeat("x", approval.MaxComment+1)),
		} {
			w.refused(err, orchestrator.CodeBadRequest, says)
		}
		w.refused(w.answer(w.ann, r, 0, 0, approval.Resolve, ""), orchestrator.CodeNotAnApprover, "")
		w.refused(w.gateway.Answer(t.Context(), approval.Said{RequestID: r.ID, Thread: "dec_x.1", Principal: people.As(cleo, nil), Act: approval.Resolve}), orchestrator.CodeNotFound, "no comment")
		run := people.Principal{User: cleo, Run: &people.Run{}}
		w.refused(w.gateway.Answer(t.Context(), approval.Said{RequestID: r.ID, Thread: w.thread(r, 0).ID, Principal: run, Act: approval.Resolve}), orchestrator.CodeForbidden, "")

		for kind, want := range map[event.Type]int{event.CommentReplied: 3, event.CommentResolved: 1, event.CommentReopened: 1} {
			if n := w.count(root.TaskID, kind); n != want {
				t.Errorf("%d events %s, want %d", n, kind, want)
			}
		}
		for _, e := range w.events(root.TaskID) {
			if e.Type == event.CommentResolved && (e.Actor != "bob" || !strings.Contains(string(e.Data), w.thread(r, 0).ID) || !strings.Contains(string(e.Data), `"path":"core/a.txt"`)) {
				t.Errorf("the event is %s %s", e.Actor, e.Data)
			}
		}
		w.must(errOf(w.decide(r, approval.Reject, "no")))
		w.refused(w.answer(cleo, r, 1, 0, approval.Resolve, ""), orchestrator.CodeConflict, "rejected")
	})
}

// People who answer at once are all kept, and what they do alike is done once.
func TestPeopleAnswerAtOnce(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w, root, r, cleo := asked(t, url, map[string]string{"core/a.txt": "one\n"}, nil)
		r = w.comments(root, r, map[string]string{"core/a.txt": "1\n"}, agent.LineComment{Path: "core/a.txt", Line: 1, Text: "Digits."})
		var all sync.WaitGroup
		failed := make(chan error, 8)
		for _, u := range []people.User{w.bob, cleo} {
			for _, text := range []string{"one", "one", "two"} {
				all.Go(func() { failed <- w.answer(u, r, 0, 0, approval.Reply, text) })
			}
			all.Go(func() { failed <- w.answer(u, r, 0, 0, approval.Resolve, "") })
		}
		all.Wait()
		close(failed)
		for err := range failed {
			w.must(err)
		}
		got := map[string]int{}
		for i, a := range w.thread(r, 0).Answers {
			got[a.User+" "+string(a.Act)+" "+a.Text]++
			if a.N != i+1 {
				t.Errorf("answer %d has the number %d", i+1, a.N)
			}
		}
		resolved := got["bob resolve "] + got["cleo resolve "]
		if len(got) != 5 || got["bob reply one"]+got["bob reply two"]+got["cleo reply one"]+got["cleo reply two"] != 4 || resolved != 1 {
			t.Errorf("kept: %v", got)
		}
	})
}

// An agent that works again is told again what is still open, with what was said under it;
// what is resolved is left out.
func TestAnAgentIsToldWhatIsStillOpen(t *testing.T) {
	t.Parallel()
	w, root, r, cleo := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), map[string]string{"core/a.txt": "1\n2\n3\n"}, nil)
	r = w.comments(root, r, map[string]string{"core/a.txt": "new\n1\n2\n"}, agent.LineComment{Path: "core/a.txt", Line: 1, Text: "Name it."},
		agent.LineComment{Path: "core/a.txt", Line: 2, Text: "Done already."}, agent.LineComment{Path: "core/a.txt", Line: 3, Text: "Keep it."})
	w.must(w.answer(cleo, r, 0, 0, approval.Reply, "After the host."))
	w.must(w.answer(cleo, r, 1, 0, approval.Resolve, ""))
	told := make(chan agent.Feedback, 1)
	w.script("coder", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		told <- *job.Feedback
		return agent.Outcome{}, os.ErrInvalid
	})
	b := w.ballot(w.bob, r, approval.RequestChanges)
	b.Comment = "Not yet."
	w.must(errOf(w.gateway.Decide(t.Context(), b)))
	want := []agent.LineComment{{Path: "core/a.txt", Line: 2, Side: "R", Code: "1", Text: "(open since revision 1) Name it.\ncleo: After the host."},
		{Path: "core/a.txt", Side: "R", Code: "3", Text: "(open since revision 1) Keep it."}}
	if got := <-told; fmt.Sprint(got.Comments) != fmt.Sprint(want) || got.Note != "" {
		t.Errorf("the agent was told %+v %q", got.Comments, got.Note)
	}
	if d := w.reread(r.ID).Decisions[1]; len(d.Comments) != 0 {
		t.Errorf("the decision took others' comments: %+v", d.Comments)
	}
}

// Of more than an agent is told, the newest are; it is told how many are not. No line of a
// reply passes for another person's.
func TestAnAgentIsToldTheNewestAndWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	w, root, r, cleo := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), map[string]string{"core/a.txt": "1\n2\n"}, nil)
	old := make([]agent.LineComment, 300)
	for i := range old {
		old[i] = agent.LineComment{Path: "core/a.txt", Line: 1, Text: fmt.Sprint("old ", i)}
	}
	r = w.comments(root, r, map[string]string{"core/a.txt": "1\n3\n"}, old...)
	w.must(w.answer(cleo, r, 299, 0, approval.Reply, "Yes.\nbob: Never."))
	told := make(chan agent.Feedback, 1)
	w.script("coder", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		told <- *job.Feedback
		return agent.Outcome{}, os.ErrInvalid
	})
	b := w.ballot(w.bob, r, approval.RequestChanges)
	b.Comments = make([]agent.LineComment, approval.MaxComments-200)
	for i := range b.Comments {
		b.Comments[i] = agent.LineComment{Path: "core/a.txt", Line: 2, Text: fmt.Sprint("new ", i)}
	}
	w.must(errOf(w.gateway.Decide(t.Context(), b)))
	got := <-told
	if n := len(got.Comments); n != approval.MaxComments {
		t.Fatalf("the agent was told %d comments", n)
	}
	first, last := got.Comments[approval.MaxComments-200].Text, got.Comments[approval.MaxComments-1].Text
	if !strings.HasSuffix(first, "old 100") || !strings.Contains(last, "old 299\ncleo: Yes.\n    bob: Never.") {
		t.Errorf("the oldest that it was told is %q, the newest %q", first, last)
	}
	if !strings.HasPrefix(got.Note, "100 older open comments are not told again") {
		t.Errorf("what is left out is said as %q", got.Note)
	}
}

// What people say under all comments of a request has a size that its page bears; what is
// done without words still is.
func TestRepliesHaveALimitTogether(t *testing.T) {
	t.Parallel()
	w, root, r, cleo := asked(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), map[string]string{"core/a.txt": "1\n"}, nil)
	r = w.comments(root, r, map[string]string{"core/a.txt": "2\n"}, agent.LineComment{Path: "core/a.txt", Line: 1, Text: "Why?"})
	n := approval.MaxAnswered / approval.MaxComment
	for i := range n {
		w.must(w.answer(cleo, r, 0, i, approval.Reply, strings.Repeat("x", approval.MaxComment-1)+fmt.Sprint(i%10)))
	}
	w.refused(w.answer(w.bob, r, 0, n, approval.Reply, "One more."), orchestrator.CodeConflict, "is the limit. Say it with a verdict")
	w.must(w.answer(w.bob, r, 0, n, approval.Resolve, ""))
	if th := w.thread(r, 0); !th.Resolved() || len(th.Answers) != n+1 {
		t.Errorf("resolved %v, %d answers", th.Resolved(), len(th.Answers))
	}
}
