package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/placetest"

	"golang.org/x/sync/errgroup"
)

// gatehouse is the program as the tests start it: the product, or one that dies. What either starts of itself, for each
// run and each call of an agent, is the program without the race detector.
func gatehouse() {
	if light := os.Getenv(placetest.LightEnv); light != "" {
		executable = func() (string, error) { return light, nil }
	}
	point := os.Getenv(placetest.KillAt)
	if point == "" || len(os.Args) < 2 || os.Args[1] != "serve" {
		main()
		return
	}
	if err := serveUntil(context.Background(), point); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveUntil serves as `serve` does, on the same wiring, and kills its own process as
// kill -9 would, at a point that is durable.
func serveUntil(ctx context.Context, point string) error {
	cfg, err := config.Load(os.Getenv("GATEHOUSE_CONFIG"), os.LookupEnv)
	if err != nil {
		return err
	}
	name, nth, _ := strings.Cut(point, "#")
	var seen atomic.Int64
	h, err := openHouse(ctx, cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)), func(at string) {
		if at == name && strconv.FormatInt(seen.Add(1), 10) == nth {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				panic(err)
			}
			select {} // the signal is on its way
		}
	})
	if err != nil {
		return err
	}
	l, err := listen(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	site, err := h.arrive(ctx, l, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s%s\n", placetest.Greeting, "http://"+l.Addr().String())
	if point != placetest.Idle {
		return h.work(ctx, site, l)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return h.store.Run(ctx) })
	g.Go(func() error { return site.Serve(ctx, l) })
	return g.Wait()
}
