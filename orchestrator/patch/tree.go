package patch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	modeFile   = "100644"
	modeExec   = "100755"
	modeLink   = "120000"
	modeGit    = "160000"
	modeAbsent = "000000"
)

// isID reports whether s is a full object id; everything that reaches git as an
// object goes through it, so that no name can be read as an option.
func isID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !isID(id) {
			return fmt.Errorf("%q is not a full object id", id)
		}
	}
	return nil
}

func isZero(id string) bool { return strings.Trim(id, "0") == "" }

// Changes lists what differs between two trees, by path, without looking for
// renames.
func (r *Mirror) Changes(ctx context.Context, baseTree, tree string) ([]Change, error) {
	if err := checkIDs(baseTree, tree); err != nil {
		return nil, err
	}
	if baseTree == tree {
		return nil, nil
	}
	out, err := r.git(ctx, command{args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--no-abbrev", baseTree, tree}})
	if err != nil {
		return nil, r.missing(err)
	}
	fields := strings.Split(string(out), "\x00")
	var changes []Change
	for i := 0; i+1 < len(fields); i += 2 {
		c, ok := parseRaw(fields[i])
		if !ok {
			return nil, fmt.Errorf("git diff-tree printed %q", fields[i])
		}
		c.Path = fields[i+1]
		changes = append(changes, c)
	}
	return changes, nil
}

// parseRaw reads ":100644 100755 old new M".
func parseRaw(s string) (Change, bool) {
	f := strings.Fields(strings.TrimPrefix(s, ":"))
	if len(f) != 5 || !strings.HasPrefix(s, ":") || f[4] == "" {
		return Change{}, false
	}
	return Change{OldMode: f[0], NewMode: f[1], OldID: f[2], NewID: f[3], Status: f[4][0]}, true
}

// missing turns git's many ways to say that an object is not there into ErrMissing.
func (r *Mirror) missing(err error) error {
	said := stderrOf(err)
	for _, w := range []string{"bad object", "unable to read", "Not a valid object name", "could not get object info", "bad tree", "not a tree object"} {
		if strings.Contains(said, w) {
			return fmt.Errorf("%s: %w: %w", r.repo.Name, ErrMissing, err)
		}
	}
	return err
}

// Has reports whether the mirror holds an object.
func (r *Mirror) Has(ctx context.Context, object string) bool {
	if !isID(object) || r.ensure(ctx) != nil {
		return false
	}
	_, err := r.git(ctx, command{args: []string{"cat-file", "-e", object}})
	return err == nil
}

// Blob returns a file's content. One that is larger than max bytes is cut there
// and comes with ErrCut.
func (r *Mirror) Blob(ctx context.Context, id string, max int64) ([]byte, error) {
	if err := checkIDs(id); err != nil {
		return nil, err
	}
	var out []byte
	err := r.blobs(ctx, []string{id}, func(_ int, size int64, content io.Reader) error {
		var err error
		if out, err = io.ReadAll(io.LimitReader(content, max)); err == nil && size > max {
			err = ErrCut
		}
		return err
	})
	return out, err
}

// ErrCut: the content is longer than what was asked for; what came is its beginning.
var ErrCut = errors.New("content is cut at the limit")

// blobs streams the contents of many objects, in order, from one process. visit
// need not read to the end.
func (r *Mirror) blobs(ctx context.Context, ids []string, visit func(i int, size int64, content io.Reader) error) error {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.home.opts.Timeout)
	defer cancel()
	cmd := r.prepare(ctx, command{args: []string{"cat-file", "--batch"}, stdin: strings.NewReader(strings.Join(ids, "\n") + "\n")})
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git cat-file: %w", err)
	}
	err = readBatch(bufio.NewReaderSize(pipe, 64<<10), ids, visit)
	if err != nil {
		cancel() // git would wait for a reader
	}
	if werr := cmd.Wait(); err == nil && werr != nil {
		err = fmt.Errorf("git cat-file: %w", werr)
	}
	return err
}

func readBatch(in *bufio.Reader, ids []string, visit func(i int, size int64, content io.Reader) error) error {
	for i, id := range ids {
		line, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		f := strings.Fields(line)
		if len(f) != 3 {
			return fmt.Errorf("%w: %s", ErrMissing, id)
		}
		size, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		body := io.LimitReader(in, size)
		if err := visit(i, size, body); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		if _, err := in.Discard(1); err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
	}
	return nil
}

// sizes returns the inflated size of each object; -1 for one that is not there.
func (r *Mirror) sizes(ctx context.Context, ids []string) (map[string]int64, error) {
	found := make(map[string]int64, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	out, err := r.git(ctx, command{args: []string{"cat-file", "--batch-check=%(objectname) %(objectsize)"},
		stdin: strings.NewReader(strings.Join(ids, "\n") + "\n")})
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				n = -1 // "<id> missing"
			}
			found[f[0]] = n
		}
	}
	return found, nil
}

// listed is one entry of a tree at its path.
type listed struct {
	entry
	path string
	size string // of a file, where -l asks for it
}

// list lists every file of a tree by path, or with paths what stands at these, folders too.
// Flags are those of git ls-tree.
func (r *Mirror) list(ctx context.Context, tree string, paths []string, flags ...string) ([]listed, error) {
	args := append([]string{"ls-tree", "-z", "--full-tree"}, flags...)
	if paths == nil {
		args = append(args, "-r", tree)
	} else {
		args = append(append(args, tree, "--"), paths...)
	}
	out, err := r.git(ctx, command{args: args, max: 512 << 20})
	if err != nil {
		return nil, r.missing(err)
	}
	var all []listed
	for line := range strings.SplitSeq(string(out), "\x00") {
		meta, path, ok := strings.Cut(line, "\t")
		if f := strings.Fields(meta); ok && len(f) >= 3 {
			all = append(all, listed{entry{f[0], f[2]}, path, strings.Join(f[3:], "")})
		}
	}
	return all, nil
}

// names lists every path of a tree.
func (r *Mirror) names(ctx context.Context, tree string) ([]string, error) {
	all, err := r.list(ctx, tree, nil)
	var paths []string
	for _, l := range all {
		paths = append(paths, l.path)
	}
	return paths, err
}

// index is a temporary index; the agent's own is never used.
type index struct {
	r    *Mirror
	file string
	done func()
}

// newIndex reads tree into a fresh temporary index; close it with done.
func (r *Mirror) newIndex(ctx context.Context, tree string) (*index, error) {
	if err := checkIDs(tree); err != nil {
		return nil, err
	}
	dir, done, err := r.scratch()
	if err != nil {
		return nil, err
	}
	ix := &index{r: r, file: filepath.Join(dir, "index"), done: done}
	if _, err := ix.git(ctx, command{args: []string{"read-tree", tree}}); err != nil {
		done()
		return nil, r.missing(err)
	}
	return ix, nil
}

func (ix *index) git(ctx context.Context, c command) ([]byte, error) {
	c.env = append(c.env, "GIT_INDEX_FILE="+ix.file)
	return ix.r.git(ctx, c)
}

// write stores the index as a tree.
func (ix *index) write(ctx context.Context) (string, error) {
	out, err := ix.git(ctx, command{args: []string{"write-tree"}})
	return string(bytes.TrimSpace(out)), err
}

// edit returns base with the new side of each change put in its place. With the flag
// --replace, what stands in the way of a change gives way.
func (r *Mirror) edit(ctx context.Context, base string, changes []Change, flags ...string) (string, error) {
	ix, err := r.newIndex(ctx, base)
	if err != nil {
		return "", err
	}
	defer ix.done()
	var in bytes.Buffer
	// Deletions first: a file may give way to a folder of its name.
	for _, deletions := range []bool{true, false} {
		for _, c := range changes {
			if (c.NewMode == modeAbsent) == deletions {
				mode := c.NewMode
				if deletions {
					mode = "0"
				}
				fmt.Fprintf(&in, "%s %s\t%s\x00", mode, c.NewID, c.Path)
			}
		}
	}
	args := slices.Concat([]string{"update-index", "-z"}, flags, []string{"--index-info"})
	if _, err := ix.git(ctx, command{args: args, stdin: &in}); err != nil {
		return "", err
	}
	return ix.write(ctx)
}

// Entry is what stands at a path of a tree.
type Entry string

// The kinds of entries.
const (
	NoEntry    Entry = ""           // nothing stands there
	Plain      Entry = "file"       // a file that cannot be started
	Executable Entry = "executable" // a file with the executable bit
	Link       Entry = "link"       // a symbolic link
	Folder     Entry = "folder"     // a folder, or a submodule
)

// EntryAt looks at a clean, slash-separated path of a tree, such as scripts/run.sh.
func (r *Mirror) EntryAt(ctx context.Context, tree, path string) (Entry, error) {
	e, err := r.lookup(ctx, tree, path)
	switch {
	case err != nil || e.mode == "":
		return NoEntry, err
	case e.mode == modeExec:
		return Executable, nil
	case e.mode == modeLink:
		return Link, nil
	case strings.HasPrefix(e.mode, "100"): // old repositories have 100664, too
		return Plain, nil
	}
	return Folder, nil
}

// LineCounts counts the lines of contents by their ids, -1 for one that has more than max
// bytes. One process reads them all.
func (r *Mirror) LineCounts(ctx context.Context, ids []string, max int64) ([]int, error) {
	if err := checkIDs(ids...); err != nil {
		return nil, err
	}
	counts := make([]int, len(ids))
	err := r.blobs(ctx, ids, func(i int, size int64, content io.Reader) error {
		if counts[i] = -1; size > max {
			return nil
		}
		n, err := countLines(content)
		counts[i] = n
		return err
	})
	return counts, err
}

// countLines counts a last line without a line feed, too.
func countLines(content io.Reader) (int, error) {
	buf := make([]byte, 32<<10)
	n, last := 0, byte('\n')
	for {
		got, err := content.Read(buf)
		if got > 0 {
			n += bytes.Count(buf[:got], []byte{'\n'})
			last = buf[got-1]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
	}
	if last != '\n' {
		n++
	}
	return n, nil
}
