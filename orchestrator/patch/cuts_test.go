package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

// What a page does not draw at once makes a change careful: an added line, a removed one,
// a line that only came along with a renamed file, one that is drawn beside the change.
func TestWhatIsCutIsWarnedOf(t *testing.T) {
	wide := strings.Repeat("word ", 24_000) // 120,000 columns
	edge := strings.Repeat("x", patch.MaxColumns)
	s := given(t, files{"a.txt": "1\n", "wide.txt": wide + "old\n", "moved.txt": strings.Repeat("line\n", 50) + wide + "\n"})
	rename := func(dir string) { _ = os.Rename(filepath.Join(dir, "moved.txt"), filepath.Join(dir, "there.txt")) }
	for name, c := range map[string]struct {
		fs   files
		do   func(string)
		want []string
	}{
		"a change at column 120,000":  {files{"wide.txt": wide + "new\n"}, nil, []string{"cut wide.txt"}},
		"the line is removed":         {files{"wide.txt": "short\n"}, nil, []string{"cut wide.txt"}},
		"the line is added":           {files{"a.txt": edge + "xx\n"}, nil, []string{"cut a.txt"}},
		"the longest that is drawn":   {files{"a.txt": edge + "\n"}, nil, nil},
		"with a carriage return":      {files{"a.txt": edge + "\r\n"}, nil, nil},
		"it came with the file":       {nil, rename, []string{"cut there.txt"}},
		"it stands beside the change": {files{"moved.txt": strings.Repeat("line\n", 49) + "another\n" + wide + "\n"}, nil, []string{"cut moved.txt"}},
		"the last line that is drawn": {files{"moved.txt": strings.Repeat("line\n", 47) + "another\nline\nline\n" + wide + "\n"}, nil, []string{"cut moved.txt"}},
		"it is folded":                {files{"moved.txt": strings.Repeat("line\n", 46) + "another\n" + strings.Repeat("line\n", 3) + wide + "\n"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.do == nil {
				c.do = func(string) {}
			}
			var got []string
			for _, code := range codes(review(s, c.fs, c.do)) {
				if strings.HasPrefix(code, "cut ") {
					got = append(got, code)
				}
			}
			list(t, "warnings", got, c.want...)
		})
	}
}

// A secret is found wherever it stands in a line.
func TestASecretIsFoundAtAnyColumn(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	far := strings.Repeat("x ", 60_000)
	letters := strings.Repeat("aB3x", 16)
	secrets := []string{
		"-----BEGIN RSA PRIVATE KEY", "AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE",
		"gh" + "p_" + letters[:36], "gh" + "o_" + letters[:36], "gh" + "u_" + letters[:36], "gh" + "s_" + letters[:36], "gh" + "r_" + letters[:43], "gh" + "t_" + letters[:43],
		"github" + "_pat_" + letters[:60], "glpat" + "-" + letters[:20], "xox" + "b-" + letters[:20], "AIza" + letters[:35], "sk" + "_live_" + letters[:20], "rk" + "_live_" + letters[:20],
		"sk" + "-ant-" + letters[:32], "123456789:AA" + letters[:33], "npm" + "_" + letters[:36], "eyJ" + letters[:12] + ".eyJ" + letters[:12] + "." + letters[:12],
		`Password = "` + letters[:12] + `"`, `passwd: '` + letters[:12] + `'`, `"client_secret": 1, secret="` + letters[:12] + `"`, `API_KEY="` + letters[:12] + `"`,
		`apikey="` + letters[:12] + `"`, `access_token="` + letters[:12] + `"`, `AccessToken="` + letters[:12] + `"`, `auth_token="` + letters[:12] + `"`, `authToken="` + letters[:12] + `"`,
	}
	fs, want := files{}, []string{}
	for i, secret := range secrets {
		name := fmt.Sprintf("%02d.txt", i)
		fs[name], want = far+secret+" "+far+"\n", append(want, "secret_like "+name)
	}
	var got []string
	for _, code := range codes(review(s, fs)) {
		if strings.HasPrefix(code, "secret_like ") {
			got = append(got, code)
		}
	}
	list(t, "found", got, want...)
}

// Scripts of a package.json that is too long to be read count as changed.
func TestALongPackageFileHidesNoScript(t *testing.T) {
	long := `{"name":"` + strings.Repeat("n", 1<<20) + `","scripts":{"a":"`
	s := given(t, files{"package.json": long + `b"}}`})
	r := review(s, files{"package.json": long + `c"}}`})
	list(t, "warnings", codes(r), "autorun package.json", "cut package.json", "large package.json")
}

// The bytes of the changed lines are measured; a card is shown by them.
func TestChangedLinesAreMeasured(t *testing.T) {
	s := given(t, files{"a.txt": "one\ntwo\nthree\n"})
	r := review(s, files{"a.txt": "one\n2\nthree\n", "b.txt": "\n"})
	equal(t, "a.txt", r.Files[0].Bytes, int64(len("two\n2\n")))
	equal(t, "b.txt", r.Files[1].Bytes, int64(1))
}

// Where two long lines differ is marked, from the first byte to the last.
func TestTheChangeInALongLineIsMarked(t *testing.T) {
	wide := strings.Repeat("ü, ", 40_000)
	lines := []patch.Line{{Kind: '-', Text: wide + "ä = 1; " + wide}, {Kind: '+', Text: wide + "ö = 1; " + wide}}
	patch.MarkWords(lines)
	for i, want := range []string{"ä", "ö"} {
		if s := lines[i].Spans; len(s) != 1 || lines[i].Text[s[0].Start:s[0].End] != want {
			t.Errorf("marked: %v", s)
		}
	}
	other := []patch.Line{{Kind: '-', Text: wide}, {Kind: '+', Text: strings.Repeat("quite another line ", 8000)}}
	patch.MarkWords(other)
	if other[1].Spans != nil {
		t.Errorf("two lines without anything in common: %v", other[1].Spans)
	}
}
