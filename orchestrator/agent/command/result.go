package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"gatehouse/orchestrator/agent"
)

// maxResultFile is how long GATEHOUSE_RESULT may be, in bytes.
const maxResultFile = 8 << 20

// resultFile is what a plain program may write into the file GATEHOUSE_RESULT.
type resultFile struct {
	Data      json.RawMessage  `json:"data"`
	Artifacts []agent.Artifact `json:"artifacts"`
}

// readResult adds to a plain program's answer what it wrote into GATEHOUSE_RESULT.
func (c *conversation) readResult(result agent.Result) (agent.Result, error) {
	text, err := readPlain(c.run.resultFile)
	if errors.Is(err, fs.ErrNotExist) {
		return result, nil
	}
	if err != nil {
		return result, c.badResult(err.Error())
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return result, nil
	}
	var f resultFile
	if what := decode(text, &f); what != "" {
		return result, c.badResult(what)
	}
	data, artifacts, what := c.given(f.Data, f.Artifacts)
	if what != "" {
		return result, c.badResult(what)
	}
	result.Data, result.Artifacts = data, artifacts
	return result, nil
}

func (c *conversation) badResult(what string) error {
	return agent.Fail(agent.CodeBadOutput, "What %s wrote into GATEHOUSE_RESULT was not taken: the file %s. Let it write one JSON object, {\"data\":…, \"artifacts\":[…]}.", c.run.program, c.safe(what))
}

// given is data and artifacts as a program gives them, fit to store, or what is wrong with
// them.
func (c *conversation) given(data json.RawMessage, artifacts []agent.Artifact) (json.RawMessage, []agent.Artifact, string) {
	var all []agent.Artifact
	for i, a := range artifacts {
		if a.Name == "" || (a.Path != "" && !filepath.IsLocal(a.Path)) {
			return nil, nil, fmt.Sprintf("has artifact %d without a name, or with a path that leaves the checkout", i+1)
		}
		// The rest of an artifact is the engine's to say.
		all = append(all, agent.Artifact{Name: clean(a.Name), MediaType: clean(a.MediaType), Path: a.Path, Text: c.safe(a.Text)})
	}
	if bytes.Equal(data, []byte("null")) {
		data = nil
	}
	if depth(data) > maxDepth {
		return nil, nil, fmt.Sprintf("has data nested more than %d levels deep", maxDepth)
	}
	if data != nil {
		data = json.RawMessage(c.redact.Replace(string(data)))
	}
	return data, all, ""
}

// readPlain reads a file that a program made. One that is a link, or no file, is not
// followed: it could lead to what the program itself may not read.
func readPlain(path string) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	name := filepath.Base(path)
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("is no plain file")
	case info.Size() > maxResultFile:
		return nil, fmt.Errorf("has %d bytes, and %d are the limit", info.Size(), maxResultFile)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.New("was changed while it was read")
	}
	return io.ReadAll(io.LimitReader(f, maxResultFile))
}

// noRoom is where a disk counts as full, in bytes: what a tool writes at once does not fit.
const noRoom = 1 << 20

// record tells the host what the run used at most.
func (c *conversation) record(ctx context.Context) error {
	spec := c.job.Agent
	if c.proc.report.Most == (agent.Limits{}) {
		return nil
	}
	err := c.host.Confined(ctx, agent.Confinement{Limits: spec.Limits, Network: spec.Network, Most: c.proc.report.Most})
	if err != nil && !errors.Is(err, agent.ErrStopped) {
		return fmt.Errorf("record what the run used: %w", err)
	}
	return err
}

// tooLong reports whether the program was ended over the length of one file. A shell gives a
// signal on as its code plus 128.
func (c *conversation) tooLong() bool {
	rep := c.proc.report
	return c.job.Agent.Limits.Files > 0 && (rep.Signal == int(unix.SIGXFSZ) || rep.Code == 128+int(unix.SIGXFSZ))
}

// full is the failure of a program that failed where the disk has no room, nil where it has.
func (c *conversation) full() *agent.Failure {
	for _, dir := range c.run.order.Written {
		var st syscall.Statfs_t
		if syscall.Statfs(dir, &st) == nil && int64(st.Bavail)*st.Bsize < noRoom {
			return agent.Fail(agent.CodeDisk, "%s failed, and the disk that holds %s is full. Make room there, and send the task again. The last it said:\n%s",
				c.run.program, dir, c.redact.Replace(c.errTail.text(tailLines)))
		}
	}
	return nil
}
