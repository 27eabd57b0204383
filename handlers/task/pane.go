package task

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/textcut"
	"gatehouse/views"
	view "gatehouse/views/task"
)

// How much of a delegation the pane shows.
const (
	logShown  = 40      // lines
	lineBytes = 4 << 10 // of one line
	textStep  = 64 << 10
)

// pane is one delegation in full. more says how many further pieces of its texts are wanted.
func (p *Pages) pane(f *handlers.Frame, d orchestrator.Delegation, page *view.DelegationPage, more int) (view.DelegationPane, error) {
	spec, _ := p.Engine.Config().Agents.Get(d.To)
	pane := view.DelegationPane{
		ID: d.ID, Name: d.To, From: d.From, Kind: string(spec.Kind), State: string(d.State), Text: longText(d.Text, more), Chain: handlers.Names(d),
		Attempt: 1, Sandbox: d.Work.Sandbox, NeverAsked: d.Work.NeverAsked, StartedAt: handlers.At(d.StartedAt), EndedAt: handlers.At(d.EndedAt), Usage: handlers.UsageOf(d), ApprovalID: d.ApprovalID, More: more,
		Steering: d.Work.Steering, Steered: views.SteeredWords(d.From, worksOn(d.Work.Stand, ""), d.Work.Trusted),
		Handed: handedLines(d.Work.Handover),
	}
	if d.Work.Problem == "" { // a landing that waits counts its tries there, too
		pane.Attempt += d.Losses
	}
	pane.From = cmp.Or(pane.From, d.Requester)
	pane.Limits, pane.Used = handlers.LimitsOf(spec, d.Work.Confined)
	if d.Error != nil {
		pane.Exit, pane.ExitCode = d.Error.Message, d.Error.Code
	}
	if d.Result != nil {
		pane.Result, pane.Commit, pane.Pushed = longText(d.Result.Text, more), d.Result.Commit, views.BranchName(d.Result.Pushed)
		if len(d.Result.Data) > 0 {
			pane.Data = longText(indented(d.Result.Data), more)
		}
		for i, a := range d.Result.Artifacts {
			shown := view.Artifact{N: i + 1, Name: a.Name, Path: a.Path, Type: a.MediaType, Size: max(a.Size, int64(len(a.Text)))}
			if strings.HasPrefix(a.MediaType, "text/markdown") {
				shown.Text = a.Text
			}
			pane.Artifacts = append(pane.Artifacts, shown)
		}
	}
	if !page.HasPane() {
		return pane, nil
	}
	if d.ParentID != "" {
		if err := p.guardsOf(f, d, &pane); err != nil {
			return pane, err
		}
	}
	return pane, p.logOf(f, d, &pane)
}

// guardsOf finds in the log which guards let the hand-over pass.
func (p *Pages) guardsOf(f *handlers.Frame, d orchestrator.Delegation, pane *view.DelegationPane) error {
	found, err := p.Traces.EventsOf(f.Ctx, d.TaskID, orchestrator.EventFilter{Types: []event.Type{event.Delegated}, Delegations: []string{d.ParentID}, Has: d.ID, Limit: 1})
	for _, e := range found {
		for _, g := range event.Read[event.DelegatedData](e).Guards {
			pane.Guards = append(pane.Guards, guard.Verdict{Guard: g, Allowed: true})
		}
	}
	return err
}

// logOf fills the last lines that the work printed, with the calls that a program made between
// them, and what of it was not taken.
func (p *Pages) logOf(f *handlers.Frame, d orchestrator.Delegation, pane *view.DelegationPane) error {
	found, err := p.Traces.EventsOf(f.Ctx, d.TaskID, orchestrator.EventFilter{Types: []event.Type{event.Progress, event.ToolCalled, event.PlanChanged, event.Denied}, Delegations: []string{d.ID}, Newest: true, Limit: logShown})
	if err != nil {
		return err
	}
	slices.Reverse(found)
	for _, e := range found {
		text := event.Read[event.ProgressData](e).Text
		if e.Type != event.Progress {
			text = handlers.EventLine(e)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			cut, _ := textcut.Bytes(line, lineBytes)
			pane.LogTail = append(pane.LogTail, view.LogLine{Text: cut, Rest: len(line) - len(cut), N: e.N})
		}
	}
	pane.LogMore = len(found) == logShown || len(pane.LogTail) > logShown
	pane.LogTail = pane.LogTail[max(0, len(pane.LogTail)-logShown):]
	refused, err := p.Traces.EventsOf(f.Ctx, d.TaskID, orchestrator.EventFilter{Types: []event.Type{event.PatchRejected}, Delegations: []string{d.ID}, Limit: 50})
	for _, e := range refused {
		pane.Rejected = append(pane.Rejected, rejected(event.Read[event.PatchRejectedData](e))...)
	}
	return err
}

// longText cuts a text that would make the page too long; more says how many pieces of it
// are wanted beside the first.
func longText(s string, more int) views.LongText {
	cut, _ := textcut.Bytes(s, textStep*(more+1))
	return views.LongText{Text: cut, Rest: len(s) - len(cut)}
}

func rejected(facts event.PatchRejectedData) []view.RejectedFile {
	var out []view.RejectedFile
	for _, path := range facts.Files {
		out = append(out, view.RejectedFile{Path: path, Code: facts.Code, Text: facts.Message})
	}
	if len(out) == 0 {
		out = append(out, view.RejectedFile{Path: facts.Path, Code: facts.Code, Text: facts.Message})
	}
	return out
}

// maxHandedLine is how much of one value of a hand-over its page shows, in bytes; the API
// and the receiver have the whole.
const maxHandedLine = 2000

// handedLines is the command object that came with a delegation as its page shows it. What
// says nothing is left out; the task stands above it.
func handedLines(h *agent.Handover) []views.ContextLine {
	if h == nil {
		return nil
	}
	var lines []views.ContextLine
	add := func(name, value string) {
		if value = mask.Text(strings.TrimSpace(value)); value != "" {
			lines = append(lines, views.ContextLine{Key: name, Value: textcut.Brief(value, maxHandedLine)})
		}
	}
	u := h.Update
	judged := u.Context.Judged
	switch {
	case judged.Retry:
		add("retry", "yes: "+judged.Reason)
	case judged.Validated != nil:
		add("validated", map[bool]string{true: "yes: ", false: "no: "}[*judged.Validated]+judged.Reason)
	}
	add("completed", u.Context.Completed)
	add("artifacts", strings.Join(artifactLines(u), "\n"))
	add("phase", u.WorkflowState.Phase)
	add("next phase", u.WorkflowState.NextPhase)
	add("steps done", strings.Join(u.WorkflowState.CompletedSteps, ", "))
	add("steps left", strings.Join(u.WorkflowState.RemainingSteps, ", "))
	for _, name := range slices.Sorted(maps.Keys(u.Context.More)) {
		add(orchestrator.Title(name), u.Context.More[name])
	}
	add("so far", spent(u.Metrics))
	return lines
}

// artifactLines names what was made, and where, and what is still to be made.
func artifactLines(u agent.HandoverUpdate) []string {
	var lines []string
	for _, name := range (&agent.Handover{Update: u}).ArtifactNames() {
		path, listed := u.Artifacts[name]
		switch {
		case !listed:
			lines = append(lines, name)
		case path == nil:
			lines = append(lines, name+": not made yet")
		default:
			lines = append(lines, name+": "+*path)
		}
	}
	return lines
}

// spent is what the work took before it was handed over.
func spent(m agent.HandoverMetrics) string {
	if m == (agent.HandoverMetrics{}) {
		return ""
	}
	words := fmt.Sprintf("%d tokens, %s", m.TokensUsed, time.Duration(m.TimeElapsed)*time.Second)
	if m.RetryCount > 0 {
		words += fmt.Sprintf(", %d refused tries to hand over", m.RetryCount)
	}
	return words
}
