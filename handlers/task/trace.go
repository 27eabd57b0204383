package task

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
	"gatehouse/views"
	view "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// How much of a tree one page has.
const (
	largeTree    = 500    // rows; in a larger tree ended branches start closed
	treeWindow   = 200    // rows of a larger tree on one page
	mostRefusals = 20     // below one delegation; the events tab has all
	maxLife      = 20_000 // events that the bars of one page are drawn from
)

// lifeTypes are the events that bars are drawn from.
var lifeTypes = []event.Type{event.Queued, event.Resumed, event.ChangesRequested, event.Acknowledged, event.Waiting, event.PatchValidated,
	event.Requested, event.Decided, event.Completed, event.Failed, event.Cancelled}

// trace is a task's tree with what hides below each delegation.
type trace struct {
	tree  []orchestrator.Delegation // oldest first: a caller comes before what it made
	at    map[string]int
	kids  [][]int
	below []view.Below
	top   []int
}

func newTrace(tree []orchestrator.Delegation) *trace {
	t := &trace{tree: tree, at: make(map[string]int, len(tree)), kids: make([][]int, len(tree)), below: make([]view.Below, len(tree))}
	for i, d := range tree {
		t.at[d.ID] = i
		if parent, ok := t.at[d.ParentID]; ok {
			t.kids[parent] = append(t.kids[parent], i)
		} else {
			t.top = append(t.top, i)
		}
	}
	for i := len(tree) - 1; i >= 0; i-- {
		if parent, ok := t.at[tree[i].ParentID]; ok {
			t.below[parent].Add(t.below[i])
			t.below[parent].Count(string(tree[i].State))
		}
	}
	return t
}

// root is the delegation that began the task.
func (t *trace) root() orchestrator.Delegation {
	if len(t.top) == 0 {
		return orchestrator.Delegation{}
	}
	return t.tree[t.top[0]]
}

// failing is where a failed task went wrong: the deepest failure, or the root.
func (t *trace) failing() orchestrator.Delegation {
	where := t.root()
	for _, d := range t.tree {
		if d.Error != nil && d.State == orchestrator.Failed && d.Depth > where.Depth {
			where = d
		}
	}
	return where
}

// above are the delegations on the way from the root to id, without id.
func (t *trace) above(id string) map[int]bool {
	way := map[int]bool{}
	for i, ok := t.at[id]; ok; {
		i, ok = t.at[t.tree[i].ParentID]
		if ok {
			way[i] = true
		}
	}
	return way
}

// treeView is what the address says of the tree: which branches were opened or closed by hand,
// what is looked for, and where the page of rows begins.
type treeView struct {
	folds map[string]bool // the last characters of ids
	find  string
	from  int // -1: where the selected row is
}

const foldKey = 8 // characters of an id that name a row in the address

func viewOf(q url.Values) treeView {
	v := treeView{folds: map[string]bool{}, find: strings.TrimSpace(q.Get("find")), from: -1}
	for _, key := range strings.Split(q.Get("fold"), ".") {
		if key != "" && len(v.folds) < 200 {
			v.folds[key] = true
		}
	}
	if n, err := strconv.Atoi(q.Get("row")); err == nil && n >= 0 {
		v.from = n
	}
	return v
}

func keyOf(id string) string { return id[max(0, len(id)-foldKey):] }

// open says whether the rows below i are shown. A large tree starts with its ended branches
// closed; the way to the selected row is open.
func (t *trace) open(i int, v treeView, way map[int]bool) bool {
	start := len(t.tree) <= largeTree || t.tree[i].ParentID == "" || way[i] || t.below[i].Live > 0 || !t.tree[i].State.Ended()
	return start != v.folds[keyOf(t.tree[i].ID)]
}

// rows lists what is to be seen of the tree, depth first. With found only these and the
// way to them are.
func (t *trace) rows(v treeView, selected string, found []string) []int {
	way := t.above(selected)
	wanted := map[int]bool{}
	for _, id := range found {
		if i, ok := t.at[id]; ok {
			wanted[i] = true
			for up := range t.above(id) {
				wanted[up] = true
			}
		}
	}
	var rows []int
	stack := slices.Clone(t.top)
	slices.Reverse(stack)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v.find != "" && !wanted[i] {
			continue
		}
		rows = append(rows, i)
		if v.find == "" && !t.open(i, v, way) {
			continue
		}
		for k := len(t.kids[i]) - 1; k >= 0; k-- {
			stack = append(stack, t.kids[i][k])
		}
	}
	return rows
}

// window cuts the rows to one page and says where it begins: at the row that was asked
// for, or so that the selected one is on it.
func (t *trace) window(rows []int, v treeView, selected string) (page []int, from int) {
	if len(rows) <= largeTree {
		return rows, 0
	}
	from = v.from
	if from < 0 {
		from = 0
		if i, ok := t.at[selected]; ok {
			from = max(0, slices.Index(rows, i)) / treeWindow * treeWindow
		}
	}
	from = min(from, len(rows)-1)
	return rows[from:min(from+treeWindow, len(rows))], from
}

// outlined fills the tree of a page.
func (p *Pages) outlined(f *handlers.Frame, page *view.DelegationPage, t *trace, q url.Values) error {
	v := viewOf(q)
	var found []string
	if v.find != "" {
		var err error
		if found, err = p.Traces.FindInTask(f.Ctx, page.TaskID, v.find, largeTree); err != nil {
			return err
		}
	}
	all := t.rows(v, page.ID, found)
	rows, from := t.window(all, v, page.ID)
	ids := make([]string, len(rows))
	for k, i := range rows {
		ids[k] = t.tree[i].ID
	}
	full, err := p.Traces.Delegations(f.Ctx, ids)
	if err != nil {
		return err
	}
	bars, refused, err := p.life(f, page, t, ids)
	if err != nil {
		return err
	}
	page.Tree = p.treeRows(t, rows, full, bars, refused)
	page.Find, page.Found, page.TreeN, page.TreeRows, page.TreeFrom = v.find, len(found), len(t.tree), len(all), from
	page.FindCut = len(found) == largeTree
	page.Keep = keptOf(q)
	way := t.above(page.ID)
	for k := range page.Tree {
		r := &page.Tree[k]
		i, ok := t.at[r.ID]
		if !ok || len(t.kids[i]) == 0 || v.find != "" {
			continue
		}
		r.Folds, r.Open, r.Below, r.FoldKey = true, t.open(i, v, way), t.below[i], keyOf(r.ID)
	}
	if page.Tab == view.TabTimeline {
		page.Busy = busyOf(t, ids)
	}
	if from > 0 {
		page.TreePrev = strconv.Itoa(max(0, from-treeWindow))
	}
	if from+len(rows) < len(all) {
		page.TreeNext = strconv.Itoa(from + len(rows))
	}
	return nil
}

// keptOf are the parameters that stay when another row is selected.
func keptOf(q url.Values) url.Values {
	kept := url.Values{}
	for _, name := range []string{"fold", "find", "row", "pinch", "gap"} {
		if s := q.Get(name); s != "" {
			kept.Set(name, s)
		}
	}
	return kept
}

// life reads what happened to some rows: on the timeline their bars, and the hand-overs that
// were refused. Of a small task it walks along its log, of a large one these rows alone count.
func (p *Pages) life(f *handlers.Frame, page *view.DelegationPage, t *trace, ids []string) (map[string][]view.Span, *refusals, error) {
	if len(t.tree) <= largeTree {
		ids = nil
	}
	var bars map[string][]view.Span
	if page.Tab == view.TabTimeline {
		story, err := p.Traces.EventsOf(f.Ctx, page.TaskID, orchestrator.EventFilter{Types: lifeTypes, Delegations: ids, Limit: maxLife})
		if err != nil {
			return nil, nil, err
		}
		bars, page.BarsCut = spansOf(story), len(story) == maxLife
	}
	found := &refusals{rows: map[string][]view.TreeRow{}, more: map[string]int{}}
	story := handlers.Tale{Log: p.Traces, TaskID: page.TaskID, Filter: orchestrator.EventFilter{Types: []event.Type{event.DelegationRefused}, Delegations: ids}}
	for {
		e, more, err := story.Next(f.Ctx)
		if err != nil || !more {
			return bars, found, err
		}
		found.add(e)
	}
}

// busyOf is when delegations worked that have no row on the page, from their columns:
// a gap in the drawing is one in all of the task.
func busyOf(t *trace, shown []string) []view.Span {
	has := make(map[string]bool, len(shown))
	for _, id := range shown {
		has[id] = true
	}
	var busy []view.Span
	for i, d := range t.tree {
		if has[d.ID] || len(t.kids[i]) > 0 || d.StartedAt == nil {
			continue
		}
		busy = append(busy, columnSpans(d)...)
	}
	return busy
}

// columnSpans is what a row alone knows of its time.
func columnSpans(d orchestrator.Delegation) []view.Span {
	end := handlers.At(d.EndedAt)
	if d.StartedAt == nil {
		return []view.Span{{Kind: view.SpanQueued, From: d.CreatedAt, To: end}}
	}
	spans := []view.Span{{Kind: view.SpanQueued, From: d.CreatedAt, To: *d.StartedAt}}
	now := view.Span{Kind: view.SpanWorking, From: *d.StartedAt, To: end}
	kind := map[orchestrator.State]view.SpanKind{orchestrator.Waiting: view.SpanChild, orchestrator.AwaitingApproval: view.SpanPerson, orchestrator.Landing: view.SpanLanding,
		orchestrator.Checking: view.SpanLanding, orchestrator.Queued: view.SpanQueued}[d.State]
	if kind != "" && d.Since.After(*d.StartedAt) {
		now.To = d.Since
		return append(spans, now, view.Span{Kind: kind, From: d.Since})
	}
	return append(spans, now)
}

// refusals are the refused hand-overs below each delegation, in the order of time. A
// hostile agent may try without end: only so many are rows, and the last says how many more.
type refusals struct {
	rows map[string][]view.TreeRow
	more map[string]int
}

func (r *refusals) add(e event.Event) {
	list := r.rows[e.DelegationID]
	if len(list) >= mostRefusals {
		r.more[e.DelegationID]++
		last := &list[len(list)-1]
		last.Note = fmt.Sprintf("and %d more like these", r.more[e.DelegationID])
		return
	}
	facts := event.Read[event.DelegationRefusedData](e)
	r.rows[e.DelegationID] = append(list, view.TreeRow{ID: e.ID, N: e.N, Name: facts.To, From: e.Actor, State: refusedState,
		Code: facts.Code, Message: facts.Message, At: e.At, EndedAt: e.At})
}

// moreOf reads ?more=: how many further pieces of long texts are wanted.
func moreOf(c echo.Context) int {
	n, err := strconv.Atoi(c.QueryParam("more"))
	if err != nil || n < 0 {
		return 0
	}
	return min(n, 400)
}

// withoutParam removes one parameter of an address of ours.
func withoutParam(path, key string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	q := u.Query()
	q.Del(key)
	u.RawQuery = q.Encode()
	return u.String()
}

// cameBy leads to the trigger that made a task: to the very delivery where its key names
// one and this person may read it, else to the trigger with all of them.
func cameBy(who handlers.Caller, t orchestrator.Task) string {
	name := t.Via.Trigger()
	if name == "" {
		return ""
	}
	id, ok := strings.CutPrefix(t.Key, orchestrator.TriggerKey+name+":")
	if ok && strings.HasPrefix(id, trigger.DeliveryPrefix) && (who.Has(people.TasksWrite) || who.Has(people.AuditRead)) {
		return views.DeliveryHref(name, id)
	}
	return views.TriggerHref(name)
}
