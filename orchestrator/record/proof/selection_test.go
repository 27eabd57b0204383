package proof

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// selectionOf is an export of n rows.
func selectionOf(t *testing.T, key ed25519.PrivateKey, n int) []string {
	t.Helper()
	var b bytes.Buffer
	w := NewSelectionWriter(&b, Selection{List: "requests", Filter: `approver:bob "a <b>` + "\xff", Zone: "Europe/Berlin", By: "iris"})
	for i := range n {
		if err := w.Row(fmt.Sprintf(`{"id":"apr_%04d","task_id":"tsk_%04d","title":"row %d"}`, i+1, i+1, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Note(`{"type":"count","rows":` + strconv.Itoa(n) + `}`); err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(key, sealedAt); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestAnExportOfRowsVerifiesWithNothingElse(t *testing.T) {
	fingerprint := Fingerprint(serverKey.Public().(ed25519.PublicKey))
	for _, n := range []int{0, 1, 2, 7, maxSums - 2, maxSums - 1, maxSums, maxSums + 1, 3*maxSums + 5} {
		lines := selectionOf(t, serverKey, n)
		r := verifyLines(t, lines, fingerprint)
		if !r.OK() || r.Scope != Selected || r.Rows != n || r.Events != 0 || r.Tasks != 0 || r.List != "requests" || r.By != "iris" ||
			r.Zone != "Europe/Berlin" || r.Filter != `approver:bob "a <b>`+"\uFFFD" || r.Key != fingerprint || !r.At.Equal(sealedAt) {
			t.Errorf("%d rows: %+v", n, r)
		}
		if seal := lines[len(lines)-1]; len(seal) > 70_000 {
			t.Errorf("the seal of %d rows has %d bytes", n, len(seal))
		}
	}
}

// What happens to a file on its way, by mistake or not, is named.
func TestWhatIsWrongWithAnExportOfRowsIsNamed(t *testing.T) {
	other := Fingerprint(otherKey.Public().(ed25519.PublicKey))
	at := func(i int, change func(string) string) func([]string) []string {
		return func(l []string) []string { l[i] = change(l[i]); return l }
	}
	swap := func(old, anew string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, anew, 1) }
	}
	for name, c := range map[string]struct {
		spoil func(l []string) []string
		keys  []string
		says  string
	}{
		"a row was edited":          {at(2, swap("row 3", "row 4")), nil, "line 3 was changed"},
		"the first row":             {at(0, swap("row 1", "row 2")), nil, "line 1 was changed"},
		"a row is ten megabytes":    {at(4, swap("row 5", strings.Repeat("x", 10<<20))), nil, "line 5 was changed"},
		"the count":                 {at(9, swap(`"rows":9`, `"rows":8`)), nil, "line 10 was changed"},
		"a row was removed":         {func(l []string) []string { return slices.Delete(l, 3, 4) }, nil, "before line 4 a line was removed"},
		"the last rows":             {func(l []string) []string { return slices.Delete(l, 7, 10) }, nil, "the lines 8 to 10 are missing"},
		"a row was added":           {func(l []string) []string { return slices.Insert(l, 3, `{"id":"x"}`) }, nil, "line 4 was added"},
		"a row is there twice":      {func(l []string) []string { return slices.Insert(l, 3, l[2]) }, nil, "line 4 was added"},
		"rows before the seal":      {func(l []string) []string { return slices.Insert(l, 10, l[2]) }, nil, "line 11: what stands from here on was added"},
		"two were exchanged":        {func(l []string) []string { l[4], l[5] = l[5], l[4]; return l }, nil, "line 5 and line 6 were exchanged"},
		"the seal is there twice":   {func(l []string) []string { return append(l, l[10]) }, nil, "line 11: what stands from here on was added"},
		"a row after the seal":      {func(l []string) []string { return append(l, l[0]) }, nil, "no seal"},
		"cut off":                   {func(l []string) []string { return l[:6] }, nil, "no seal"},
		"cut off in the seal":       {at(10, func(s string) string { return s[:len(s)-20] }), nil, "no seal"},
		"a filter was forged":       {at(10, swap("approver:bob", "approver:ann")), nil, "signature of the seal is wrong"},
		"a number in its place":     {at(10, swap(`"by":"iris"`, `"by":7`)), nil, "signature of the seal is wrong"},
		"a key more":                {at(10, swap(`"by"`, `"more":1,"by"`)), nil, "signature of the seal is wrong"},
		"the sums of lines":         {at(10, swap(`"lines":"`, `"lines":"00`)), nil, "signature of the seal is wrong"},
		"the version":               {at(10, swap(`"version":3`, `"version":4`)), nil, "signature of the seal is wrong"},
		"a scope that is none":      {at(10, swap(`"selection"`, `7`)), nil, "signature of the seal is wrong"},
		"the seal of whole tasks":   {at(10, swap(`"selection"`, `"tasks"`)), nil, "signature of the seal is wrong"},
		"somebody else's key":       {func(l []string) []string { return l }, []string{other}, "none of those that were named"},
		"Windows line ends":         {func(l []string) []string { return strings.Split(strings.Join(l, "\r\n")+"\r", "\n") }, nil, "11 lines end with CR LF"},
		"one of them":               {at(3, func(s string) string { return s + "\r" }), nil, "1 lines end with CR LF"},
		"a byte order mark":         {at(0, func(s string) string { return "\xef\xbb\xbf" + s }), nil, "byte order mark"},
		"UTF-16":                    {func([]string) []string { return []string{"\xff\xfe{\x00\"\x00"} }, nil, "PowerShell"},
		"compressed":                {func([]string) []string { return []string{"\x1f\x8b\x08\x00"} }, nil, "gunzip"},
		"a spreadsheet's":           {func([]string) []string { return []string{"id,task_id", "apr_1,tsk_1", "# rows: 1,"} }, nil, "a CSV file has no seal"},
		"seals and nothing besides": {func(l []string) []string { return l[10:] }, nil, "the lines 1 to 10 are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := verifyLines(t, c.spoil(selectionOf(t, serverKey, 9)), c.keys...)
			if i := slices.IndexFunc(r.Problems, func(p Problem) bool { return strings.Contains(p.Message, c.says) }); i < 0 {
				t.Errorf("%+v, want %q", r.Problems, c.says)
			}
			if len(r.Problems) > 3 {
				t.Errorf("one spoiled thing is %d problems: %+v", len(r.Problems), r.Problems)
			}
		})
	}
}

func TestAnEmptyFileIsSaidToBeEmpty(t *testing.T) {
	r, err := Verify(strings.NewReader(""), Options{})
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "the file is empty") {
		t.Errorf("%+v %v", r, err)
	}
}

// Of more lines than there are sums, the place is named by a range.
func TestOfManyRowsTheChangedOneIsFoundNearby(t *testing.T) {
	const n = 3*maxSums + 5 // a sum covers four lines
	for _, i := range []int{0, 1, 4, 777, n - 1} {
		lines := selectionOf(t, serverKey, n)
		lines[i] += " "
		r := verifyLines(t, lines)
		if len(r.Problems) != 1 || r.Problems[0].Line > i+1 || r.Problems[0].Line+3 < i+1 || !strings.Contains(r.Problems[0].Message, "was changed, added or removed") {
			t.Errorf("line %d: %+v", i+1, r.Problems)
		}
	}
	lines := slices.Delete(selectionOf(t, serverKey, n), maxSums-10, n)
	if r := verifyLines(t, lines); len(r.Problems) != 1 || r.Problems[0].Line > maxSums-9 || r.Problems[0].Line < maxSums-16 {
		t.Errorf("with most of it cut out: %+v", r.Problems)
	}
}

func TestNoByteOfAnExportOfRowsCanBeChanged(t *testing.T) {
	whole := []byte(strings.Join(selectionOf(t, serverKey, 3), "\n") + "\n")
	for i := range whole {
		for _, mask := range []byte{0x01, 0x07, 0x20, 0x80} {
			spoiled := bytes.Clone(whole)
			spoiled[i] ^= mask
			if r, err := Verify(bytes.NewReader(spoiled), Options{}); err != nil || r.OK() {
				t.Fatalf("byte %d (%q made %q) can be changed: %+v %v", i, whole[i], spoiled[i], r, err)
			}
		}
		if r, err := Verify(bytes.NewReader(append(bytes.Clone(whole[:i]), whole[i+1:]...)), Options{}); err != nil || r.OK() && i != len(whole)-1 {
			t.Fatalf("byte %d can be left out: %+v %v", i, r, err)
		}
	}
}

func FuzzVerifySelection(f *testing.F) {
	var b bytes.Buffer
	w := NewSelectionWriter(&b, Selection{List: "requests", Zone: "UTC", By: "iris"})
	for _, write := range []func() error{func() error { return w.Row(`{"id":"x"}`) }, func() error { return w.Note(`{"type":"count"}`) }, func() error { return w.Seal(serverKey, sealedAt) }} {
		if err := write(); err != nil {
			f.Fatal(err)
		}
	}
	whole := b.Bytes()
	f.Add(whole)
	f.Add([]byte(`{"type":"seal","scope":"selection","lines_each":-1}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := Verify(bytes.NewReader(in), Options{Keys: []string{Fingerprint(serverKey.Public().(ed25519.PublicKey))}})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() && !bytes.Equal(bytes.TrimSuffix(in, []byte("\n")), bytes.TrimSuffix(whole, []byte("\n"))) {
			t.Errorf("%q verifies", in)
		}
	})
}

// Anybody can seal with a key of their own: whatever such a seal says, it is read to the end.
func TestASealThatLiesIsReadToTheEnd(t *testing.T) {
	for _, lie := range []func(s *Selection){
		func(s *Selection) { s.Each = math.MaxInt }, func(s *Selection) { s.Each = 1<<62 + 1 }, func(s *Selection) { s.Each = 1 << 62 }, func(s *Selection) { s.Each = 3 },
		func(s *Selection) { s.Each = -1 }, func(s *Selection) { s.Rows = -1 }, func(s *Selection) { s.Rows = math.MaxInt }, func(s *Selection) { s.Rows = math.MinInt },
	} {
		lines := selectionOf(t, otherKey, 5)
		var s Selection
		if err := json.Unmarshal([]byte(lines[6]), &s); err != nil {
			t.Fatal(err)
		}
		lie(&s)
		s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(otherKey, s.Text()))
		seal, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		lines[2], lines[6] = lines[2]+" ", string(seal)
		if r := verifyLines(t, lines); len(r.Problems) != 1 || strings.Contains(r.Problems[0].Message, "signature") {
			t.Errorf("each %d, rows %d: %+v", s.Each, s.Rows, r.Problems)
		}
	}
}

func BenchmarkSelection(b *testing.B) {
	w := NewSelectionWriter(io.Discard, Selection{})
	row := strings.Repeat("x", 600)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Row(row); err != nil {
			b.Fatal(err)
		}
	}
}
