package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"gatehouse/approval/telegram"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/handlers"
	"gatehouse/handlers/api"
	"gatehouse/handlers/audit"
	"gatehouse/handlers/hook"
	"gatehouse/handlers/signin"
	"gatehouse/handlers/stream"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"
	"gatehouse/web"

	"golang.org/x/sys/unix"
)

// ServeCmd runs the server.
type ServeCmd struct {
	Listen string `help:"Address to listen on, in place of server.listen." placeholder:"ADDR"`
}

// Run serves until it is told to stop; then it gives back what it was working on.
func (c *ServeCmd) Run(ctx context.Context, sh *console.Shell) error {
	cfg, err := configOf(sh)
	if err != nil {
		return err
	}
	if c.Listen != "" {
		cfg.Listen = c.Listen
	}
	log := slog.New(slog.NewTextHandler(sh.Errs, nil))
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}
	h, err := openHouse(ctx, cfg, log, nil)
	if err != nil {
		return startError(ctx, err)
	}
	users, err := h.store.Users(ctx)
	if err != nil {
		return errors.Join(err, h.close())
	}
	if err := web.MayListen(cfg.Listen, len(users)); err != nil {
		return errors.Join(console.Usage("%v", err), h.close())
	}
	l, err := listen(ctx, cfg.Listen)
	if err != nil {
		return errors.Join(err, h.close())
	}
	if len(users) == 0 {
		sh.Hint("There are no users yet. Make the first one: gatehouse user add NAME --role admin --role operator --role approver")
	}
	if cfg.File.Server.PublicURL == "" { // --listen or port 0 chose another address than the file
		cfg.PublicURL = config.Site(l.Addr().String())
	}
	withdraw, err := announce(cfg.Data, "http://"+localAddress(l.Addr()), cfg.PublicURL)
	if err != nil {
		return errors.Join(err, l.Close(), h.close())
	}
	srv, err := h.arrive(ctx, l, nil)
	if err == nil {
		sh.Hint("Gatehouse is at %s", cfg.PublicURL)
		err = h.work(ctx, srv, l)
	}
	return errors.Join(err, withdraw(), h.close())
}

// startError says what keeps the server from starting.
func startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return &console.Failure{Code: console.ExitUsage, Message: console.Block(err.Error()), Cause: err}
}

// listen opens the address.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, console.Usage("%s is in use. Stop the other program, or add --listen 127.0.0.1:8081.", address)
	}
	if err != nil {
		return nil, console.Usage("%s cannot be listened on: %v. Choose another with --listen.", address, err)
	}
	return l, nil
}

// serve runs the whole node with its site on l until ctx ends.
func (h *house) serve(ctx context.Context, l net.Listener, examples []views.Example) error {
	srv, err := h.arrive(ctx, l, examples)
	if err != nil {
		return err
	}
	return h.work(ctx, srv, l)
}

// arrive does all by which this node may fail to come up; then its rules count. Nothing of
// it works yet.
func (h *house) arrive(ctx context.Context, l net.Listener, examples []views.Example) (*web.Server, error) {
	// Agents of the same user must not read the server's memory or environment.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		h.log.Warn("the server's memory could not be closed to agents", "err", err)
	}
	h.address.Store("http://" + localAddress(l.Addr()))
	if err := h.connect(); err != nil {
		return nil, startError(ctx, err)
	}
	srv, err := h.site(l.Addr().String(), examples)
	if err != nil {
		return nil, err
	}
	if err := h.take(ctx); err != nil {
		return nil, startError(ctx, err)
	}
	return srv, nil
}

// work runs a node that has arrived until ctx ends.
func (h *house) work(ctx context.Context, srv *web.Server, l net.Listener) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				if err := h.reload(ctx, event.Taken{Actor: systemActor, How: "SIGHUP"}); err != nil {
					h.log.Error("the configuration was not loaded again; nothing changed", "err", err)
				}
			}
		}
	}()
	return h.run(ctx, func(ctx context.Context) error { return srv.Serve(ctx, l) })
}

// localAddress is how programs of this machine reach the listener.
func localAddress(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}

// site wires the pages, the API and the streams.
func (h *house) site(listen string, examples []views.Example) (*web.Server, error) {
	publicURL := h.cfg.PublicURL
	key, err := h.sealKey()
	if err != nil {
		return nil, err
	}
	ids := handlers.Ids{Reader: h.store}
	verifier := &audit.Verifier{Proof: h.store, Now: time.Now}
	d := signin.New(signin.Options{People: h.store, RunByToken: h.store.RunByToken, Secure: web.Secure(publicURL), Now: time.Now, Log: h.log})
	pages := &handlers.Site{Engine: h.engine, Context: func(actor, userID string) sharedctx.Store { return h.store.ContextOf(actor, userID) }, Reader: h.store, Ids: ids, Requests: h.store, Gateway: h.gateway, Reviewer: h.trees, Auth: d,
		Now: time.Now, Log: h.log, FourEyes: func() bool { return h.gateway.Config().FourEyes }, Loopback: web.Loopback(listen), Examples: examples,
		Outbox: h.gateway, Links: h.store, Places: h.places, Sums: h.store, History: h.store, SavedViews: h.store, Traces: h.store, People: h.store, PublicURL: publicURL, Triggers: h.intake,
		Configuration: h.configuration, Reload: h.reloadFor, Proof: verifier, Holds: h.store,
		Condition: h.condition, Snapshots: h.store}
	a := &api.API{Site: pages, Exports: h.store, Seal: key}
	s := stream.New(stream.Options{Engine: h.engine, Reader: h.store, Ids: ids, Log: h.log, Now: time.Now,
		Grown: func() <-chan struct{} { return h.store.Grown().Changed() }, SameOrigin: web.SameOrigin(listen, publicURL)})
	return web.New(web.Options{Listen: listen, PublicURL: publicURL, Site: pages, API: a, Streams: s, Verifier: verifier, Hooks: hook.Hooks{Intake: h.intake}, Auth: d, Log: h.log, Ready: h.ready, Figures: h.figures, Now: time.Now, Telegram: h.hookOf(telegram.Name)}), nil
}

// sealKey is this node's key for seals, made at the first start.
func (h *house) sealKey() (ed25519.PrivateKey, error) {
	path := filepath.Join(h.cfg.Data, "seal.pem")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		return key, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "GATEHOUSE SEAL SEED", Bytes: key.Seed()}), 0o600)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || len(block.Bytes) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s holds no key. Move it away; a new one is made at the next start", path)
	}
	return ed25519.NewKeyFromSeed(block.Bytes), nil
}
