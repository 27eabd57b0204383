package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/centrifugal/centrifuge"
	"github.com/dunglas/mercure"
	"go.uber.org/zap"
)

// hall is where a server is and how to listen there; a server prints it first.
type hall struct {
	Address string   `json:"address"`
	Token   string   `json:"token"`
	SSE     string   `json:"sse"`
	WS      string   `json:"ws"`
	Hello   []string `json:"hello"`
}

// serve runs one library with nothing around it.
func serve(name string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	mux := http.NewServeMux()
	h := hall{Address: l.Addr().String()}
	var publish func(text string)
	switch name {
	case "centrifuge":
		h.WS, h.Hello = "/ws", []string{`{"id":1,"connect":{}}`, `{"id":2,"subscribe":{"channel":"x"}}`}
		publish = centrifugo(mux)
	case "mercure":
		h.SSE = "/.well-known/mercure?topic=x"
		publish = mercury(mux)
	}
	go func() { check(http.Serve(l, mux)) }()
	check(json.NewEncoder(os.Stdout).Encode(h))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var what string
		var first, n int
		fmt.Sscan(lines.Text(), &what, &first, &n)
		if what == "gc" {
			debug.FreeOSMemory()
		}
		for i := range n {
			if what == "paced" {
				time.Sleep(time.Second / 5)
			}
			text := fmt.Sprintf("@@%d %d@@", first+i, time.Now().UnixNano())
			publish(text + strings.Repeat("x", 300-len(text)))
		}
		fmt.Println("ok")
	}
}

func centrifugo(mux *http.ServeMux) func(string) {
	node, err := centrifuge.New(centrifuge.Config{})
	check(err)
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{UserID: "u"}, PingPongConfig: &centrifuge.PingPongConfig{PingInterval: -1, PongTimeout: -1}}, nil
	})
	node.OnConnect(func(c *centrifuge.Client) {
		c.OnSubscribe(func(_ centrifuge.SubscribeEvent, cb centrifuge.SubscribeCallback) {
			cb(centrifuge.SubscribeReply{}, nil)
		})
	})
	check(node.Run())
	mux.Handle("/ws", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{CheckOrigin: func(*http.Request) bool { return true }}))
	return func(text string) {
		body, err := json.Marshal(text)
		check(err)
		_, err = node.Publish("x", body)
		check(err)
	}
}

func mercury(mux *http.ServeMux) func(string) {
	hub, err := mercure.NewHub(mercure.WithLogger(zap.NewNop()), mercure.WithAnonymous(), mercure.WithPublisherJWT([]byte("secret-of-the-benchmark-0123456789"), "HS256"))
	check(err)
	mux.HandleFunc("/.well-known/mercure", hub.SubscribeHandler)
	token := publisherToken()
	return func(text string) {
		r, err := http.NewRequest(http.MethodPost, "/", strings.NewReader("topic=x&data="+strings.ReplaceAll(text, " ", "+")))
		check(err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer "+token)
		w := quiet{h: http.Header{}}
		hub.PublishHandler(&w, r)
		if w.status >= 300 {
			log.Fatalf("mercure: %d", w.status)
		}
	}
}

// quiet takes an answer that nobody reads.
type quiet struct {
	h      http.Header
	status int
}

func (q *quiet) Header() http.Header         { return q.h }
func (q *quiet) Write(b []byte) (int, error) { return len(b), nil }
func (q *quiet) WriteHeader(status int)      { q.status = status }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
