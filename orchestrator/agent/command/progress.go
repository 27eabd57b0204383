package command

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/textcut"
)

const (
	// mergeTime is how often lines of progress reach the host at most.
	mergeTime = 250 * time.Millisecond
	// mergeBytes is how much one such message holds; older lines give way.
	mergeBytes = 16 << 10
	// lineBytes is where a line of progress is cut.
	lineBytes = 4 << 10

	// tailBytes and tailLines bound what a failure quotes of standard error.
	tailBytes = 4 << 10
	tailLines = 20
)

// progress merges lines and hands them to the host. The first line goes out at
// once, later ones every mergeTime; of a flood the newest lines stay. It never
// blocks who adds a line.
type progress struct {
	host agent.Host

	mu      sync.Mutex
	lines   []string
	size    int
	dropped int
	wake    chan struct{}
}

func newProgress(host agent.Host) *progress {
	return &progress{host: host, wake: make(chan struct{}, 1)}
}

func (p *progress) add(line string) {
	line = strings.TrimRight(line, " \t\r\n")
	if line == "" {
		return
	}
	line = textcut.Brief(line, lineBytes)
	p.mu.Lock()
	p.lines = append(p.lines, line)
	p.size += len(line) + 1
	for p.size > mergeBytes {
		p.size -= len(p.lines[0]) + 1
		p.lines = p.lines[1:]
		p.dropped++
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run sends until done is closed, and then what is left. It returns the host's
// error, after which nobody wants progress any more.
func (p *progress) run(ctx context.Context, done <-chan struct{}) error {
	for {
		select {
		case <-p.wake:
		case <-done:
			return p.flush(ctx)
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(mergeTime):
		case <-done:
		}
	}
}

func (p *progress) flush(ctx context.Context) error {
	p.mu.Lock()
	lines, dropped := p.lines, p.dropped
	p.lines, p.size, p.dropped = nil, 0, 0
	p.mu.Unlock()
	if len(lines) == 0 {
		return nil
	}
	text := strings.Join(lines, "\n")
	if dropped > 0 {
		text = fmt.Sprintf("… (%d lines left out)\n%s", dropped, text)
	}
	return p.host.Progress(ctx, text)
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	kept  []byte
	cut   bool
}

// Write makes a tail an io.Writer; it never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	// Shortened at twice the limit, so that not every write moves all bytes.
	if len(t.kept) > 2*t.limit {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-t.limit:]...)
		t.cut = true
	}
	return len(b), nil
}

// text returns the last bytes, and of them the last lines when lines > 0.
func (t *tail) text(lines int) string {
	kept, cut := t.kept, t.cut
	if len(kept) > t.limit {
		kept, cut = kept[len(kept)-t.limit:], true
	}
	text := strings.TrimRight(plain(clean(string(kept))), " \t\r\n")
	if all := strings.Split(text, "\n"); lines > 0 && len(all) > lines {
		text, cut = strings.Join(all[len(all)-lines:], "\n"), true
	}
	if cut {
		text = "…" + text
	}
	return text
}

// clean makes what a program wrote safe to store: valid UTF-8 without NUL, which
// PostgreSQL takes in no text.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// forTerminals finds what is addressed to a terminal: colours, moves of the cursor,
// titles and links (ECMA-48: CSI, and OSC up to BEL or ST).
var forTerminals = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\))")

// plain takes out of a text what only a terminal understands. What is not well-formed
// stays, and pages show it as what it is.
func plain(s string) string {
	if !strings.Contains(s, "\x1b") {
		return s
	}
	return forTerminals.ReplaceAllString(s, "")
}
