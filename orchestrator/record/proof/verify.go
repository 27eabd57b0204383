package proof

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/record/event"
)

// Limits of what is read, and of what is remembered while reading.
const (
	maxLine   = 32 << 20 // bytes; above the largest event and the largest seal
	maxHashes = 200_000  // events whose hashes are held against checkpoints
	maxOdd    = 5        // lines that may explain a wrong sum
)

// Problem is one thing in a bundle that does not fit.
type Problem struct {
	Line    int    `json:"line,omitempty"` // from 1; 0 where it is about the whole
	ID      string `json:"id"`             // of the event, as its line says
	TaskID  string `json:"task_id"`
	Message string `json:"message"`
}

// Report is what verifying a bundle found.
type Report struct {
	Version int       `json:"version"` // of the seal
	Scope   string    `json:"scope,omitempty"`
	Tasks   int       `json:"tasks"`
	Events  int       `json:"events"`
	Dropped int       `json:"dropped"` // events whose data retention removed
	Covered int       `json:"covered"` // tasks whose head a signed checkpoint knows as well
	At      time.Time `json:"at"`      // of the seal
	Key     string    `json:"key"`     // Fingerprint of the key that signed the seal
	// Of an export of rows that a filter chose:
	List   string `json:"list,omitempty"`
	Filter string `json:"filter,omitempty"`
	Zone   string `json:"zone,omitempty"`
	By     string `json:"by,omitempty"`
	Rows   int    `json:"rows,omitempty"`

	Problems []Problem `json:"problems"`
	More     int       `json:"more,omitempty"` // problems beyond MaxProblems
}

// OK reports whether everything fits.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Options say what else has to be true.
type Options struct {
	// Keys are fingerprints, 16 to 64 hex digits, of the keys that may have signed; none:
	// any key may.
	Keys []string
}

// Verify checks a bundle without anything else: every event by its own hash, the events of
// a task by their chain, all bytes by the seal, the seal by its signature, and the heads
// of tasks by the checkpoints that the seal carries. Its error says that reading failed;
// what does not fit is in the report.
func Verify(in io.Reader, o Options) (Report, error) {
	b := &reader{tasks: map[string]*task{}, sum: sha256.New(), keys: o.Keys}
	lines := bufio.NewReaderSize(in, 64<<10)
	var last []byte // the newest line, which may be the seal
	for n := 1; ; n++ {
		text, err := readLine(lines)
		if errors.Is(err, errLong) {
			b.problem(n, "", "", "line %d is longer than %d MB: this is no bundle", n, maxLine>>20)
			return b.end(), nil
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return b.end(), fmt.Errorf("read the bundle: %w", err)
		}
		if n == 1 {
			var refused bool
			if text, refused = b.opening(text); refused {
				return b.end(), nil
			}
		}
		if last != nil {
			b.event(n-1, last)
		}
		last = b.unCR(text)
	}
	if b.crlf > 0 {
		b.wrongFile("%d lines end with CR LF: a program for text wrote the file anew. Verify the file as it was downloaded", b.crlf)
	}
	if last == nil {
		b.problem(0, "", "", "the file is empty: there is nothing to verify")
		return b.end(), nil
	}
	b.seal(last)
	return b.end(), nil
}

// opening looks at how a file begins, for what happens to files on their way. A mark is
// cut off, so that only it is named; refused: nothing in the file can be read.
func (b *reader) opening(text []byte) (rest []byte, refused bool) {
	switch rest, mark := bytes.CutPrefix(text, []byte("\xef\xbb\xbf")); {
	case mark:
		b.wrongFile("the file begins with a byte order mark: a program for text wrote it anew. Verify the file as it was downloaded")
		return rest, false
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		b.wrongFile("the file is UTF-16, which PowerShell's > writes. Export anew with: cmd /c \"gatehouse audit export > audit.jsonl\"")
		return nil, true
	case bytes.HasPrefix(text, []byte("\x1f\x8b")):
		b.wrongFile("the file is compressed: unpack it with gunzip, then verify what comes out")
		return nil, true
	}
	return text, false
}

// unCR cuts a CR off the end of a line. It counts it: such a file is not what was sealed.
func (b *reader) unCR(line []byte) []byte {
	rest, found := bytes.CutSuffix(line, []byte{'\r'})
	if found {
		b.crlf++
	}
	return rest
}

// wrongFile notes a problem that stays whatever the file turns out to be.
func (b *reader) wrongFile(format string, args ...any) {
	b.problem(0, "", "", format, args...)
	b.file = append(b.file, Problem{Message: fmt.Sprintf(format, args...)})
}

var errLong = errors.New("the line is too long")

// readLine reads up to the next line feed, which is not part of it; io.EOF: there is no
// more. Nothing else ends a line or is cut off it: every byte counts.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, errLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// place is all that is held of an event: an export may be of a million tasks.
type place struct {
	N        int64
	ID, Hash string
}

// task is what was seen of one.
type task struct {
	line    int // of its first event
	events  int
	covered bool // by a checkpoint
	last    place
	hashes  map[int64]string // by n; nil where there were too many events
}

type reader struct {
	found  Report
	keys   []string
	tasks  map[string]*task
	sum    hash.Hash
	sums   lineSums
	events int       // lines before the seal
	points int       // of them that are checkpoints, which are not counted as events
	rows   int       // of them that are objects with an id and no events
	crlf   int       // lines that end with CR
	file   []Problem // what is wrong with the file, whatever is in it
	odd    []Problem // lines that are read but are not written as an export writes them
	gaps   []Problem // events before which others are missing
}

func (b *reader) problem(line int, id, taskID, format string, args ...any) {
	if len(b.found.Problems) == MaxProblems {
		b.found.More++
		return
	}
	b.found.Problems = append(b.found.Problems, Problem{Line: line, ID: id, TaskID: taskID, Message: fmt.Sprintf(format, args...)})
}

// perhaps notes what is a problem only if the seal says so.
func perhaps(list *[]Problem, line int, e event.Event, format string, args ...any) {
	if len(*list) < maxOdd {
		*list = append(*list, Problem{Line: line, ID: e.ID, TaskID: e.TaskID, Message: fmt.Sprintf(format, args...)})
	}
}

func (b *reader) end() Report {
	if b.found.Tasks = len(b.tasks); b.found.Scope != Selected {
		b.found.Events = b.events
	}
	slices.SortStableFunc(b.found.Problems, func(x, y Problem) int { return x.Line - y.Line })
	return b.found
}

// event checks one line that is not the last.
func (b *reader) event(line int, text []byte) {
	b.events++
	b.sum.Write(text)
	b.sum.Write([]byte{'\n'})
	b.sums.add(text)
	var e event.Event
	if err := json.Unmarshal(text, &e); err != nil || e.ID == "" || e.TaskID == "" || e.Hash == "" {
		if err == nil && e.ID != "" && e.Hash == "" {
			b.rows++
		}
		if b.checkpoint(text) {
			return
		}
		if _, ok := sealScope(text); ok {
			b.problem(line, "", "", "line %d is a seal, and more comes after it: something was added", line)
			return
		}
		b.problem(line, idIn(text), "", "line %d is no event%s", line, named(idIn(text)))
		return
	}
	if again, err := json.Marshal(e); err != nil || !bytes.Equal(again, text) {
		perhaps(&b.odd, line, e, "line %d (event %s) is not written as it was exported", line, e.ID)
	}
	if e.Dropped != nil {
		b.found.Dropped++
	}
	t := b.tasks[e.TaskID]
	if t == nil {
		t = &task{line: line, hashes: map[int64]string{}}
		b.tasks[e.TaskID] = t
	}
	b.follow(line, t, e)
	t.events, t.last = t.events+1, place{e.N, e.ID, e.Hash}
	if t.hashes != nil && b.events <= maxHashes {
		t.hashes[e.N] = e.Hash
	} else {
		t.hashes = nil
	}
}

// follow checks an event against the one before it in its task.
func (b *reader) follow(line int, t *task, e event.Event) {
	before, prev := t.last, e.PrevHash
	if t.events > 0 && e.N == before.N+1 {
		prev = before.Hash
	}
	switch err := e.Verify(prev); {
	case t.events > 0 && e.N == before.N && e.ID == before.ID:
		b.problem(line, e.ID, e.TaskID, "line %d: event %s (n %d) is there twice", line, e.ID, e.N)
	case t.events > 0 && e.N <= before.N:
		b.problem(line, e.ID, e.TaskID, "line %d: event %s (n %d) comes after n %d of the same task: the order was changed", line, e.ID, e.N, before.N)
	case err != nil:
		b.problem(line, e.ID, e.TaskID, "line %d: %v", line, err)
	case e.N > before.N+1:
		perhaps(&b.gaps, line, e, "line %d: before event %s (n %d) of %s, n %d to %d are missing", line, e.ID, e.N, e.TaskID, before.N+1, e.N-1)
	case e.N == 1 && e.PrevHash != "":
		b.problem(line, e.ID, e.TaskID, "line %d: event %s is the first of its task and claims to follow another", line, e.ID)
	}
}

// idIn finds the id of an event in a line that cannot be read as one.
func idIn(text []byte) string {
	const before = `"id":"` + "evt_"
	i := bytes.Index(text, []byte(before))
	if i < 0 {
		return ""
	}
	rest := text[i+len(`"id":"`):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || end > 60 {
		return ""
	}
	return strings.ToValidUTF8(string(rest[:end]), "?")
}

func named(id string) string {
	if id == "" {
		return ""
	}
	return " any more: it was " + id
}
