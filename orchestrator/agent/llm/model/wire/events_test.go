package wire

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestEventsOfAStream(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct{ name, stream, want string }{
		{"name and data", "event: a\ndata: 1\n\ndata: 2\n\n", "a=1\n|=2\n"},
		{"no space, Windows' lines", "event:a\r\ndata:1\r\n\r\n", "a=1\n"},
		{"only one space goes", "data:  1\n\n", "= 1\n"},
		{"data in two lines", "data: 1\ndata: 2\n\n", "=1\n2\n"},
		{"comments, ids, empty lines", "\n\n: hello\n\nid: 7\nretry: 3\n\ndata: 1\n\n", "=1\n"},
		{"a name alone", "event: a\n\ndata: 1\n\n", "a=|=1\n"},
		{"a field without a colon", "data\n\n", "=\n"},
		{"no end", "data: 1\n\ndata: 2\n", "=1\n"},
		{"a long line", "data: " + long + "\n\n", "=" + long + "\n"},
		{"nothing", "", ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(c.stream)) })) //nolint:errcheck // a test
		events, err := NewExchange(nil, 0).Post(t.Context(), s.URL, "x", http.Header{}, "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for events.Next() {
			got = append(got, events.Name()+"="+string(events.Data()))
		}
		if joined := strings.Join(got, "|"); joined != c.want || events.Err() != nil {
			t.Errorf("%s: %.80q, %v, want %.80q", c.name, joined, events.Err(), c.want)
		}
		events.Close() //nolint:errcheck // it was read
		s.Close()
	}
}

func TestPostGoesBelowTheBase(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path)
		w.Header().Set("X-Why", "full")
		http.Error(w, "no room", http.StatusTeapot)
	}))
	defer s.Close()
	for _, base := range []string{"", "/", "/v1", "/v1/", "/deep/er"} {
		_, err := NewExchange(nil, 0).Post(t.Context(), s.URL+base, "v9/say", http.Header{}, "")
		var said *Refused
		if !errors.As(err, &said) || said.Status != http.StatusTeapot || string(said.Body) != "no room\n" || said.Header.Get("X-Why") != "full" {
			t.Errorf("%q: %v, want what the service said", base, err)
		}
	}
	if want := []string{"POST /v9/say", "POST /v9/say", "POST /v1/v9/say", "POST /v1/v9/say", "POST /deep/er/v9/say"}; !slices.Equal(got, want) {
		t.Errorf("asked was %q, want %q", got, want)
	}
}

func TestValuesOfTheWrongType(t *testing.T) {
	var got struct {
		Text   Text
		Number Number
		Deep   struct{ A, B Number }
		List   []struct{ Text Text }
	}
	for _, c := range []struct {
		raw, text string
		number    Number
	}{
		{`{"Text":"a","Number":7}`, "a", Number{7, true}},
		{`{"Text":7,"Number":"7"}`, "7", Number{7, true}},
		{`{"Text":{"a":1},"Number":7.9}`, `{"a":1}`, Number{7, true}},
		{`{"Text":null,"Number":null}`, "", Number{}},
		{`{"Text":true,"Number":"many"}`, "true", Number{}},
		{`{"Deep":7,"Number":-3}`, "", Number{-3, true}},
		{`{"List":{},"Number":1e99}`, "", Number{1 << 62, true}},
		{`{"Deep":{"A":[],"B":2},"Number":"-1e999"}`, "", Number{-1 << 62, true}},
		{`{"Number":9223372036854775807}`, "", Number{math.MaxInt64, true}},
		{`{"Text":"\ud800","Number":"NaN"}`, "�", Number{}},
		{`[]`, "", Number{}},
	} {
		got.Text, got.Number = "", Number{}
		if err := Decode([]byte(c.raw), &got); err != nil || string(got.Text) != c.text || got.Number != c.number {
			t.Errorf("%s is %q and %+v, %v; want %q and %+v", c.raw, got.Text, got.Number, err, c.text, c.number)
		}
	}
	if got.Deep.B.N != 2 {
		t.Errorf("what stands behind a value of the wrong type is lost: %+v", got.Deep)
	}
	var syntax *json.SyntaxError
	if err := Decode([]byte(`{"Text":`), &got); !errors.As(err, &syntax) {
		t.Errorf("half an object is read: %v", err)
	}
}
