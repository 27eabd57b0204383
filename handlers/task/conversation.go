package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/textcut"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// How much of a conversation a page shows.
const (
	turnsShown = 40
	turnBytes  = 8 << 10 // of one text; the rest is a link away
)

// talk fills the conversation tab: the newest turns, ?before= goes back.
func (p *Pages) talk(c echo.Context, f *handlers.Frame, page *view.DelegationPage, d orchestrator.Delegation, tree []orchestrator.Delegation) error {
	run, err := handlers.RunOf(c.QueryParam("run"), d.Work.Runs)
	if err != nil {
		return err
	}
	last, err := p.Reader.LastTurn(f.Ctx, d.ID, run)
	if err != nil {
		return err
	}
	end := last
	if s := c.QueryParam("before"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return handlers.Refuse(orchestrator.CodeBadRequest, "That place in the conversation is not known. Start at the newest turn.")
		}
		end = min(end, n-1)
	}
	start := max(0, end-turnsShown)
	if start > 0 { // one more tells whether the page would begin with results without their calls
		start--
	}
	found, err := p.Reader.TurnPage(f.Ctx, d.ID, run, start, end-start)
	if err != nil {
		return err
	}
	if start > 0 && len(found) > 1 && found[1].Message.Role != agent.FromTools {
		found = found[1:]
	}
	talk := view.Conversation{Run: run + 1, Runs: d.Work.Runs + 1, Last: last, Turns: turnViews(found, d, tree)}
	if len(found) > 0 && found[0].N > 1 {
		talk.OlderURL = handlers.WithParam(f.Chrome.Path, "before", strconv.Itoa(found[0].N))
	}
	talk.Later = end < last
	talk.Live = run == d.Work.Runs && !d.State.Ended() && !talk.Later
	talk.Model = p.Engine.Traits(d.To).Conversation || last > 0
	page.Talk = talk
	return nil
}

// turnViews pairs calls with their results: a turn of results stands with its calls.
func turnViews(turns []agent.Turn, d orchestrator.Delegation, tree []orchestrator.Delegation) []view.Turn {
	names, made := map[string]string{}, map[string]string{}
	for _, x := range tree {
		names[x.ID] = x.To
		if x.ParentID == d.ID && x.HopKey != "" {
			made[x.HopKey] = x.ID
		}
	}
	link := func(id string) view.TurnChild {
		return view.TurnChild{ID: id, Name: cmp.Or(names[id], "a delegation")}
	}
	var out []view.Turn
	for _, t := range turns {
		if n := len(out) - 1; t.Message.Role == agent.FromTools && n >= 0 && out[n].Role == agent.FromModel {
			answer(&out[n], t, d.ID)
			continue
		}
		v := view.Turn{N: t.N, Role: t.Message.Role, Agent: d.To, From: cmp.Or(d.From, d.Requester), Model: t.Model, Stop: t.Stop, At: t.At, Took: t.Took}
		if t.Message.Role == agent.FromModel {
			v.Usage = handlers.Usage(t.Usage)
		}
		v.Text = cutText(t.Message.Text(), d.ID, t.N)
		for _, b := range t.Message.Blocks {
			if thought := handlers.Thinking(b); thought != "" {
				v.Thinking = append(v.Thinking, cutText(thought, d.ID, t.N))
			}
		}
		for _, b := range t.Message.Calls() {
			call := view.ToolCall{ID: b.ID, Name: b.Name, About: firstArgument(b.Input), Input: cutText(indented(b.Input), d.ID, t.N)}
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
			v.Told = each.Of(t.Children, link)
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
func timeCalls(v *view.Turn, tree []orchestrator.Delegation) {
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
				c.Usage = handlers.Usage(d.Usage)
				if d.EndedAt != nil {
					c.Took = d.EndedAt.Sub(d.CreatedAt)
				}
			}
		}
	}
}

// answer puts the results of a turn beside their calls.
func answer(v *view.Turn, t agent.Turn, id string) {
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
			v.Calls = append(v.Calls, view.ToolCall{ID: b.ID, Name: b.Name})
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
