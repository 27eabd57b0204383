package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/textcut"
	"gatehouse/views"
	taskview "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// How much of a conversation a page shows.
const (
	turnsShown = 40
	turnBytes  = 8 << 10 // of one text; the rest is a link away
)

// RunOf reads ?run=, which counts from 1; absent it is the newest. Runs before a retry or
// before a new revision have conversations of their own.
func RunOf(s string, newest int) (int, error) {
	if s == "" {
		return newest, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > newest+1 {
		return 0, Refuse(orchestrator.CodeBadRequest, fmt.Sprintf("There is no run %.20q. Runs count from 1, and the newest is %d.", s, newest+1))
	}
	return n - 1, nil
}

// Thinking is what a model thought before it spoke, where its provider tells; else "".
func Thinking(b agent.Block) string {
	var data struct {
		Thinking string `json:"thinking"`
	}
	if b.Type != agent.OpaqueBlock || json.Unmarshal(b.Opaque, &data) != nil {
		return ""
	}
	return data.Thinking
}

// talk fills the conversation tab: the newest turns, ?before= goes back.
func (p *Pages) talk(c echo.Context, f *frame, page *taskview.DelegationPage, d orchestrator.Delegation, tree []orchestrator.Delegation) error {
	run, err := RunOf(c.QueryParam("run"), d.Work.Runs)
	if err != nil {
		return err
	}
	last, err := p.Reader.LastTurn(f.ctx, d.ID, run)
	if err != nil {
		return err
	}
	end := last
	if s := c.QueryParam("before"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return Refuse(orchestrator.CodeBadRequest, "That place in the conversation is not known. Start at the newest turn.")
		}
		end = min(end, n-1)
	}
	start := max(0, end-turnsShown)
	if start > 0 { // one more tells whether the page would begin with results without their calls
		start--
	}
	found, err := p.Reader.TurnPage(f.ctx, d.ID, run, start, end-start)
	if err != nil {
		return err
	}
	if start > 0 && len(found) > 1 && found[1].Message.Role != agent.FromTools {
		found = found[1:]
	}
	talk := taskview.Conversation{Run: run + 1, Runs: d.Work.Runs + 1, Last: last, Turns: turnViews(found, d, tree)}
	if len(found) > 0 && found[0].N > 1 {
		talk.OlderURL = withParam(f.chrome.Path, "before", strconv.Itoa(found[0].N))
	}
	talk.Later = end < last
	talk.Live = run == d.Work.Runs && !d.State.Ended() && !talk.Later
	talk.Model = p.Engine.Traits(d.To).Conversation || last > 0
	page.Talk = talk
	return nil
}

// turnViews pairs calls with their results: a turn of results stands with its calls.
func turnViews(turns []agent.Turn, d orchestrator.Delegation, tree []orchestrator.Delegation) []taskview.Turn {
	names, made := map[string]string{}, map[string]string{}
	for _, x := range tree {
		names[x.ID] = x.To
		if x.ParentID == d.ID && x.HopKey != "" {
			made[x.HopKey] = x.ID
		}
	}
	link := func(id string) taskview.TurnChild {
		return taskview.TurnChild{ID: id, Name: first(names[id], "a delegation")}
	}
	var out []taskview.Turn
	for _, t := range turns {
		if n := len(out) - 1; t.Message.Role == agent.FromTools && n >= 0 && out[n].Role == agent.FromModel {
			answer(&out[n], t, d.ID)
			continue
		}
		v := taskview.Turn{N: t.N, Role: t.Message.Role, Agent: d.To, From: first(d.From, d.Requester), Model: t.Model, Stop: t.Stop, At: t.At, Took: t.Took}
		if t.Message.Role == agent.FromModel {
			v.Usage = usage(t.Usage)
		}
		v.Text = cutText(t.Message.Text(), d.ID, t.N)
		for _, b := range t.Message.Blocks {
			if thought := Thinking(b); thought != "" {
				v.Thinking = append(v.Thinking, cutText(thought, d.ID, t.N))
			}
		}
		for _, b := range t.Message.Calls() {
			call := taskview.ToolCall{ID: b.ID, Name: b.Name, About: firstArgument(b.Input), Input: cutText(indented(b.Input), d.ID, t.N)}
			if id := made[b.ID]; id != "" {
				child := link(id)
				call.Child = &child
			}
			v.Calls = append(v.Calls, call)
		}
		if t.Message.Role == agent.FromTools { // its calls are not stored: shown all the same
			answer(&v, t, d.ID)
		}
		if t.Message.Role == agent.FromUser {
			for _, id := range t.Children {
				v.Told = append(v.Told, link(id))
			}
		}
		out = append(out, v)
	}
	for i := range out {
		timeCalls(&out[i], tree)
	}
	return out
}

// timeCalls says of each call how long it took: one that made a delegation as long as that
// one, a single one until its answer.
func timeCalls(v *taskview.Turn, tree []orchestrator.Delegation) {
	for i := range v.Calls {
		c := &v.Calls[i]
		if len(v.Calls) == 1 && v.Answered.After(v.At) {
			c.Took = v.Answered.Sub(v.At)
		}
		if c.Child == nil {
			continue
		}
		for _, d := range tree {
			if d.ID == c.Child.ID {
				c.Usage = usage(d.Usage)
				if d.EndedAt != nil {
					c.Took = d.EndedAt.Sub(d.CreatedAt)
				}
			}
		}
	}
}

// answer puts the results of a turn beside their calls.
func answer(v *taskview.Turn, t agent.Turn, id string) {
	v.Answered = t.At
	for _, b := range t.Message.Blocks {
		if b.Type != agent.AnswerBlock {
			continue
		}
		at := -1
		for i := range v.Calls {
			if v.Calls[i].ID == b.ID && !v.Calls[i].Done {
				at = i
			}
		}
		if at < 0 {
			v.Calls = append(v.Calls, taskview.ToolCall{ID: b.ID, Name: b.Name})
			at = len(v.Calls) - 1
		}
		v.Calls[at].Done, v.Calls[at].Failed, v.Calls[at].Result = true, b.IsError, cutText(b.Text, id, t.N)
	}
}

// cutText is a text as the page shows it, with a way to the whole.
func cutText(s, id string, n int) views.LongText {
	head, all := textcut.Bytes(s, turnBytes)
	if all {
		return views.LongText{Text: s}
	}
	return views.LongText{Text: head, Rest: len(s) - len(head), Href: "/api/v1/delegations/" + id + "/turns?limit=1&after=" + strconv.Itoa(n-1)}
}

// indented makes JSON readable; what is none stays as it is.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// firstArgument is the first value of a call that fits on a line.
func firstArgument(input json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for dec.More() {
		if _, err := dec.Token(); err != nil {
			return ""
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return ""
		}
		var s string
		switch {
		case json.Unmarshal(raw, &s) == nil && strings.TrimSpace(s) != "":
			return s
		case len(raw) > 0 && raw[0] != '{' && raw[0] != '[' && raw[0] != '"' && string(raw) != "null":
			return string(raw)
		}
	}
	return ""
}
