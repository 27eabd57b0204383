package review

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/handlers/change"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	"gatehouse/views/diff"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

// reviewAsk is the rest of the review page where r asks about a call, or is a question.
func (p *Pages) reviewAsk(c echo.Context, f *handlers.Frame, q url.Values, page view.ReviewPage, r approval.Request, shown approval.Revision, all []approval.Revision, no refused) error {
	page.Says, page.Warnings = "", shown.Warnings
	page.RevokedBy, page.RevokedAt = r.Revoked()
	for _, v := range all {
		page.Revisions = append(page.Revisions, v.N)
	}
	if r.IsAction() {
		if err := callOf(q, &page, r, shown, all); err != nil {
			return err
		}
	} else {
		page.Question = &view.QuestionAsk{Agent: r.Agent, Text: r.Question.Text, Choices: r.Question.Choices, CanReject: f.Voters.May(f.Who.Principal, r, approval.Reject) == nil}
		if r.RequesterID != "" {
			page.Question.Asker = r.Requester
		}
	}
	page.Refused, page.Comment, page.Ticked, page.Back = no.message, no.comment, no.ticked, placeOf(q.Encode())
	open := page.CanDecide && page.State == string(approval.Pending)
	if page.CanEdit = open && page.Call != nil && page.Call.NoEdit == ""; page.CanEdit && q.Get("edit") != "" {
		page.Doing = view.Editing
		page.Call.Editor = cmp.Or(no.input, page.Call.Editor)
	}
	if !open {
		page.Unsent = strings.TrimSpace(no.input + "\n" + no.comment)
	}
	return wholeOrPart(c, q, page, no)
}

// callOf puts a call onto its page, with what people changed of its input: since the
// revision that ?since= names, else since the one that was edited.
func callOf(q url.Values, page *view.ReviewPage, r approval.Request, shown approval.Revision, all []approval.Revision) error {
	newest := r.Call()
	r.Revision = shown
	call := r.Call()
	page.Call = &view.CallAsk{Agent: r.Agent, Tool: call.Tool, Server: call.Server, Hints: views.HintWords(call.Hints), Shown: call.Shown()}
	if scope, ok := r.Scope(); ok {
		page.Call.Scope = scope.String()
	}
	page.Call.Editor = editable(newest.Input)
	if mask.Text(page.Call.Editor) != page.Call.Editor { // what is masked would run as it is masked
		page.Call.Editor, page.Call.NoEdit = "", "Part of the input is masked on this page, so it cannot be edited here."
	}
	from := shown.MadeFrom
	if s := q.Get("since"); s != "" {
		from, _ = strconv.Atoi(s) // what is no number is no revision
	}
	if from == 0 && q.Get("since") == "" {
		return nil
	}
	i := slices.IndexFunc(all, func(v approval.Revision) bool { return v.N == from })
	if i < 0 {
		return handlers.Refuse(orchestrator.CodeNotFound, "This request has no revision of that number to compare with.")
	}
	r.Revision = all[i]
	page.Call.Against, page.Call.Changes = from, inputChanges(r.Call(), call)
	if q.Get("since") != "" {
		page.Against = from
	}
	return nil
}

// editable is an input as JSON for an editor, with what nobody could see there as escapes.
func editable(input json.RawMessage) string {
	var pretty bytes.Buffer
	if json.Indent(&pretty, input, "", "  ") != nil {
		return string(input)
	}
	var b strings.Builder
	for _, piece := range views.Pieces(pretty.String()) {
		code, named := strings.CutPrefix(piece.Text, "U+")
		n, err := strconv.ParseUint(code, 16, 32)
		if !piece.Risky || !named || err != nil {
			b.WriteString(piece.Text)
			continue
		}
		b.WriteString(escaped(rune(n)))
	}
	return b.String()
}

// escaped is a character as JSON writes it in ASCII.
func escaped(r rune) string {
	text := ""
	for _, unit := range utf16.Encode([]rune{r}) {
		text += fmt.Sprintf(`\u%04x`, unit)
	}
	return text
}

// inputOf is the input that a form sends, nil for none. What only reads otherwise is the
// input that was there, so that nothing is made of it.
func inputOf(text string, was json.RawMessage) json.RawMessage {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	if same(json.RawMessage(text), was) {
		return was
	}
	var tight bytes.Buffer
	if json.Compact(&tight, []byte(text)) != nil {
		return json.RawMessage(text) // the gate says what is wrong with it
	}
	return tight.Bytes()
}

// same reports whether two inputs mean the same.
func same(a, b json.RawMessage) bool {
	read := func(raw json.RawMessage) (v any, err error) {
		in := json.NewDecoder(bytes.NewReader(raw))
		in.UseNumber()
		err = in.Decode(&v)
		return v, err
	}
	x, badA := read(a)
	y, badB := read(b)
	return badA == nil && badB == nil && reflect.DeepEqual(x, y)
}

// aroundInput is how many unchanged lines stand around a change of an input.
const aroundInput = 3

// inputChanges draws what differs between two inputs, by the lines in which people read them.
func inputChanges(from, to agent.Action) *diff.DiffFile {
	lines := func(a agent.Action) []string {
		return strings.Split(strings.TrimSuffix(mask.Text(a.Shown()), "\n"), "\n")
	}
	changed := change.Lines(lines(from), lines(to))
	file, rows := &diff.DiffFile{N: 1}, change.MaxRows
	for _, l := range changed {
		switch l.Kind {
		case '+':
			file.Added++
		case '-':
			file.Removed++
		}
	}
	drawing := change.Drawing{N: 1, W: change.Window{To: len(changed)}, Total: -1}
	file.Hunks, _ = change.HunksOf(drawing, change.Unfold([]patch.Hunk{{OldStart: 1, NewStart: 1, Lines: changed}}, aroundInput, nil), &rows)
	return file
}
