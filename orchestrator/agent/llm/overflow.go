package llm

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/textcut"
)

const (
	// cutAt is how long a tool's result may be, in characters, once results are cut (P27).
	cutAt = 8000
	// lastTier is the shortest view; when it is too long as well, the run fails (P29).
	lastTier = 3
)

// view is how a conversation is shown to a model: all of it, unless the model said that
// it is too long. What is stored is never changed.
type view struct {
	cut  bool // long results of tools are cut
	from int  // messages before this one are left out, but never the task
}

// tier returns the view for the n-th try: as before; with cut results (tier 1); with the
// older half of the messages left out (tier 2); with both (tier 3).
func (v view) tier(n int, messages []agent.Message) view {
	switch n {
	case 0:
		return v
	case 1:
		return view{cut: true, from: v.from}
	case 2:
		return view{cut: v.cut, from: half(messages, v.from)}
	default:
		return view{cut: true, from: half(messages, v.from)}
	}
}

// half returns the message with which the younger half begins. It never stands between
// calls and their results.
func half(messages []agent.Message, from int) int {
	from = max(from, 1)
	at := from + (len(messages)-from+1)/2
	for at < len(messages) && messages[at].Role == agent.FromTools {
		at++
	}
	for at >= len(messages) || at > from && messages[at].Role == agent.FromTools {
		at--
	}
	if at <= from || messages[at].Role == agent.FromTools {
		return from
	}
	return at
}

// of applies the view. The messages given are not changed.
func (v view) of(messages []agent.Message) []agent.Message {
	out := make([]agent.Message, 0, len(messages))
	for i, m := range messages {
		switch {
		case i == 0 && v.from > 1:
			m = withNote(m, messages[1:v.from])
		case i > 0 && i < v.from:
			continue
		case v.cut && m.Role == agent.FromTools:
			m = cutResults(m)
		case len(m.Blocks) == 0: // no provider takes an empty message
			m = agent.Message{Role: m.Role, Blocks: []agent.Block{{Type: agent.TextBlock, Text: emptySlot}}}
		}
		out = append(out, m)
	}
	return out
}

// withNote adds to the task what was left out behind it: how much, and the whole answers
// of other agents, which the caller still needs (O22).
func withNote(task agent.Message, left []agent.Message) agent.Message {
	var b strings.Builder
	fmt.Fprintf(&b, "(%d earlier messages of this conversation were left out, because it is too long.", len(left))
	asked := map[string]agent.Block{}
	for _, m := range left {
		for _, block := range m.Blocks {
			switch {
			case block.Type == agent.CallBlock:
				asked[block.ID] = block
			case exempt(block):
				fmt.Fprintf(&b, "\n\n%s was called with %s and brought:\n%s", block.Name, textcut.Characters(string(asked[block.ID].Input), 2000), block.Text)
			}
		}
	}
	b.WriteString(")")
	task.Blocks = append(task.Blocks[:len(task.Blocks):len(task.Blocks)], agent.Block{Type: agent.TextBlock, Text: b.String()})
	return task
}

// exempt reports whether a result must stay whole: the answer of another agent. What
// went wrong is treated as any other result (O22).
func exempt(b agent.Block) bool {
	return b.Type == agent.AnswerBlock && !b.IsError && (b.Name == delegateTool || b.Name == handoffTool)
}

func cutResults(m agent.Message) agent.Message {
	blocks := make([]agent.Block, len(m.Blocks))
	for i, b := range m.Blocks {
		if b.Type == agent.AnswerBlock && !exempt(b) {
			b.Text = cutResult(b.Text)
		}
		blocks[i] = b
	}
	m.Blocks = blocks
	return m
}

// cutResult cuts a text at the last end of a line within cutAt characters, or there when
// there is none, and says so below it.
func cutResult(text string) string {
	n := utf8.RuneCountInString(text)
	if n <= cutAt {
		return text
	}
	head := string([]rune(text)[:cutAt])
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		head = head[:i]
	}
	return head + fmt.Sprintf("\n[cut: %d of %d characters are shown]", utf8.RuneCountInString(head), n)
}
