package browsertest_test

import (
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/web/browsertest"
)

const form = `<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width"><title>Gate</title>
<style>body{margin:0} @media (prefers-color-scheme: dark){body{background:#000}} .tall{height:3000px}
.cover{position:fixed;inset:0} .cover.off{display:none}</style><link rel="icon" href="data:,"></head><body>
<h1>Gate</h1><a href="/far">Far away</a>
<form method="post" action="/decide">
  <label>Comment <textarea name="comment">old words</textarea></label>
  <label>Verdict <select name="verdict"><option value="r">Reject</option><option value="a">Approve it</option></select></label>
  <label><input type="checkbox" name="read"> I have read it</label>
  <div class="tall"></div><button>Approve</button>
</form>
<button hidden>Secret</button>
<script>document.body.insertAdjacentHTML("beforeend", "<p>scripts run</p>")</script></body></html>`

// gate is a small site: a form, a page that changes late, a page under a cover, and a page that breaks its rules.
func gate(t *testing.T) string {
	t.Helper()
	late := make(chan struct{})
	mux := http.NewServeMux()
	page := func(path, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { html(w, body) })
	}
	page("/{$}", form)
	page("/far", `<link rel="icon" href="data:,"><h1>Far away indeed</h1>`)
	page("/late", `<link rel="icon" href="data:,"><p id="p">waiting</p><script>
		fetch("/slow").then(r => r.text()).then(t => p.textContent = t)</script><a href="/release" target="_blank">Release</a>`)
	page("/covered", `<link rel="icon" href="data:,"><button onclick="document.title='pressed'">Under</button>
		<div id="c" style="position:fixed;inset:0"></div><script>fetch("/slow").then(() => c.remove())</script>`)
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-late:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "here at last")
	})
	mux.HandleFunc("GET /halves", func(w http.ResponseWriter, r *http.Request) {
		html(w, `<link rel="icon" href="data:,"><ul><li>one</li>`)
		w.(http.Flusher).Flush()
		select {
		case <-late:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "<li>two</li></ul>")
	})
	mux.HandleFunc("GET /release", func(w http.ResponseWriter, _ *http.Request) { close(late) })
	mux.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "script-src 'self'")
		html(w, `<link rel="icon" href="data:,"><img src="/nowhere"><script>alert("inline")</script>`)
	})
	mux.HandleFunc("POST /decide", func(w http.ResponseWriter, r *http.Request) {
		html(w, fmt.Sprintf(`<link rel="icon" href="data:,"><p>comment=%s verdict=%s read=%s</p>`,
			r.FormValue("comment"), r.FormValue("verdict"), r.FormValue("read")))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func html(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, body)
}

func TestAFormIsFilledAndSentWithAndWithoutScripts(t *testing.T) {
	site := gate(t)
	browser := browsertest.New(t)
	for _, script := range []bool{true, false} {
		page := browser.Page().Script(script)
		page.Open(site)
		if ran := strings.Contains(page.Text(), "scripts run"); ran != script {
			t.Fatalf("scripts ran: %t, want %t", ran, script)
		}
		page.Fill("Comment", "fine with me")
		page.Choose("Verdict", "Approve it")
		page.Click("checkbox", "I have read it")
		page.Click("button", "Approve")
		page.WaitText("comment=fine with me verdict=a read=on")
		if !strings.HasSuffix(page.URL(), "/decide") {
			t.Fatalf("address = %s", page.URL())
		}
	}
}

func TestWhatIsHiddenIsNotThere(t *testing.T) {
	page := browsertest.New(t).Page()
	page.Open(gate(t))
	if page.Has("button", "Secret") {
		t.Error("a hidden button was found")
	}
	if !page.Has("heading", "Gate") {
		t.Error("the heading was not found")
	}
	page.Click("link", "Far away")
	page.Wait("heading", "Far away indeed")
}

func TestTextThatComesLateIsWaitedFor(t *testing.T) {
	site := gate(t)
	page := browsertest.New(t).Page()
	page.Open(site + "/late")
	page.WaitText("waiting")
	release(t, site)
	page.WaitText("here at last")
	page.WaitGone("waiting")
}

func TestAPageIsReadOnceAllOfItHasArrived(t *testing.T) {
	site := gate(t)
	page := browsertest.New(t).Page()
	page.Open(site)
	browsertest.Eval[bool](page, `document.querySelector("a").href = "/halves", true`)
	page.Click("link", "Far away")
	time.AfterFunc(time.Second, func() { release(t, site) })
	page.WaitText("one")
	if got := browsertest.Eval[int](page, `document.querySelectorAll("li").length`); got != 2 {
		t.Errorf("%d of 2 parts were counted", got)
	}
}

func TestACoveredButtonIsPressedOnceItIsFree(t *testing.T) {
	site := gate(t)
	page := browsertest.New(t).Page()
	page.Open(site + "/covered")
	pressed := make(chan struct{})
	go func() {
		defer close(pressed)
		release(t, site)
	}()
	page.Click("button", "Under")
	<-pressed
	if title := browsertest.Eval[string](page, "document.title"); title != "pressed" {
		t.Fatalf("title = %q: the click went elsewhere", title)
	}
}

func release(t *testing.T, site string) {
	answer, err := http.Get(site + "/release")
	if err != nil {
		t.Error(err)
		return
	}
	_ = answer.Body.Close()
}

func TestErrorsAndBlockedContentAreReported(t *testing.T) {
	page := browsertest.New(t).Page()
	page.Open(gate(t) + "/broken")
	page.Wait("image", "") // the page is complete
	problems := page.Problems()
	for _, want := range []string{"404", "content security policy: script-src", "inline script"} {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("nothing says %q: %q", want, problems)
		}
	}
	page.Expect("404").Expect("script-src").Expect("inline script")
	if left := page.Problems(); len(left) != 0 {
		t.Errorf("expected problems are still reported: %q", left)
	}
}

func TestPicturesShowTheWholePageInEachGuise(t *testing.T) {
	t.Setenv("GATEHOUSE_SHOTS", t.TempDir())
	page := browsertest.New(t).Page().Phone().Dark()
	page.Open(gate(t))
	width, height, dark := picture(t, page.Shot("phone, dark/../x"))
	if width != 780 || height < 6000 || !dark {
		t.Errorf("phone in the dark: %d by %d, dark %t; want 780 by at least 6000, dark", width, height, dark)
	}
	page.Desktop().Light()
	width, height, dark = picture(t, page.Shot("desktop"))
	if width != 1280 || height < 3000 || dark {
		t.Errorf("desktop in the light: %d by %d, dark %t; want 1280 by at least 3000, light", width, height, dark)
	}
}

func picture(t *testing.T, path string) (width, height int, dark bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	b := img.Bounds()
	r, _, _, _ := img.At(b.Max.X-2, b.Max.Y/2).RGBA()
	return b.Dx(), b.Dy(), r == 0
}

func TestTwoPagesAreTwoPeopleAndATabIsTheSame(t *testing.T) {
	site := gate(t)
	browser := browsertest.New(t)
	ann, bob := browser.Page(), browser.Page()
	ann.Open(site)
	browsertest.Eval[string](ann, `document.cookie = "who=ann"`)
	again := ann.Tab()
	again.Open(site)
	bob.Open(site)
	if got := browsertest.Eval[string](again, "document.cookie"); got != "who=ann" {
		t.Errorf("the second tab has the cookies %q", got)
	}
	if got := browsertest.Eval[string](bob, "document.cookie"); got != "" {
		t.Errorf("the other person has the cookies %q", got)
	}
}
