package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/views"
)

// DemoCmd is the main job with nothing to set up.
type DemoCmd struct {
	Repo      string `help:"A Go repository to work on; it is cloned and never written." placeholder:"DIR"`
	Listen    string `help:"Address of the dashboard (default 127.0.0.1:8080, or a free port)." placeholder:"ADDR"`
	Data      string `help:"Where the demo keeps its things (default a new temporary folder)." placeholder:"DIR"`
	NoBrowser bool   `help:"Open no browser."`
	Once      bool   `help:"Send one task, approve it as the demo's own person, print the landed commit, and end."`
}

// Run sets everything up, says how to get in, and serves; with --once it does the
// main job by itself.
func (c *DemoCmd) Run(ctx context.Context, sh *console.Shell) error {
	folder, err := demoFolder(c.Data)
	if err != nil {
		return console.Usage("%v. Name another folder with --data.", err)
	}
	sh.Hint("Setting up in %s …", folder)
	d := &demo{out: sh.Out, err: sh.Errs}
	if err := d.plant(ctx, c.Repo, folder); err != nil {
		if c.Data == "" {
			err = errors.Join(err, os.RemoveAll(folder))
		}
		return err
	}
	if d.given != "" {
		sh.Hint("Your folder was cloned to %s and will not be written.", d.repo)
	}
	l, err := c.listen(ctx)
	if err != nil {
		return err
	}
	cfg, err := loadDemo(folder, l.Addr().String(), d.repo)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	level := slog.LevelWarn
	if d.house, err = openHouse(ctx, cfg, slog.New(slog.NewTextHandler(sh.Errs, &slog.HandlerOptions{Level: level})), nil); err != nil {
		return errors.Join(startError(ctx, err), l.Close())
	}
	code, err := d.enter(ctx)
	if err == nil {
		err = c.serve(ctx, sh, d, l, code)
	}
	return errors.Join(err, d.house.close())
}

// listen opens the dashboard's address. The default one gives way to a free port.
func (c *DemoCmd) listen(ctx context.Context) (net.Listener, error) {
	if c.Listen != "" {
		return listen(ctx, c.Listen)
	}
	if !c.Once {
		if l, err := listen(ctx, "127.0.0.1:8080"); err == nil {
			return l, nil
		}
	}
	return listen(ctx, "127.0.0.1:0")
}

// serve runs the demo's node, with one task through it or until it is stopped.
func (c *DemoCmd) serve(ctx context.Context, sh *console.Shell, d *demo, l net.Listener, code string) error {
	if !c.Once {
		link := d.house.cfg.PublicURL + "/login/link?code=" + code // the host that pages and messages name, too
		sh.Hint("The data is in %s, the configuration in %s.", d.house.cfg.Data, d.house.cfg.Path)
		sh.Hint("Send the example with the button on the dashboard. Ctrl-C ends the demo.")
		if !c.NoBrowser {
			openBrowser(link)
		}
		if err := sh.Say("Sign in (once, within 10 minutes): %s", link); err != nil {
			return err
		}
		return d.house.serve(ctx, l, demoExamples())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- d.house.serve(ctx, l, nil) }()
	res, err := d.once(ctx)
	cancel()
	if err := errors.Join(err, <-served); err != nil {
		return err
	}
	if sh.JSON {
		return sh.Document(res)
	}
	var chain []string
	for i, s := range res.Chain {
		if i == 0 {
			chain = append(chain, s.From)
		}
		chain = append(chain, s.To)
	}
	return sh.Say("chain    %s\nrequest  %s\nlanded   %s\nlook     git -C %s show --stat -m --first-parent", strings.Join(chain, " → "), res.ApprovalID, res.Commit, d.repo)
}

// demoExamples are the tasks that are ready to send.
func demoExamples() []views.Example {
	return []views.Example{
		{Title: "Modernise the repository", Note: "kik hands it to coder, coder to reviewer. Then it waits for your yes.", Agent: "kik", Text: demoTask, Repository: "demo"},
		{Title: "See a refusal", Note: "boomerang's helper tries to hand the work back. A guard refuses: that would be a loop.", Agent: "boomerang", Text: demoRefused},
	}
}
