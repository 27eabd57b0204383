package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// heard is what many listeners got together.
type heard struct {
	Delivered, Lost, Doubled int
	P50, P99                 float64 // ms
	Last                     int64   // Unix nanoseconds
}

// ears are n listeners. They share nothing while they listen.
type ears struct {
	wg  sync.WaitGroup
	all []*ear
}

type ear struct {
	mu    sync.Mutex
	next  int
	took  []time.Duration
	dup   int
	lost  int
	count int
	last  int64
}

// hear notes a message.
func (e *ear) hear(number int, sent int64) {
	now := time.Now().UnixNano()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case number < e.next:
		e.dup++
	default:
		e.lost += number - e.next
		e.next = number + 1
	}
	e.count++
	e.last = now
	e.took = append(e.took, time.Duration(now-sent))
}

// scan finds messages in what came and returns what may be the beginning of another one.
func (e *ear) scan(b []byte) []byte {
	for {
		i := bytes.Index(b, []byte("@@"))
		if i < 0 {
			return b[max(0, len(b)-1):]
		}
		j := bytes.Index(b[i+2:], []byte("@@"))
		if j < 0 {
			return b[i:]
		}
		number, at, _ := bytes.Cut(b[i+2:i+2+j], []byte(" "))
		n, err1 := strconv.Atoi(string(number))
		sent, err2 := strconv.ParseInt(string(at), 10, 64)
		if err1 == nil && err2 == nil {
			e.hear(n, sent)
		}
		b = b[i+4+j:]
	}
}

// listen connects n listeners and then answers "sum" on standard input with what was heard.
func listen(kind string, n int, h hall) {
	es := &ears{}
	for range n {
		e := &ear{}
		es.all = append(es.all, e)
		c, err := net.Dial("tcp", h.Address)
		check(err)
		r := connect(c, kind, h)
		es.wg.Go(func() {
			buf := make([]byte, 0, 8192)
			for {
				k, err := r.Read(buf[len(buf):cap(buf)])
				if err != nil {
					return
				}
				rest := e.scan(buf[:len(buf)+k])
				buf = buf[:copy(buf[:cap(buf)], rest)]
			}
		})
	}
	fmt.Println("ok")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "count" {
			check(json.NewEncoder(os.Stdout).Encode(heard{Delivered: es.count()}))
			continue
		}
		check(json.NewEncoder(os.Stdout).Encode(es.sum()))
	}
}

// connect says hello as the kind of stream asks for and returns what to read from.
func connect(c net.Conn, kind string, h hall) io.Reader {
	path, more := h.SSE, "Accept: text/event-stream\r\n"
	if kind == "ws" {
		path, more = h.WS, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	}
	if h.Token != "" {
		more += "Authorization: Bearer " + h.Token + "\r\n"
	}
	_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, h.Address, more)
	check(err)
	br := bufio.NewReaderSize(c, 1024)
	res, err := http.ReadResponse(br, nil)
	check(err)
	if kind != "ws" {
		if res.StatusCode != http.StatusOK {
			check(fmt.Errorf("%s: %s", path, res.Status))
		}
		return res.Body
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		check(fmt.Errorf("%s: %s", path, res.Status))
	}
	for _, text := range h.Hello {
		frame := []byte{0x81, 0x80 | byte(len(text))}
		if len(text) > 125 {
			frame = binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(text)))
		}
		frame = append(frame, 0, 0, 0, 0) // a mask that changes nothing
		_, err := c.Write(append(frame, text...))
		check(err)
	}
	return br
}

func (es *ears) count() (n int) {
	for _, e := range es.all {
		e.mu.Lock()
		n += e.count
		e.mu.Unlock()
	}
	return n
}

// sum adds up and begins anew.
func (es *ears) sum() heard {
	var all heard
	var took []time.Duration
	for _, e := range es.all {
		e.mu.Lock()
		all.Delivered += e.count
		all.Lost += e.lost
		all.Doubled += e.dup
		all.Last = max(all.Last, e.last)
		took = append(took, e.took...)
		e.took, e.count, e.lost, e.dup = nil, 0, 0, 0
		e.mu.Unlock()
	}
	slices.Sort(took)
	if len(took) > 0 {
		all.P50 = took[len(took)/2].Seconds() * 1000
		all.P99 = took[len(took)*99/100].Seconds() * 1000
	}
	return all
}
