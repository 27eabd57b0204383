package browsertest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	allEnv   = "GATEHOUSE_TEST_ALL"
	shotsEnv = "GATEHOUSE_SHOTS"

	startLimit = 60 * time.Second // a cold Chromium on a busy machine
)

// Patience is how long a page may take to show what a test waits for. It is generous because tests run with the race
// detector, several at once, on small machines; a test that passes does not wait it out.
const Patience = 20 * time.Second

// ErrNotInstalled says that this machine has no Chromium.
var ErrNotInstalled = errors.New("no Chromium or Chrome is installed here; install Debian's package chromium-headless-shell or chromium")

// programs are what a Chromium may be called. The shell has the same engine without the windows, menus and services
// around it, and takes a third less processor time; Debian's script for it would outlive its own end, so that it is not
// asked.
var programs = []string{"/usr/lib/chromium/chromium-headless-shell", "chrome-headless-shell",
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Browser is what a test has of the Chromium of its test binary. Its pages are used from the test's own goroutine.
type Browser struct {
	t     testing.TB
	ctx   context.Context
	shots string // "" where nobody keeps pictures
}

// Installed returns the path of Chromium or Chrome, or [ErrNotInstalled].
func Installed() (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNotInstalled
}

// New gives a test the Chromium that all tests of its binary share, without a window; the first one starts it, which
// takes a second or two of processor time, and what a test opened in it is closed with the test. Start the server under
// test first: what is started first is closed last, and a server that still streams to a browser waits for it when it
// closes.
func New(t testing.TB) *Browser {
	t.Helper()
	path, err := Installed()
	if err != nil {
		if os.Getenv(allEnv) != "1" {
			t.Skipf("needs a browser: %v", err)
		}
		t.Fatal(err)
	}
	ctx, err := running.get(path)
	if err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &Browser{t: t, ctx: ctx, shots: shotFolder(t)}
}

// Page opens an empty tab with cookies of its own, as in a private window. Two pages are two people.
func (b *Browser) Page() *Page {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	return newPage(b, ctx, cancel)
}

func shotFolder(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(shotsEnv)
	if dir == "" {
		return ""
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("make the folder for screenshots: %v", err)
	}
	return dir
}

var notInFileNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// shotPath keeps a name that a test made up inside the folder.
func shotPath(folder, name string) string {
	return filepath.Join(folder, strings.Trim(notInFileNames.ReplaceAllString(name, "-"), "-.")+".png")
}
