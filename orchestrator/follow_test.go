package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// says sends a message of the chat; after is the task that it follows, "" for a new thread.
func (w *world) says(by people.User, after, to, text string) (orchestrator.Task, orchestrator.Delegation, error) {
	t, root, _, err := w.engine.Submit(w.t.Context(), orchestrator.Submission{Agent: to, Text: text, Follows: after, Via: origin.From(origin.Chat), Chat: by.ID,
		RequesterID: by.ID, Requester: by.Name})
	return t, root, err
}

// follows sends a message that must be taken, and waits for its end.
func (w *world) follows(after, to, text string, end orchestrator.State) orchestrator.Delegation {
	w.t.Helper()
	_, root, err := w.says(w.ann, after, to, text)
	w.must(err)
	return w.state(root.ID, end)
}

// wire is what was said over the wire so far, as one line.
func wire(a modeltest.Ask) string {
	var said []string
	for _, m := range a.Messages {
		if text := strings.TrimSpace(m.Text()); text != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, " | ")
}

// Three follow-ups remember: each is a task of its own whose model is given what was said
// before. What retention has of a thread is one task after the other, and a list shows it once.
func TestAThreadRemembers(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"})
		m := meter(t, func(a modeltest.Ask) modeltest.Answer { return modeltest.Say(fmt.Sprintf("answer %d", a.Turn)) })
		w.models(m)
		w.start()
		one := w.follows("", "kik", "my name is Ann", orchestrator.Completed)
		two := w.follows(one.TaskID, "", "what is my name?", orchestrator.Completed)
		w.follows(one.TaskID, "kik", "and yours?", orchestrator.Completed) // names the first task: the thread is meant
		four := w.follows(two.TaskID, "", "bye", orchestrator.Completed)
		other := w.follows("", "kik", "something else", orchestrator.Completed)
		var got []string
		for _, a := range m.Asks() {
			got = append(got, wire(a))
		}
		want := []string{"my name is Ann",
			"my name is Ann | answer 1 | what is my name?",
			"my name is Ann | answer 1 | what is my name? | answer 2 | and yours?",
			"my name is Ann | answer 1 | what is my name? | answer 2 | and yours? | answer 3 | bye",
			"something else"}
		if !slices.Equal(got, want) {
			t.Errorf("over the wire went\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if four.Usage.InputTokens == 0 || four.Text != "bye" || four.Requester != "ann" {
			t.Errorf("the last message is %+v", four)
		}
		all, err := w.store.Threads(t.Context(), w.ann.ID, "", 10)
		w.must(err)
		if len(all) != 2 || all[0].ID != other.TaskID || all[0].Count != 1 || all[1].ID != one.TaskID || all[1].Count != 4 || all[1].Title != "my name is Ann" || all[1].RootID != four.ID {
			t.Errorf("the threads are %+v", all)
		}
		if rest, err := w.store.Threads(t.Context(), w.ann.ID, all[0].RootID, 10); err != nil || len(rest) != 1 {
			t.Errorf("behind the first: %+v, %v", rest, err)
		}
		if none, err := w.store.Threads(t.Context(), w.bob.ID, "", 10); err != nil || len(none) != 0 {
			t.Errorf("bob has threads: %+v, %v", none, err)
		}
		page, err := w.store.List(t.Context(), orchestrator.Filter{Conversation: w.ann.ID, Thread: one.TaskID, Limit: 2})
		if err != nil || len(page.Items) != 2 || page.Items[0].ID != four.ID || page.Next == "" {
			t.Errorf("the thread's newest page: %+v, %v", page, err)
		}
		if page, err = w.store.List(t.Context(), orchestrator.Filter{Conversation: w.bob.ID, Thread: one.TaskID}); err != nil || len(page.Items) != 0 {
			t.Errorf("bob reads ann's thread: %+v, %v", page, err)
		}
		for _, after := range []string{one.TaskID, "tsk_01aaaaaaaaaaaaaaaaaaaaaaaa"} {
			if _, _, err := w.says(w.bob, after, "kik", "and me?"); orchestrator.CodeOf(err) != orchestrator.CodeNotFound {
				t.Errorf("bob went on with %s: %v", after, err)
			}
		}
	})
}

// The same message again, by its key, is the same task: also while that task works.
func TestAFollowUpIsTakenOnce(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"})
		go_ := make(chan struct{})
		w.models(meter(t, func(a modeltest.Ask) modeltest.Answer {
			if a.Turn > 1 {
				<-go_
			}
			return modeltest.Say("yes")
		}))
		w.start()
		one := w.follows("", "kik", "first", orchestrator.Completed)
		send := func(text string) (orchestrator.Task, bool, error) {
			task, _, made, err := w.engine.Submit(t.Context(), orchestrator.Submission{Text: text, Follows: one.TaskID, Key: "k", Via: origin.From(origin.Chat), RequesterID: w.ann.ID, Requester: "ann"})
			return task, made, err
		}
		a, made, err := send("second")
		b, again, errAgain := send("second")
		if err != nil || errAgain != nil || !made || again || a.ID != b.ID || b.Thread != one.TaskID {
			t.Errorf("twice the same: %v %v %s %s (%v, %v)", made, again, a.ID, b.ID, err, errAgain)
		}
		if _, _, err := send("third"); orchestrator.CodeOf(err) != orchestrator.CodeKeyReused {
			t.Errorf("the key for another text: %v", err)
		}
		if _, _, err := w.says(w.ann, one.TaskID, "", "too early"); orchestrator.CodeOf(err) != orchestrator.CodeNotEnded {
			t.Errorf("while it works: %v", err)
		}
		close(go_)
		w.state(a.RootID, orchestrator.Completed)
	})
}

// What is said while the agent of the thread works reaches it; the same key is the same words,
// also when the work has ended since, and what another person says is nobody's.
func TestAThreadIsToldWhileItsAgentWorks(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"})
		asked, go_ := make(chan struct{}, 8), make(chan struct{})
		m := meter(t, func(modeltest.Ask) modeltest.Answer {
			asked <- struct{}{}
			<-go_
			return modeltest.Say("yes")
		})
		w.models(m)
		w.start()
		_, root, err := w.says(w.ann, "", "kik", "first")
		w.must(err)
		<-asked
		say := func(by people.User, key, text string) (orchestrator.Spoken, error) {
			return w.engine.Say(t.Context(), orchestrator.Submission{Text: text, Follows: root.TaskID, Key: key, Via: origin.From(origin.Chat), RequesterID: by.ID, Requester: by.Name}, by)
		}
		one, err := say(w.ann, "k", "mind the tests")
		w.must(err)
		if two, err := say(w.ann, "k", "mind the tests"); err != nil || one.Message == nil || two.Message == nil || one.Message.ID != two.Message.ID {
			t.Errorf("told twice: %+v %+v, %v", one.Message, two.Message, err)
		}
		if _, err := say(w.bob, "", "and me"); orchestrator.CodeOf(err) != orchestrator.CodeNotFound {
			t.Errorf("bob was heard: %v", err)
		}
		close(go_)
		w.state(root.ID, orchestrator.Completed)
		if three, err := say(w.ann, "k", "mind the tests"); err != nil || three.Message == nil || three.Task.ID != root.TaskID {
			t.Errorf("told again when it was over: %+v, %v", three, err)
		}
		next, err := say(w.ann, "l", "go on")
		if err != nil || next.Message != nil || !next.Created || next.Task.Thread != root.TaskID {
			t.Fatalf("the follow-up: %+v, %v", next, err)
		}
		w.state(next.Root.ID, orchestrator.Completed)
		asks := m.Asks()
		if said := wire(asks[len(asks)-1]); !strings.Contains(said, "mind the tests") || !strings.HasSuffix(said, "go on") {
			t.Errorf("the follow-up's model was told %s", said)
		}
	})
}

// A follow-up works on today's files, also when what was made before landed or was rejected;
// its model is told so. While people are asked, nothing goes on behind their back.
func TestAFollowUpSeesTodaysFiles(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m", Repository: "app"})
		m := meter(t, func(a modeltest.Ask) modeltest.Answer {
			switch last := a.Last().Text(); {
			case strings.HasPrefix(last, "make "), strings.HasPrefix(last, "again "):
				return modeltest.Use("write_file", map[string]any{"path": strings.Fields(last)[1], "content": "x\n"})
			case strings.HasPrefix(last, "look"):
				return modeltest.Use("list_files", map[string]any{})
			}
			return modeltest.Say("done")
		})
		w.models(m)
		w.start()
		_, root, err := w.says(w.ann, "", "kik", "make a.txt")
		w.must(err)
		r := w.request(root.TaskID, 1)
		if _, _, err := w.says(w.ann, root.TaskID, "", "and more"); orchestrator.CodeOf(err) != orchestrator.CodeNotEnded || !strings.Contains(err.Error(), "request changes") {
			t.Errorf("while people are asked: %v", err)
		}
		w.must(errOf(w.gateway.Decide(t.Context(), w.ballot(w.bob, r, approval.Approve))))
		w.state(root.ID, orchestrator.Completed)
		_, second, err := w.says(w.ann, root.TaskID, "", "make b.txt")
		w.must(err)
		r = w.request(second.TaskID, 1)
		if names := paths(r); names != "b.txt" {
			t.Errorf("the follow-up's change is %s", names)
		}
		b := w.ballot(w.bob, r, approval.Reject)
		b.Comment = "not this one"
		w.must(errOf(w.gateway.Decide(t.Context(), b)))
		w.state(second.ID, orchestrator.Rejected)
		w.follows(second.TaskID, "", "look", orchestrator.Completed)
		asks := m.Asks()
		last := asks[len(asks)-1]
		if files := last.Result("list_files"); !strings.Contains(files, "a.txt") || strings.Contains(files, "b.txt") {
			t.Errorf("its files are\n%s", files)
		}
		if said := wire(last); !strings.Contains(said, "make a.txt") || !strings.Contains(said, "not this one") || !strings.Contains(said, "fresh checkout") {
			t.Errorf("it was told %s", said)
		}
	})
}

func paths(r approval.Request) string {
	var names []string
	for _, f := range r.Revision.Files {
		names = append(names, f.Path)
	}
	return strings.Join(names, " ")
}

// Work that did not end is gone on with in its files, and who asked before has a part in it.
func TestAFollowUpOfFailedWorkKeepsItsFiles(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m", Repository: "app", MaxTurns: 2})
		m := meter(t, func(a modeltest.Ask) modeltest.Answer {
			if strings.HasPrefix(a.Last().Text(), "go on") {
				return modeltest.Say("done")
			}
			return modeltest.Use("write_file", map[string]any{"path": fmt.Sprintf("f%d.txt", a.Turn), "content": "x\n"})
		})
		w.models(m)
		w.start()
		one := w.follows("", "kik", "make files", orchestrator.Failed)
		_, two, err := w.says(w.ann, one.TaskID, "", "go on")
		w.must(err)
		r := w.request(two.TaskID, 1)
		if names := paths(r); names != "f1.txt f2.txt" {
			t.Errorf("the follow-up's change is %q", names)
		}
		if d, _ := w.store.Delegation(t.Context(), two.ID); !slices.Contains(d.Lineage().Agents(), "kik") || len(d.Lineage().Askers) != 1 {
			t.Errorf("who has a part in it: %+v", d.Lineage())
		}
	})
}

// The files of a thread are there for its follow-ups, beside those that come with them; one of
// the same name takes the place of the earlier one.
func TestTheFilesOfAThreadStay(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		seen := make(chan string, 3)
		w.script("coder", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			seen <- inDir(job.AttachmentsDir, "a.txt", "b.txt")
			return agenttest.Done("read"), nil
		})
		w.start()
		send := func(after string, files ...agent.File) string {
			task, root, _, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: "coder", Text: "read", Follows: after, Attachments: files,
				Via: origin.From(origin.Chat), RequesterID: w.ann.ID, Requester: "ann"})
			w.must(err)
			w.state(root.ID, orchestrator.Completed)
			return task.ID
		}
		one := send("", agent.File{Name: "a.txt", Data: []byte("one")})
		two := send(one, agent.File{Name: "b.txt", Data: []byte("two")})
		send(two, agent.File{Name: "a.txt", Data: []byte("three")})
		for _, want := range []string{"a.txt=one b.txt=-", "a.txt=one b.txt=two", "a.txt=three b.txt=two"} {
			if got := <-seen; got != want {
				t.Errorf("the files are %s, want %s", got, want)
			}
		}
	})
}

// An agent that keeps no conversation, and another one than before, is told what was said.
func TestWhatWasSaidIsToldToWhoeverDoesNotRemember(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik", Kind: agent.LLM, Model: "fake/m"}, agent.Spec{Name: "coder"})
		m := meter(t, func(modeltest.Ask) modeltest.Answer { return modeltest.Say("I am a model") })
		w.models(m)
		told := make(chan string, 3)
		w.script("coder", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			told <- job.Text
			return agenttest.Done("coded"), nil
		})
		w.start()
		one := w.follows("", "coder", "first \"quoted\"\nthing", orchestrator.Completed)
		two := w.follows(one.TaskID, "", "second", orchestrator.Completed)
		w.follows(two.TaskID, "kik", "third", orchestrator.Completed)
		if first := <-told; first != "first \"quoted\"\nthing" {
			t.Errorf("the first was told %q", first)
		}
		before := `{"person":"ann","text":"first \"quoted\"\nthing"}` + "\n" + `{"agent":"coder","text":"coded"}`
		if got := <-told; !strings.HasPrefix(got, "second\n\n# What was said") || !strings.HasSuffix(got, before) {
			t.Errorf("the follow-up was told\n%s", got)
		}
		if got := wire(m.Asks()[0]); !strings.Contains(got, `{"agent":"coder","text":"coded"}`) || !strings.Contains(got, "third\n\n# What was said") {
			t.Errorf("another agent was told\n%s", got)
		}
	})
}

// However much was said, what is told again is bounded, and the newest is kept.
func TestWhatIsToldOfAThreadIsBounded(t *testing.T) {
	var said []agent.Said
	for i := range 40 {
		said = append(said, agent.Said{Person: "ann", Text: fmt.Sprintf("%d %s", i, strings.Repeat("x", 6000))})
	}
	got := agent.AfterThread(said, "now")
	if len(got) > 17<<10 || !strings.Contains(got, `"39 x`) || strings.Contains(got, `"0 x`) || !strings.Contains(got, "left out") || !strings.Contains(got, `"cut":true`) {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
	if got := agent.AfterThread(nil, "now"); got != "now" {
		t.Errorf("nothing was said, and told is %q", got)
	}
}
