package browsertest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
)

// keeper removes Chromium's folder when the pipe on its standard input ends, which is when the test binary is gone.
// Chromium goes at the same moment and may still write.
const keeper = `trap "" INT TERM HUP
read -r _
for wait in 0.1 0.2 0.4 0.8 1.6; do rm -rf "$0"; sleep $wait; [ -e "$0" ] || exit 0; done
`

// running is the Chromium of this test binary.
var running chromium

// chromium is one process that all tests of a binary share, started when it is asked for and again when it has died.
// Nobody stops it: the system kills it with the process that started it.
type chromium struct {
	mu   sync.Mutex
	ctx  context.Context // nil until it runs; done once it is gone
	pipe io.WriteCloser  // held open for the keeper of its folder
}

func (c *chromium) get(path string) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil && c.ctx.Err() == nil {
		return c.ctx, nil
	}
	dir, err := os.MkdirTemp("", "gatehouse-chromium")
	if err != nil {
		return nil, err
	}
	keep := exec.Command("sh", "-c", keeper, dir)
	keep.Dir = "/"
	if c.pipe, err = keep.StdinPipe(); err == nil {
		err = keep.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the keeper of %s: %w", dir, err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(dir),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), // it would call home, which hangs on a closed network
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root otherwise
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	// The first call binds the browser's life to its context, so the limit must not be on that context.
	timer := time.AfterFunc(startLimit, cancel)
	err = chromedp.Do(ctx)
	timer.Stop()
	if err != nil {
		cancel()
		stop()
		return nil, err
	}
	c.ctx = ctx
	return ctx, nil
}
