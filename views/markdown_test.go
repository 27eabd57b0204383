package views

import (
	"strings"
	"testing"
	"time"
)

// What an agent writes is formatted, and can do nothing: no markup, no picture that is
// loaded, no script's address, no heading of ours, and no link that hides where it leads.
func TestAnswersAreFormattedAndHarmless(t *testing.T) {
	for _, c := range []struct{ name, in, want, lack string }{
		{"strong and code", "a **b** `c`", "a <strong>b</strong> <code>c</code>", ""},
		{"heading", "# Decided\ntext", `<p class="md-head">Decided</p>`, "<h1"},
		{"list", "1. a\n2. b", "<ol>\n<li>a</li>", ""},
		{"list from 3", "3. a", `<ol start="3">`, ""},
		{"table", "|a|b|\n|-|-|\n|1|2|", "<th>a</th>", ""},
		{"inline markup", "x <b onclick=alert(1)>y</b>", "x &lt;b onclick=alert(1)&gt;y&lt;/b&gt;", "<b"},
		{"block of markup", "<script>alert(1)</script>\n", "&lt;script&gt;alert(1)&lt;/script&gt;", "<script"},
		{"picture", "![pixel](https://evil.example/p.gif)", `<span class="md-image">picture: pixel (https://evil.example/p.gif)</span>`, "<img"},
		{"link names its host", "[your bank](https://evil.example/x)", `rel="nofollow noreferrer noopener" target="_blank">your bank</a> <span class="md-host">(evil.example)</span>`, ""},
		{"script address", "[x](javascript:alert(1))", `x <span class="md-host">(javascript:alert(1))</span>`, "href"},
		{"data address", "[x](data:text/html,<script>alert(1)</script>)", "data:text/html", "href"},
		{"own address", "[approve](/approvals/apr_1/decision)", `approve <span class="md-host">(/approvals/apr_1/decision)</span>`, "href"},
		{"address in brackets", "<javascript:alert(1)>", "javascript:alert(1)", "href"},
		{"direction", "a\u202eb", `a<span class="risky">⟦U+202E⟧</span>b`, "\u202e"},
		{"direction in an address", "[x](https://a.example/\u202eb)", "a.example", "\u202e"},
		{"escape sequence", "\x1b[31mred", `⟦U+001B⟧</span>[31mred`, "\x1b"},
		{"entity", "&lt;b&gt; &#x202e;", "&lt;b&gt;", "<b>"},
		{"direction as an entity", "a &#x202e;b &#8238; &rlm;", "⟦U+202E⟧</span>b", "\u202e"},
		{"reference", "[a]\n\n[a]: javascript:alert(1)", "a", "href"},
	} {
		got, ok := markdown(c.in)
		if !ok || !strings.Contains(got, c.want) || c.lack != "" && strings.Contains(got, c.lack) {
			t.Errorf("%s: %q gives %q (%v), which should have %q and lack %q", c.name, c.in, got, ok, c.want, c.lack)
		}
	}
}

// No text keeps the server busy: what is long or nested without end is shown as it is.
func TestHostileMarkdownIsNotSlow(t *testing.T) {
	for name, unit := range map[string]string{"quotes": ">", "brackets": "[", "emphasis": "*a_ ", "ticks": "`", "links": "[a](", "pictures": "![", "lists": "- ", "tables": "|a", "tags": "<a ", "entities": "&#x",
		"lines of quotes": "> > > > > > > >\n", "lines of lists": " - - - - - -\n", "references": "[a]: b\n", "open brackets on lines": "[[[[[[[[\n", "emphasis on lines": "*_*_*_*_\n", "ticks on lines": "``` `\n", "tables on lines": "|-|\n"} {
		start := time.Now()
		text := strings.Repeat(unit, maxFormatted/len(unit))
		_, ok := markdown(text)
		t.Logf("%s: formatted %v, %s (aim: 100 ms)", name, ok, time.Since(start))
	}
	if _, ok := markdown(strings.Repeat("a", maxFormatted+1)); ok {
		t.Error("a text over the limit is formatted")
	}
}
