package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
)

// turn stores one message of a delegation's conversation.
func (h *house) turn(d orchestrator.Delegation, n int, role string, blocks ...agent.Block) {
	h.Helper()
	t := agent.Turn{N: n, Message: agent.Message{Role: role, Blocks: blocks}}
	if role == agent.FromModel {
		usd := 0.02
		t.Model, t.Stop, t.Took, t.Usage = "test/sonnet", "end", 1500*time.Millisecond, agent.Usage{InputTokens: 900, OutputTokens: 100, USD: &usd}
	}
	h.must(h.store.InTask(h.ctx, d.TaskID, func(tx orchestrator.Tx) error { return tx.PutTurn(h.ctx, &d, t) }))
}

func said(s string) agent.Block { return agent.Block{Type: agent.TextBlock, Text: s} }

func asks(id, tool, input string) agent.Block {
	return agent.Block{Type: agent.CallBlock, ID: id, Name: tool, Input: json.RawMessage(input)}
}

func answers(id, tool, text string, bad bool) agent.Block {
	return agent.Block{Type: agent.AnswerBlock, ID: id, Name: tool, Text: text, IsError: bad}
}

// page is a page that is there.
func (b *browser) page(path string) string {
	b.Helper()
	a := b.get(path)
	if a.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d", path, a.StatusCode)
	}
	return a.body
}

const nasty = "<script>alert(1)</script> \u202e"

// O18: the page shows each turn with who said it, what it cost, its calls beside
// their results, what was refused, and the delegations that came of it; texts are data.
func TestTheConversationIsShownTurnByTurn(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	_, root := h.task(dora, "Fix the loop")
	child := h.running(root, "call-3") // made by the call of that id
	h.turn(root, 1, agent.FromUser, said("Fix the loop "+nasty))
	h.turn(root, 2, agent.FromModel, agent.Block{Type: agent.OpaqueBlock, Provider: "anthropic", Opaque: json.RawMessage(`{"type":"thinking","thinking":"first I look","signature":"c2VjcmV0"}`)},
		said("I look at it."), asks("call-1", "read_file", `{"lines":[1,2],"path":"loop.go"}`), asks("call-2", "delegate_to_agent", `{"to":"kik"}`), asks("call-3", "delegate_to_agent", `{"to":"coder"}`))
	h.turn(root, 3, agent.FromTools, answers("call-1", "read_file", strings.Repeat("line "+nasty+"\n", 2000), false),
		answers("call-2", "delegate_to_agent", "cycle: kik cannot hand to kik.", true), answers("call-3", "delegate_to_agent", "done "+nasty, false))
	h.turn(root, 4, agent.FromModel, said("It is fixed."))

	b := h.signIn(dora)
	page := b.page("/delegations/" + root.ID + "?tab=conversation")
	for _, want := range []string{
		"kik and its model", "4 turns", "test/sonnet", "1k tokens · $0.02", "1.5 s", "I look at it.", "It is fixed.", "first I look",
		"loop.go", "cycle: kik cannot hand to kik.", "is-failed", "more: <a href=\"/api/v1/delegations/" + root.ID + "/turns?limit=1&amp;after=2\">the whole turn</a>",
		"/delegations/" + child.ID + "?tab=conversation", "⟦U+202E⟧", `id="live-turn"`, `data-live-turn="4"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "c2VjcmV0") || strings.Contains(page, `<details class="thought" open`) {
		t.Error("foreign text is markup, a signature is shown, or thinking stands open")
	}
	if n := strings.Count(page, `class="turn from-`); n != 3 {
		t.Errorf("%d turns on the page; results stand with their calls", n)
	}
	page = b.page("/delegations/" + child.ID + "?tab=conversation")
	if !strings.Contains(page, "coder is no model: it has no conversation.") {
		t.Error("a command's page does not say that it has no conversation")
	}
	h.publishes(dora, root)
}

// publishes fails where the API has other turns than the page, or what nobody else may have.
func (h *house) publishes(dora people.User, root orchestrator.Delegation) {
	h.Helper()
	var list struct {
		Items []struct {
			N      int
			Run    int
			Role   string
			Blocks []map[string]any
			Usage  agent.Usage
			TookMS int64 `json:"took_ms"`
		}
		Next *string
	}
	token := h.token(dora)
	h.must(json.Unmarshal([]byte(h.expect(http.StatusOK, "", "GET", v1+"/delegations/"+root.TaskID+"/turns?after=1&limit=2", token, "").body), &list))
	if len(list.Items) != 2 || list.Items[0].N != 2 || list.Items[1].Role != "tool" || list.Next == nil || *list.Next != "3" {
		h.Fatalf("a page of turns is %+v", list)
	}
	first := list.Items[0]
	if first.Run != 1 || first.TookMS != 1500 || first.Usage.InputTokens != 900 || len(first.Blocks) != 5 || first.Blocks[0]["type"] != "thinking" || first.Blocks[0]["text"] != "first I look" {
		h.Errorf("turn 2 is %+v", first)
	}
	if raw := fmt.Sprint(first.Blocks); strings.Contains(raw, "c2VjcmV0") {
		h.Error("a provider's signature is published")
	}
	for _, bad := range []string{"?after=x", "?limit=0", "?run=2", "?run=x", "?befor=3"} {
		h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/delegations/"+root.ID+"/turns"+bad, token, "")
	}
	h.expect(http.StatusNotFound, "not_found", "GET", v1+"/delegations/dlg_00000000000000000000000000/turns", token, "")
	h.expect(http.StatusForbidden, "forbidden", "GET", v1+"/delegations/"+root.ID+"/turns", h.token(h.user("appr", people.Approver), people.ApprovalsRead), "")
}

// A huge conversation comes in pages that never part a call from its result.
func TestALongConversationComesInPages(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	_, root := h.task(dora, "Talk")
	const pairs = 130
	h.turn(root, 1, agent.FromUser, said("Talk"))
	for i := range pairs {
		id := fmt.Sprint("call-", i)
		h.turn(root, 2+2*i, agent.FromModel, said(fmt.Sprintf("said %d.", i)), asks(id, "search", `{"q":"x"}`))
		h.turn(root, 3+2*i, agent.FromTools, answers(id, "search", fmt.Sprintf("found %d.", i), false))
	}
	b := h.signIn(dora)
	path, seen, pages := "/delegations/"+root.ID+"?tab=conversation", map[string]bool{}, 0
	for path != "" && pages < 20 {
		pages++
		page := b.page(path)
		for i := range pairs {
			if strings.Contains(page, fmt.Sprintf("said %d.", i)) {
				if !strings.Contains(page, fmt.Sprintf("found %d.", i)) || seen[fmt.Sprint(i)] {
					t.Fatalf("page %d parts call %d from its result, or shows it again", pages, i)
				}
				seen[fmt.Sprint(i)] = true
			}
		}
		path = ""
		if _, rest, ok := strings.Cut(page, `aria-label="Earlier turns"><a href="`); ok {
			link, _, _ := strings.Cut(rest, `"`)
			path = strings.ReplaceAll(link, "&amp;", "&")
		}
	}
	if len(seen) != pairs || pages < 5 {
		t.Errorf("%d pages show %d of %d", pages, len(seen), pairs)
	}
	for _, bad := range []string{"&before=x", "&before=0", "&run=7"} {
		if a := b.get("/delegations/" + root.ID + "?tab=conversation" + bad); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, a.StatusCode)
		}
	}
}
