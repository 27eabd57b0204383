package views_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	overviewview "gatehouse/views/overview"
	reviewview "gatehouse/views/review"
	taskview "gatehouse/views/task"
	teamview "gatehouse/views/team"

	"github.com/a-h/templ"
)

func render(t *testing.T, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The pages' policy allows no inline style, script or handler, and nothing of another server.
func TestPagesObeyTheContentPolicy(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"inline style":    regexp.MustCompile(`<[^>]*\sstyle\s*=`),
		"style element":   regexp.MustCompile(`<style[\s>]`),
		"inline script":   regexp.MustCompile(`<script(?:\s[^>]*)?>[^<]`),
		"inline handler":  regexp.MustCompile(`<[^>]*\son[a-z]+\s*=\s*["']`),
		"foreign address": regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//`),
		"script address":  regexp.MustCompile(`(?i)(?:href|action)="javascript:`),
	}
	for name, page := range pages() {
		// A link to the bot, or in an agent's answer, is opened by a person, not by the page.
		html := strings.NewReplacer(`href="https://t.me/`, `href="/t.me/`, `href="https://example.com/x" rel="nofollow noreferrer noopener"`, `href="/x"`).Replace(render(t, page))
		for what, re := range forbidden {
			if m := re.FindString(html); m != "" {
				t.Errorf("%s has an %s: %s", name, what, m)
			}
		}
	}
}

// Whatever an agent writes is text: no markup, and what cannot be seen is a code point.
func TestHostileTextIsShownAsItIs(t *testing.T) {
	for _, name := range []string{"review", "review-split", "delegation-tree", "delegation-events", "delegation-result", "evidence", "evidence-question",
		"audit", "audit-delegations", "audit-events", "audit-problem", "audit-broken", "audit-export"} {
		html := render(t, pages()[name])
		for _, raw := range []string{"<script>alert", "<img src=x", "\u202e", "\u200b", "\x1b"} {
			if strings.Contains(html, raw) {
				t.Errorf("%s passes %q through", name, raw)
			}
		}
		if !strings.Contains(html, `⟦U+202E⟧</span>`) {
			t.Errorf("%s does not show the direction override as a code point", name)
		}
	}
}

// A path may turn the direction of text, too; only the keys that scripts compare have it as it is.
func TestAHostilePathIsShownAsItIs(t *testing.T) {
	p := reviewPage(true)
	p.Files[0].Path = "docs/\u202Eog.exe"
	html := render(t, reviewview.Review(p))
	mustContain(t, html, `title="docs/⟦U+202E⟧og.exe"`, `aria-label="docs/⟦U+202E⟧og.exe"`)
	keys := regexp.MustCompile(`data-(path|viewed)="[^"]*"`)
	mustLack(t, keys.ReplaceAllString(html, ""), "\u202E")
}

// Ids are unique, or live parts and deep links would find the wrong element.
func TestIdsAreUnique(t *testing.T) {
	id := regexp.MustCompile(`\sid="([^"]*)"`)
	for name, page := range pages() {
		seen := map[string]bool{}
		for _, m := range id.FindAllStringSubmatch(render(t, page), -1) {
			if seen[m[1]] {
				t.Errorf("%s has id %q twice", name, m[1])
			}
			seen[m[1]] = true
		}
	}
}

// Every field has a name that is read aloud.
func TestFieldsHaveLabels(t *testing.T) {
	field := regexp.MustCompile(`<(?:input|select|textarea)\s[^>]*>`)
	attr := func(tag, name string) string {
		m := regexp.MustCompile(`\s` + name + `="([^"]*)"`).FindStringSubmatch(tag)
		if m == nil {
			return ""
		}
		return m[1]
	}
	for name, page := range pages() {
		html := render(t, page)
		for _, tag := range field.FindAllString(html, -1) {
			if attr(tag, "type") == "hidden" || attr(tag, "type") == "checkbox" || attr(tag, "aria-label") != "" {
				continue // a checkbox stands inside its label
			}
			if id := attr(tag, "id"); id == "" || !strings.Contains(html, `for="`+id+`"`) {
				t.Errorf("%s: no label for %s", name, tag)
			}
		}
	}
}

func mustContain(t *testing.T, html string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(html, w) {
			t.Errorf("the page lacks %q", w)
		}
	}
}

func mustLack(t *testing.T, html string, not ...string) {
	t.Helper()
	for _, w := range not {
		if strings.Contains(html, w) {
			t.Errorf("the page has %q", w)
		}
	}
}

func TestReviewDecidesWithAPlainForm(t *testing.T) {
	html := render(t, reviewview.Review(reviewPlain()))
	mustContain(t, html,
		`method="post" action="/approvals/`+aprID+`/decision"`,
		`name="digest" value="`+digest+`"`, `name="comment"`,
		`name="verdict" value="approve" class="approve">Approve</button>`,
		`value="reject" class="reject" formnovalidate>Reject</button>`,
		`value="request_changes" class="changes" formnovalidate>Request changes</button>`,
		`lands on <b>main</b> as one merge commit`, `9f2c1a7e<span class="sr">`, `0 of 1 yes`)
	mustLack(t, html, "Four eyes is off", `name="tick"`)
	// Enter in a field must not press Reject: the form's first button does nothing.
	if first := html[strings.Index(html, `id="verdict"`):]; !strings.HasPrefix(first[strings.Index(first, "<button"):], `<button type="submit" disabled hidden>`) {
		t.Error("the form's default button decides something")
	}
}

func TestReviewAsksForATickPerKindOfWarning(t *testing.T) {
	p := reviewPage(false)
	p.Warnings = append(p.Warnings, patch.Warning{Code: "ci_file", Path: "another.yml"})
	html := render(t, reviewview.Review(p))
	if n := strings.Count(html, `name="tick"`); n != 2 {
		t.Errorf("%d ticks for 2 kinds of warnings", n)
	}
	mustContain(t, html, `name="tick" value="ci_file" required`, "I have looked at: CI file changed",
		"Four eyes is off here: the person who asked may approve.", `another.yml`, "1 of 2 yes")
	block := html[strings.Index(html, `id="warnings"`):]
	block = block[:strings.Index(block, `class="checks"`)]
	mustLack(t, block, "<details") // the warnings can never be folded
}

func TestReviewOfAnOldRevisionCannotDecide(t *testing.T) {
	html := render(t, reviewview.Review(reviewSuperseded()))
	mustContain(t, html, "Revision 3 replaced this one", "rev=3", `data-digest="`+digest+`"`)
	mustLack(t, html, `name="verdict"`)
}

func TestReviewAfterTheVerdict(t *testing.T) {
	html := render(t, reviewview.Review(reviewLanded()))
	mustContain(t, html, `id="outcome"`, "bob approved on Telegram · landed on main as 4be1f02", ">Revert</button>", `data-state="landed"`)
	mustLack(t, html, ">Approve</button>", ">Withdraw</button>")

	p := reviewPlain()
	p.State, p.CanWithdraw, p.CanLand, p.LandProblem = "approved", true, true, "The folder of app has changes that are not committed, so main was not moved."
	p.Outcome = &reviewview.Outcome{State: "approved", By: "bob", Channel: "web", At: now}
	html = render(t, reviewview.Review(p))
	mustContain(t, html, ">Withdraw</button>", ">Retry</button>", "main was not moved", "not landed yet")
}

func TestReviewForSomebodyWhoMayNotDecide(t *testing.T) {
	p := reviewPlain()
	p.CanDecide, p.MayNot = false, "You asked for this task, so another person must approve it. Ask one of: bob, cleo."
	html := render(t, reviewview.Review(p))
	mustContain(t, html, "Ask one of: bob, cleo.")
	mustLack(t, html, `name="verdict"`)
}

func TestOverviewOfAFirstDay(t *testing.T) {
	html := render(t, overviewview.Overview(overviewEmpty()))
	mustContain(t, html, "No tasks yet. Send the first one", ">Send</button>", "not reported", "none yet")
	mustLack(t, html, "Close the first steps", `class="count-n"`)
	html = render(t, overviewview.Overview(overviewFull()))
	mustContain(t, html, "A hand-over that is refused", `name="text" value="Modernise this module"`, "awaiting approval · you or bob", ">all 23</a>", "CI file changed", "1 check failed")
}

func TestLinksThatARoleCannotUseAreAbsent(t *testing.T) {
	p := overviewEmpty()
	p.CanSend = false
	mustLack(t, render(t, overviewview.Overview(p)), ">Send<")
	d := delegationPage(taskview.TabTree)
	mustContain(t, render(t, taskview.Delegation(d)), ">Cancel task</button>")
	d.CanCancel = false
	mustLack(t, render(t, taskview.Delegation(d)), "Cancel task", ">Retry<")
	signedOut := render(t, pages()["login"])
	mustLack(t, signedOut, "Approvals", "Sign out")
	mustContain(t, signedOut, ">Sign in</button>", `name="password"`)
}

func TestNothingMatchesRepeatsTheFilter(t *testing.T) {
	mustContain(t, render(t, pages()["delegations-none"]), "state:failed uploader", "482 without the filter", ">Clear</a>")
}

func TestTreeShowsRefusalsAsRows(t *testing.T) {
	html := render(t, taskview.Delegation(delegationPage(taskview.TabTree)))
	mustContain(t, html, `class="tree-row depth-2 is-refused"`, "coder cannot hand to kik", `data-state="refused"`, `id="row-`+revID+`"`)
	html = render(t, taskview.Delegation(delegationPage(taskview.TabTimeline)))
	mustContain(t, html, "url(#p-person)", "url(#p-child)", "url(#p-queued)", "url(#p-working)", "┄ 2 d ┄", "?gap=", "coder cannot hand to kik")
}

func TestTabTitleSaysWhatMatters(t *testing.T) {
	for _, c := range []struct {
		chrome views.Chrome
		want   string
	}{
		{views.Chrome{Title: "Approvals", Section: views.SectionApprovals, ToDecide: 2}, "(2) Approvals · Gatehouse"},
		{views.Chrome{Title: "Fix retry loop", State: "completed"}, "✓ Fix retry loop · Gatehouse"},
		{views.Chrome{Title: "Fix retry loop", State: "pending", ToDecide: 3}, "(3) ◆ Fix retry loop · Gatehouse"},
		{views.Chrome{Title: "Settings", Section: views.SectionSettings, ToDecide: 12}, "(12) Settings · Gatehouse"},
		{views.Chrome{}, "Gatehouse"},
	} {
		if got := c.chrome.PageTitle(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestSignInLinkIsUsedByTheButtonOnly(t *testing.T) {
	html := render(t, pages()["link"])
	mustContain(t, html, `method="post" action="/login/link"`, `name="code" value="abc"`, ">Sign in</button>", `data-autopress="true"`)
	mustLack(t, render(t, views.Link(views.LinkPage{Code: "abc"})), "data-autopress")
}

// A live part must come alone under the same id, so that a handler may answer with only that.
func TestLivePartsStandAlone(t *testing.T) {
	parts := map[string]templ.Component{
		"overview": overviewview.OverviewBlocks(overviewFull()), "delegation": taskview.DelegationLive(delegationPage(taskview.TabTimeline)),
		"review-status": reviewview.ReviewStatus(reviewPage(false)), "review-bar": reviewview.ReviewBar(reviewPage(false)),
		"delegations": taskview.DelegationsList(taskview.DelegationsPage{}), "approvals": reviewview.ApprovalsList(reviewview.ApprovalsPage{}), "agents": teamview.AgentsList(teamview.AgentsPage{}),
	}
	for id, part := range parts {
		html := render(t, part)
		if tag := html[:strings.Index(html, ">")]; !strings.Contains(tag, ` id="`+id+`"`) {
			t.Errorf("part %s begins with %s", id, tag)
		}
	}
}

func TestTheBarSaysWhereOneIs(t *testing.T) {
	html := render(t, overviewview.Insights(insightsFixture()))
	mustContain(t, html, `href="/insights" data-key="" aria-current="page"`, `<summary class="is-current">`)
	html = render(t, overviewview.Overview(overviewFull()))
	mustContain(t, html, `href="/" data-key="o" aria-current="page"`)
	mustLack(t, html, "is-current")
}
