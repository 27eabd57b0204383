package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	sdk "github.com/coder/acp-go-sdk"

	"gatehouse/orchestrator/agent"
)

const (
	// maxLine is the longest line that a program may write, in bytes. The client's own limit is
	// 10 MiB, behind which it says nothing of the reason.
	maxLine = 8 << 20
	// maxOpen is how many requests of the program may wait for their answers at once.
	maxOpen = 64
)

// ErrHungUp is how Talk ends when the program closed its output before its turn was over. The
// end of the program says why.
var ErrHungUp = errors.New("the program ended before its turn was over")

// wire is the connection to the program. Updates are taken here, in order and before any
// answer that is behind them: the client would queue 1,024 of them and then hang up.
type wire struct {
	in      *bufio.Reader
	rest    []byte // of a line that is being passed on
	update  func(params json.RawMessage)
	noise   func(line string) // a line that is not of the protocol
	broken  func(error)
	program string

	requests atomic.Int64 // lines read that want an answer
	written  atomic.Int64 // lines that the program has taken
	deaf     atomic.Bool  // a line could not be passed to the program
	ended    chan struct{}
	over     sync.Once
	stdin    io.Writer
}

// dial begins the connection. It ends with the program's output.
func dial(w *wire, stdin io.Writer, stdout io.Reader, handle sdk.MethodHandler) *sdk.Connection {
	w.in, w.stdin, w.ended = bufio.NewReaderSize(stdout, 64<<10), stdin, make(chan struct{})
	quiet := make(chan struct{})
	conn := sdk.NewConnection(handle, w, gate{quiet, w})
	conn.SetLogger(slog.New(slog.DiscardHandler)) // it would log lines as they are, secrets and all
	close(quiet)
	return conn
}

// gate holds the first read back until the connection has its logger.
type gate struct {
	open <-chan struct{}
	io.Reader
}

func (g gate) Read(b []byte) (int, error) {
	<-g.open
	return g.Reader.Read(b)
}

// Write passes one line to the program.
func (w *wire) Write(line []byte) (int, error) {
	n, err := w.stdin.Write(line)
	w.written.Add(1)
	if err != nil {
		w.deaf.Store(true)
	}
	return n, err
}

// Read passes on what is no update, a line at a time.
func (w *wire) Read(b []byte) (int, error) {
	for len(w.rest) == 0 {
		line, err := w.next()
		if line = bytes.TrimSpace(line); len(line) > 0 && w.passes(line) {
			w.rest = append(line, '\n')
			break
		}
		if err != nil {
			w.over.Do(func() { close(w.ended) })
			return 0, err
		}
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// gone reports whether the program speaks or listens no more.
func (w *wire) gone() bool {
	select {
	case <-w.ended:
		return true
	default:
		return w.deaf.Load()
	}
}

// next is the next line.
func (w *wire) next() ([]byte, error) {
	var line []byte
	for {
		part, err := w.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			err := agent.Fail(agent.CodeProtocol, "%s wrote a line of more than %d MB, which is the limit of the protocol here, and was ended. Let its tools print less.", w.program, maxLine>>20)
			w.broken(err)
			return nil, err
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line, err
		}
	}
}

// passes reports whether a line is for the client; it takes the others.
func (w *wire) passes(line []byte) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil || m.Method == "" && m.ID == nil {
		w.noise(string(line))
		return false
	}
	switch {
	case m.Method == "": // an answer
	case m.ID != nil:
		if w.requests.Add(1)-w.written.Load() > maxOpen {
			w.broken(agent.Fail(agent.CodeLoop, "%s asked for more than %d things at once and waited for none of the answers, so it was ended.", w.program, maxOpen))
			return false
		}
	case m.Method == sdk.ClientMethodSessionUpdate:
		w.update(m.Params)
		return false
	default:
		return m.Method == "$/cancel_request"
	}
	return true
}

// ask sends a request and waits for its answer until ctx ends.
func ask[T any](ctx context.Context, t *Dialogue, method string, params any) (T, error) {
	type answer struct {
		is  T
		err error
	}
	done := make(chan answer, 1)
	if !t.begin() {
		var none T
		return none, ErrHungUp
	}
	go func() {
		defer t.open.Done()
		is, err := sdk.SendRequest[T](t.conn, context.WithoutCancel(ctx), method, params)
		done <- answer{is, err}
	}()
	select {
	case a := <-done:
		if a.err != nil && t.wire.gone() {
			return a.is, ErrHungUp
		}
		return a.is, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// told is an error that the program answered with, in its own words.
func (t *Dialogue) told(err error) string {
	refused, ok := errors.AsType[*sdk.RequestError](err)
	if !ok {
		return t.Safe(err.Error())
	}
	words := refused.Message
	if refused.Data != nil {
		if data, err := json.Marshal(refused.Data); err == nil {
			words += " " + string(data)
		}
	}
	return t.brief(fmt.Sprintf("%s (code %d)", words, refused.Code), maxWords)
}
