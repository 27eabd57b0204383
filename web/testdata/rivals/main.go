// Rivals measures Gatehouse's streams beside the bare libraries Centrifuge and Mercure, each
// server and its listeners in processes of their own, one after the other on one machine.
//
//	rivals HOUSE        HOUSE is the compiled tests of package web
//
// It is a module of its own, so that the product does not depend on the libraries.
package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "serve":
		serve(os.Args[2])
	case len(os.Args) == 5 && os.Args[1] == "listen":
		n, err := strconv.Atoi(os.Args[3])
		check(err)
		var h hall
		check(json.Unmarshal([]byte(os.Args[4]), &h))
		listen(os.Args[2], n, h)
	case len(os.Args) == 2:
		compare(os.Args[1])
	default:
		fmt.Fprintln(os.Stderr, "usage: rivals HOUSE")
		os.Exit(2)
	}
}

// How many messages are sent at a pace of 5 a second, and how many at once.
const (
	paced = 30
	burst = 200
)

func compare(house string) {
	self, err := os.Executable()
	check(err)
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("load average %s", load)
	fmt.Printf("%-12s %-4s %6s %8s %8s %12s %8s %8s %10s %12s %14s\n", "server", "kind", "n", "p50 ms", "p99 ms", "deliveries/s", "lost", "doubled", "kB each", "paced CPU s", "burst µs each")
	for _, n := range sizes() {
		for range 2 {
			measure("gatehouse", "ws", n, self, exec.Command(house, "-test.run", "^TestStreamFigures$", "-test.timeout", "0"))
			measure("centrifuge", "ws", n, self, exec.Command(self, "serve", "centrifuge"))
			measure("gatehouse", "sse", n, self, exec.Command(house, "-test.run", "^TestStreamFigures$", "-test.timeout", "0"))
			measure("mercure", "sse", n, self, exec.Command(self, "serve", "mercure"))
		}
	}
}

// sizes are the numbers of listeners, those in RIVALS_LISTENERS or 2,000 and 5,000.
func sizes() (all []int) {
	for _, s := range strings.Fields(os.Getenv("RIVALS_LISTENERS")) {
		n, err := strconv.Atoi(s)
		check(err)
		all = append(all, n)
	}
	if len(all) == 0 {
		return []int{2000, 5000}
	}
	return all
}

// child is a process that answers a line with a line.
type child struct {
	cmd *exec.Cmd
	in  interface{ Write([]byte) (int, error) }
	out *bufio.Reader
	end func() error
}

func start(cmd *exec.Cmd) *child {
	cmd.Env = append(os.Environ(), "GATEHOUSE_TEST_STREAMS=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(err)
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	return &child{cmd, in, bufio.NewReaderSize(out, 1<<16), in.Close}
}

func (c *child) line() string {
	s, err := c.out.ReadString('\n')
	check(err)
	return strings.TrimSpace(s)
}

func (c *child) ask(format string, args ...any) string {
	fmt.Fprintf(c.in, format+"\n", args...)
	return c.line()
}

func (c *child) stop() {
	check(c.end())
	c.out.WriteTo(discard{})
	c.cmd.Wait()
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// resident is the memory of the process in kB.
func (c *child) resident() float64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "status"))
	check(err)
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	check(err)
	return n
}

// cpu is how long the process has been on a processor, in seconds; ticks are 10 ms.
func (c *child) cpu() float64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "stat"))
	check(err)
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100
}

func measure(name, kind string, n int, self string, cmd *exec.Cmd) {
	server := start(cmd)
	place := server.line()
	server.ask("gc")
	before := server.resident()
	listeners := start(exec.Command(self, "listen", kind, strconv.Itoa(n), place))
	listeners.line()
	time.Sleep(2 * time.Second)
	server.ask("gc")
	each := (server.resident() - before) / float64(n)
	cpu := server.cpu()
	server.ask("paced 0 %d", paced)
	slow := settle(listeners, paced*n)
	pacedCPU := server.cpu() - cpu
	cpu = server.cpu()
	began := time.Now().UnixNano()
	server.ask("burst %d %d", paced, burst)
	fast := settle(listeners, burst*n)
	each2 := (server.cpu() - cpu) * 1e6 / float64(burst*n)
	rate := float64(fast.Delivered) / (float64(fast.Last-began) / 1e9)
	missing := (paced+burst)*n - slow.Delivered - fast.Delivered
	fmt.Printf("%-12s %-4s %6d %8.1f %8.1f %12.0f %8d %8d %10.1f %12.2f %14.2f\n", name, kind, n, slow.P50, slow.P99, rate, missing, slow.Doubled+fast.Doubled, each, pacedCPU, each2)
	listeners.cmd.Process.Kill()
	listeners.cmd.Wait()
	server.stop()
}

// settle waits until everything has come, or nothing more has for a while.
func settle(l *child, want int) heard {
	var h heard
	for quiet, before := 0, 0; h.Delivered < want && quiet < 20; before = h.Delivered {
		time.Sleep(100 * time.Millisecond)
		check(json.Unmarshal([]byte(l.ask("count")), &h))
		if quiet++; h.Delivered > before {
			quiet = 0
		}
	}
	check(json.Unmarshal([]byte(l.ask("sum")), &h))
	return h
}

// publisherToken may publish everything to the hub of this benchmark.
func publisherToken() string {
	part := base64.RawURLEncoding.EncodeToString
	text := part([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + part([]byte(`{"mercure":{"publish":["*"]}}`))
	mac := hmac.New(sha256.New, []byte("secret-of-the-benchmark-0123456789"))
	mac.Write([]byte(text))
	return text + "." + part(mac.Sum(nil))
}
