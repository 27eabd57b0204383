// Command cmd serves the fake models for trials by hand: real coding agents talk to it as
// to the real service. With -script FILE, a JSON array of answers, the n-th answer of a
// conversation is the n-th of the file; behind its end the last one is given.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"gatehouse/orchestrator/agent/llm/modeltest"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8099", "address to listen on")
	script := flag.String("script", "", "file with a JSON array of answers: [{\"text\": …}, {\"calls\": [{\"name\": …, \"input\": {…}}]}]")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, *script); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, file string) error {
	answers := []modeltest.Answer{modeltest.Say("I am a fake model. Give me a script with -script.")}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		answers = nil
		if err := json.Unmarshal(text, &answers); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(answers) == 0 {
			return fmt.Errorf("%s: there is no answer in it", file)
		}
	}
	fake := modeltest.New(func(a modeltest.Ask) modeltest.Answer {
		names := make([]string, len(a.Tools))
		for i, t := range a.Tools {
			names[i] = t.Name
		}
		fmt.Printf("%s %s turn %d, %d messages, tools %v: %.200q\n", a.API, a.Model, a.Turn, len(a.Messages), names, a.Conversation)
		return answers[min(a.Turn, len(answers))-1]
	})
	defer fake.Close()
	server := &http.Server{Addr: listen, Handler: fake, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	fmt.Printf("ANTHROPIC_BASE_URL=http://%s\nOPENAI_BASE_URL=http://%s/v1\n", listen, listen)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	fake.Close()
	err := server.Close()
	if serve := <-ended; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, serve)
	}
	return err
}
