package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAChecksOutputAndVerdict(t *testing.T) {
	r := testRunner(t, func(o *Options) { o.Environ = append(os.Environ(), "GIT_TOKEN=topsecret") })
	for name, c := range map[string]struct {
		line   string
		ok     bool
		output string
	}{
		"passes":          {`echo out; echo err >&2`, true, "out\nerr"},
		"fails":           {`echo broken; exit 1`, false, "broken"},
		"no secret":       {`echo "$GIT_TOKEN$GATEHOUSE_TOKEN"; cat`, true, ""},
		"in its folder":   {`cat file`, true, "here"},
		"leaves children": {`(setsid sleep 600 &) ; echo ok`, true, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "file"), "here", 0o644)
			res, err := r.Check(t.Context(), dir, c.line, nil, time.Minute)
			if err != nil || res.OK != c.ok || res.Output != c.output || res.Took <= 0 {
				t.Fatalf("%+v, %v", res, err)
			}
		})
	}
}

func TestACheckKeepsTheEndOfItsOutput(t *testing.T) {
	res, err := testRunner(t).Check(t.Context(), t.TempDir(), `head -c 100000000 /dev/zero | tr '\0' x; echo the end`, nil, time.Minute)
	if err != nil || !res.OK || !strings.HasSuffix(res.Output, "the end") || len(res.Output) > checkBytes+10 {
		t.Fatalf("%v, %v, %d bytes", res.OK, err, len(res.Output))
	}
}

func TestACheckThatTakesTooLong(t *testing.T) {
	res, err := testRunner(t).Check(t.Context(), t.TempDir(), `echo begun; sleep 600`, nil, 2*time.Second)
	if err != nil || res.OK || !strings.Contains(res.Output, "begun\nIt ran for 2s") {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := testRunner(t).Check(ctx, t.TempDir(), `sleep 600`, nil, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("ended with %v", err)
	}
}
