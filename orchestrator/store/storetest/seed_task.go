package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"

	"github.com/oklog/ulid/v2"
)

// What seeded tasks are about. The first of each is the most frequent.
var (
	seedPeople   = []string{"ann", "bob", "cleo", "dora", "eve", "fay", "gus", "hal"}
	seedAgents   = []string{"coder", "reviewer", "docs", "deps", "tester", "release"}
	seedRepos    = []string{"app", "site", "infra", "lib", "tools", "archive"}
	seedVia      = []string{"web", "cli", "webhook", "schedule", "chat", "api"}
	seedRules    = []string{"rest", "core", "docs", "deps", "release"}
	seedChannels = []string{"web", "telegram", "cli", "chat"}
	seedCodes    = []string{"exit", "cycle", "max_depth", "budget_exceeded", "breaker_open", "timeout"}
)

// The texts of the gate's rows.
const (
	seedPending  = "pending"
	seedRejected = "rejected"
	seedExpired  = "expired"
	seedLanded   = "landed"
	seedReverted = "reverted"
	seedByRule   = "rule:" // begins the actor of a verdict that a rule gave
)

// seedTaskEvents is a little less than the events that a task of the seed has, so that the
// last one is not in the future.
const seedTaskEvents = 26

// sower makes tasks, one after the other in time.
type sower struct {
	b    *bulk
	r    *rand.Rand
	at   time.Time
	now  time.Time
	step time.Duration
	made Seeded
}

func newSower(b *bulk, events int, now time.Time) *sower {
	tasks := max(events/seedTaskEvents, 1)
	return &sower{b: b, r: rand.New(rand.NewPCG(7, 11)), now: now, at: now.AddDate(-1, 0, 0), step: 365 * 24 * time.Hour / time.Duration(tasks+1)}
}

func (s *sower) id(prefix string, at time.Time) string {
	var id ulid.ULID
	if id.SetTime(uint64(at.UnixMilli())) != nil { //nolint:gosec // the seed's times are after 1970
		return prefix
	}
	var random [10]byte
	for i := range random {
		random[i] = byte(s.r.UintN(256))
	}
	if id.SetEntropy(random[:]) != nil {
		return prefix
	}
	return prefix + strings.ToLower(id.String())
}

// some is one of the list, the first ones more often.
func (s *sower) some(list []string) string {
	return list[min(s.r.IntN(len(list)), s.r.IntN(len(list)))]
}

// words are some of 5,000, of which few are frequent.
func (s *sower) words(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "word%d", int(5000*s.r.Float64()*s.r.Float64()*s.r.Float64()))
	}
	return b.String()
}

// seedTask is one task while it is made.
type seedTask struct {
	s                              *sower
	id, root, text, who, via, repo string
	at                             time.Time
	n                              int64
	hash                           string
	seq                            int
	pending                        bool // its request waits for people
}

// text of JSON that cannot fail.
func seedJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(b)
}

func (s *sower) task() {
	s.at = s.at.Add(s.step)
	t := &seedTask{s: s, at: s.at.UTC().Truncate(time.Microsecond), who: s.some(seedPeople), via: s.some(seedVia), repo: s.some(seedRepos)}
	t.id, t.root = s.id(orchestrator.TaskPrefix, t.at), s.id(orchestrator.DelegationPrefix, t.at)
	t.text = fmt.Sprintf("Fix the %s in %s", s.words(6), t.repo)
	if s.r.IntN(20_000) == 0 {
		t.text += " needle"
	}
	begin := t.at
	t.event(event.TaskCreated, "", t.who, map[string]any{"text": t.text, "agent": "kik"})
	hops := 1 + s.r.IntN(3)
	failed := s.r.IntN(25) == 0
	steps := chain.New(3)
	parent, state := t.root, orchestrator.Completed
	if failed {
		state = orchestrator.Failed
	}
	var below []func()
	for i := range hops {
		id := s.id(orchestrator.DelegationPrefix, t.at)
		from, to := "kik", seedAgents[min(i+s.r.IntN(3), len(seedAgents)-1)]
		steps = steps.With(chain.Step{From: from, To: to, Task: t.text})
		t.work(id, to, failed && i == hops-1)
		asks := i == 0 && s.r.IntN(10) < 8
		end, own, up, path := t.at, orchestrator.Completed, parent, steps
		if failed && i == hops-1 {
			own = orchestrator.Failed
		}
		approvalID := ""
		if asks {
			approvalID, own = t.request(id, to)
		}
		below = append(below, func() { t.delegation(id, up, from, to, own, i+1, path, approvalID, begin, end) })
	}
	if t.pending {
		state = orchestrator.Waiting
	}
	t.end(t.root, "kik", state)
	var ended any = t.at.UnixMicro()
	if t.pending {
		ended = nil
	}
	t.delegation(t.root, "", "", "kik", state, 0, chain.New(3), "", begin, t.at)
	for _, insert := range below {
		insert()
	}
	s.b.add("tasks", t.id, t.root, "kik", t.text, t.repo, "usr_"+t.who, t.who, t.via, hops, t.seq, t.n, t.hash, begin.UnixMicro(), ended)
	s.made.Tasks++
}

func (t *seedTask) event(kind event.Type, delegation, actor string, data map[string]any) string {
	t.at = t.at.Add(time.Duration(1+t.s.r.IntN(4000)) * time.Millisecond)
	e := event.Event{TaskID: t.id, N: t.n + 1, ID: t.s.id(orchestrator.EventPrefix, t.at), Type: kind, DelegationID: delegation, Actor: actor, At: t.at, Data: event.Data(data)}
	e.Seal(t.hash)
	t.n, t.hash = e.N, e.Hash
	t.s.b.add("events", e.TaskID, e.N, e.ID, string(e.Type), e.DelegationID, e.Actor, e.At.UnixMicro(), string(e.Data), e.PrevHash, e.Hash)
	if code, ok := data["code"].(string); ok {
		t.s.b.add("event_codes", e.ID, string(kind), code, delegation)
	}
	t.s.made.Events++
	return e.ID
}

// work is what a delegation logs while it runs.
func (t *seedTask) work(id, to string, fails bool) {
	t.event(event.Delegated, t.root, "kik", map[string]any{"to": to, "text": t.text, "delegation_id": id})
	t.event(event.Queued, id, "kik", map[string]any{"agent": to, "depth": 1})
	t.event(event.Acknowledged, id, to, map[string]any{"attempt": 1, "node": "one"})
	for range 3 + t.s.r.IntN(7) {
		t.event(event.Progress, id, to, map[string]any{"text": "Reading " + t.s.words(8)})
	}
	if t.s.r.IntN(30) == 0 {
		t.event(event.DelegationRefused, id, to, map[string]any{"to": "kik", "code": t.s.some(seedCodes[1:]), "message": "kik is already in the chain."})
	}
	t.event(event.UsageRecorded, id, to, map[string]any{"input_tokens": t.s.r.IntN(20000), "output_tokens": t.s.r.IntN(3000), "usd": t.s.r.Float64()})
	if fails {
		t.event(event.Failed, id, to, map[string]any{"agent": to, "state": "failed", "code": seedCodes[0], "message": "exit status 1"})
		return
	}
	t.event(event.Completed, id, to, map[string]any{"agent": to, "state": "completed", "text": t.s.words(10)})
}

func (t *seedTask) end(id, agent string, state orchestrator.State) {
	switch state {
	case orchestrator.Failed:
		t.event(event.Failed, id, agent, map[string]any{"agent": agent, "state": "failed", "code": "child_failed", "message": "A child failed."})
	case orchestrator.Completed:
		t.event(event.Completed, id, agent, map[string]any{"agent": agent, "state": "completed"})
	}
}

func (t *seedTask) delegation(id, parent, from, to string, state orchestrator.State, depth int, path chain.Chain, request string, begin, end time.Time) {
	t.seq++
	var result, failure, ended any
	if state.Ended() {
		ended = end.UnixMicro()
		result = seedJSON(agent.Result{Text: t.s.words(30)})
	}
	if state == orchestrator.Failed {
		result, failure = nil, seedJSON(agent.Failure{Code: seedCodes[0], Message: "exit status 1"})
	}
	usd := int64(t.s.r.Float64() * t.s.r.Float64() * t.s.r.Float64() * 5e6)
	text := t.text
	if parent != "" {
		text = t.s.words(12)
	}
	t.s.b.add("delegations", id, t.id, t.seq, parent, from, to, text, string(state), depth, seedJSON(path), fmt.Sprint(t.seq), 0, t.repo, t.who, result, failure,
		t.s.r.IntN(20000), t.s.r.IntN(3000), usd, request, 1, 0, "", 0, end.UnixMicro(), 0, "", begin.UnixMicro(), begin.UnixMicro(), ended, end.UnixMicro(), "{}")
	t.s.made.Delegations++
}

// request asks for a patch and decides it. It returns the state of its delegation.
func (t *seedTask) request(delegation, to string) (string, orchestrator.State) {
	r := t.s.r
	id, asked := t.s.id(orchestrator.RequestPrefix, t.at), t.at
	t.event(event.Requested, delegation, to, map[string]any{"approval_id": id, "revision": 1, "digest": strings.Repeat("9f", 32)})
	t.event(event.Notified, delegation, "gatehouse", map[string]any{"approval_id": id, "channel": "telegram"})
	state, own := seedLanded, orchestrator.Completed
	switch d := r.IntN(100); {
	case d < 10:
		state, own = seedRejected, orchestrator.Rejected
	case d < 14:
		state, own = seedExpired, orchestrator.Expired
	case d < 16:
		state = seedReverted
	}
	// Few wait for people, as in a house that is kept.
	if t.pending = t.s.now.Sub(t.at) < 3*time.Hour || r.IntN(3000) == 0; t.pending {
		state, own = seedPending, orchestrator.AwaitingApproval
	}
	rule, need := t.s.some(seedRules), 1
	files := make([]patch.File, 1+r.IntN(6))
	for i := range files {
		files[i] = patch.File{Path: fmt.Sprintf("src/%s.go", t.s.words(1)), Status: patch.Modified, Added: r.IntN(80), Removed: r.IntN(30), OldMode: "100644", NewMode: "100644"}
	}
	warnings, checks := []patch.Warning{}, []orchestrator.Check{{Command: "go vet ./...", OK: true}, {Command: "go test ./...", OK: r.IntN(30) > 0}}
	if r.IntN(12) == 0 {
		warnings = append(warnings, patch.Warning{Code: "ci_file", Path: ".github/workflows/ci.yml", Text: "CI file changed"})
	}
	var decided any
	if state != seedPending {
		t.decide(id, delegation, rule, state, len(files))
		decided = t.at.UnixMicro()
	}
	landed := ""
	if state == seedLanded || state == seedReverted {
		landed = strings.Repeat("4be1f02a", 5)
		t.event(event.PatchLanded, delegation, "gatehouse", map[string]any{"commit": landed})
	}
	t.s.b.add("requests", id, t.id, delegation, state, 2, to, orchestrator.Title(t.text), t.repo, "usr_"+t.who, t.who, t.via, "kik → "+to,
		seedJSON(map[string]any{"name": rule, "need": need, "from": []string{}}), landed, "", "", asked.UnixMicro(), decided, 1, "[]")
	t.s.b.add("revisions", id, 1, state, strings.Repeat("9f", 32), "merge", seedJSON(patch.Base{Branch: "main"}), strings.Repeat("c", 40), "gatehouse/x", strings.Repeat("d", 40), "b", "",
		"The fix: "+t.s.words(40), seedJSON(files), r.IntN(100), r.IntN(50), seedJSON(warnings), "[]", seedJSON(checks), "landlock", asked.UnixMicro())
	t.s.made.Requests++
	return id, own
}

// decide adds the verdict of a person, or of the rule.
func (t *seedTask) decide(id, delegation, rule, state string, files int) {
	if state == seedExpired {
		t.event(event.Expired, delegation, "gatehouse", map[string]any{"approval_id": id})
		return
	}
	r := t.s.r
	t.at = t.at.Add(time.Duration(r.IntN(3600)) * time.Second)
	who, user, channel, verdict := t.s.some(seedPeople), "", t.s.some(seedChannels), "approve"
	opened := t.at.Add(-time.Duration(4+r.IntN(600)) * time.Second)
	if state == seedRejected {
		verdict = "reject"
	} else if rule == "docs" {
		who, channel = seedByRule+rule, ""
	}
	if !strings.HasPrefix(who, seedByRule) {
		user = "usr_" + who
	}
	seen := map[string]any{"surface": "page", "files": files, "files_viewed": files - r.IntN(2), "files_opened": 0, "warnings_ticked": []string{}, "read": nil, "opened_at": opened}
	t.event(event.Decided, delegation, who, map[string]any{"approval_id": id, "verdict": verdict, "channel": channel, "revision": 1})
	t.s.b.add("decisions", t.s.id(orchestrator.DecisionPrefix, t.at), id, 1, user, who, channel, verdict, t.s.words(r.IntN(12)), strings.Repeat("9f", 32), t.at.UnixMicro(), seedJSON(seen))
}
