package patch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/store/pgtest"
)

// landing names a file that says what a process of this test binary lands, in place of
// the tests.
const landing = "GATEHOUSE_TEST_LANDING"

// toLand is what stands there.
type toLand struct {
	Mirrors string
	Repo    patch.Repository
	Intent  patch.Intent
}

func TestMain(m *testing.M) {
	name := os.Getenv(landing)
	if name == "" {
		os.Exit(pgtest.InMemory(m).Run())
	}
	var l toLand
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err == nil {
		err = patch.NewMirrors(l.Mirrors, patch.Options{}).Open(l.Repo).Land(context.Background(), l.Intent, nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// slowly makes the people's git stop in the middle of writing files that end in .slow,
// until a sign is there. It returns the file that tells that it waits, and the sign.
func slowly(s *story) (begun, sign string) {
	s.Helper()
	dir := s.TempDir()
	begun, sign = filepath.Join(dir, "begun"), filepath.Join(dir, "sign")
	write(s.T, s.source, files{".git/info/attributes": "*.slow filter=slow\n"})
	git(s.T, s.source, "config", "filter.slow.smudge", fmt.Sprintf("sh -c 'touch %q; until [ -e %q ]; do sleep 0.02; done; cat'", begun, sign))
	return begun, sign
}

// appears waits for a file.
func appears(t *testing.T, name string) {
	t.Helper()
	for range 1500 {
		if _, err := os.Stat(name); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s does not come", name)
}

// TestAPushOutlivesItsServer: git goes on when the server that started it is killed. Until
// it is through nobody else lands or takes the folder for somebody's unfinished work;
// then its push is the landing.
func TestAPushOutlivesItsServer(t *testing.T) {
	mirrors := filepath.Join(t.TempDir(), "m")
	s := given(t, files{"a.txt": "1\n"})
	s.home = patch.NewMirrors(mirrors, patch.Options{})
	s.m = s.home.Open(s.m.Repository())
	s.fetch()
	begun, sign := slowly(s)
	in := s.mustPlan(s.changed(files{"a.txt": "2\n", "b.slow": "b\n", "c.txt": "c\n"}))
	b, err := json.Marshal(toLand{mirrors, s.m.Repository(), in})
	if err != nil {
		t.Fatal(err)
	}
	task := filepath.Join(t.TempDir(), "landing")
	if err := os.WriteFile(task, b, 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), landing+"="+task)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer write(t, filepath.Dir(sign), files{"sign": ""}) // the push ends with the test, whatever happens
	appears(t, begun)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // it was killed

	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := s.m.Land(short, in, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the server that took over did not wait: %v", err)
	}
	write(t, filepath.Dir(sign), files{"sign": ""})
	s.mustLand(in)
	equal(t, "branch", git(t, s.source, "rev-parse", "main"), in.Merge)
	equal(t, "status", git(t, s.source, "status", "--porcelain"), "")
}

// TestWhatHasLandedIsNotInItsOwnWay: a landing that waited while another process made its
// push finds its own new files in the folder.
func TestWhatHasLandedIsNotInItsOwnWay(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	in := s.mustPlan(s.changed(files{"a.txt": "2\n", "n.txt": "n\n"}))
	s.mustLand(in)
	s.mustLand(in)
	equal(t, "branch", git(t, s.source, "rev-parse", "main"), in.Merge)
}

// TestAPushIsNotCutShort: a server that stops, or that loses the landing, lets a push into
// a folder come to its end; half of it would look like somebody's work.
func TestAPushIsNotCutShort(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	begun, sign := slowly(s)
	in := s.mustPlan(s.changed(files{"a.txt": "2\n", "b.slow": "b\n", "c.txt": "c\n"}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	landed := make(chan error, 1)
	go func() { landed <- s.m.Land(ctx, in, nil) }()
	appears(t, begun)
	cancel()
	write(t, filepath.Dir(sign), files{"sign": ""})
	if err := <-landed; err != nil {
		t.Error(err)
	}
	equal(t, "branch", git(t, s.source, "rev-parse", "main"), in.Merge)
	equal(t, "status", git(t, s.source, "status", "--porcelain"), "")
}
