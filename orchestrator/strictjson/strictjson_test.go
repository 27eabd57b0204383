package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/strictjson"
)

// maxBody is what the largest door takes.
const maxBody = 1 << 20

func TestWhatIsReadTwoWaysIsNotReadAtAll(t *testing.T) {
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	for name, c := range map[string]struct{ body, why string }{
		"a key twice":                        {`{"a":1,"a":1}`, `"a" stands twice`},
		"a key twice, once escaped":          {`{"a":1,"\u0061":1}`, `"a" stands twice`},
		"keys that differ in case":           {`{"action":1,"Action":2}`, "case only"},
		"keys that differ in case, deeper":   {`{"x":[{"k":1,"K":2}]}`, "case only"},
		"keys that fold to the same":         {"{\"k\":1,\"\u212a\":2}", "case only"}, // the Kelvin sign
		"a long s":                           {"{\"s\":1,\"\u017f\":2}", "case only"},
		"broken surrogates as two keys":      {`{"\ud800":1,"\ud801":2}`, "stands twice"},
		"no UTF-8":                           {"{\"a\":\"\xff\"}", "not UTF-8"},
		"a mark in front":                    {"\ufeff{}", "not JSON"},
		"something behind":                   {`{} {}`, "more behind"},
		"something behind that is no JSON":   {`{}x`, "more behind"},
		"a list":                             {`[{}]`, "no JSON object"},
		"a text":                             {`"a"`, "no JSON object"},
		"nothing":                            {``, "ends too early"},
		"only a beginning":                   {`{"a":`, "ends too early"},
		"a trailing comma":                   {`{"a":1,}`, "not JSON"},
		"no colon":                           {`{"a" 1}`, "not JSON"},
		"a comment":                          {`{/* */}`, "not JSON"},
		"a control character in a text":      {"{\"a\":\"\n\"}", "not JSON"},
		"one level too deep":                 {deep(strictjson.MaxDepth), "nested deeper"},
		"100,000 levels":                     {deep(100_000), "nested deeper"},
		"100,000 levels without an end":      {strings.Repeat(`{"a":`, 100_000), "nested deeper"},
		"100,000 levels, and no JSON at all": {`{"a":` + strings.Repeat("[", 100_000), "nested deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := strictjson.Object([]byte(c.body))
			if !errors.Is(err, strictjson.Err) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %.80v, %v", got, err)
			}
		})
	}
}

func TestAPayloadIsReadWhole(t *testing.T) {
	got, err := strictjson.Object([]byte(` {"":{},"n":1000000,"f":0.5,"big":123456789012345678901234567890,"l":[null,true,[],""],"case":{"a":1,"b":{"A":2}},"t":"é\u00e9\n"} `))
	want := map[string]any{"": map[string]any{}, "n": 1000000, "f": 0.5, "big": 1.2345678901234568e29, "l": []any{nil, true, []any{}, ""},
		"case": map[string]any{"a": 1, "b": map[string]any{"A": 2}}, "t": "éé\n"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v", got, err)
	}
	if _, err := strictjson.Object([]byte(`{"a":` + strings.Repeat("[", strictjson.MaxDepth-1) + strings.Repeat("]", strictjson.MaxDepth-1) + "}")); err != nil {
		t.Errorf("as deep as it may be: %v", err)
	}
}

// A body of the largest size takes time in line with its length, whatever is in it.
func TestTheLargestBodiesTakeNoLong(t *testing.T) {
	many := func(piece string) []byte {
		return []byte(`{"x":[` + strings.TrimSuffix(strings.Repeat(piece+",", (maxBody-20)/(len(piece)+1)), ",") + `]}`)
	}
	var keys bytes.Buffer
	for i := 0; keys.Len() < maxBody-40; i++ {
		fmt.Fprintf(&keys, `"key%d":%d,`, i, i)
	}
	for name, body := range map[string][]byte{"numbers": many("1"), "objects": many("{}"), "lists": many("[]"), "objects with keys": many(`{"a":1,"b":2}`),
		"keys": []byte("{" + strings.TrimSuffix(keys.String(), ",") + "}"), "one text": []byte(`{"x":"` + strings.Repeat("x", maxBody-20) + `"}`),
		"escapes": []byte(`{"x":"` + strings.Repeat(`\u0041`, maxBody/6-10) + `"}`)} {
		began := time.Now()
		if _, err := strictjson.Object(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %d bytes in %s; the aim is an answer in under 100 ms", name, len(body), time.Since(began))
	}
}

// What is taken is JSON to everybody else, too, and means the same.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,"x",null,{"b":false}]}`, `{"a":1,"A":2}`, `{"a":1e400}`, `{"\u0000":""}`, `{"a":{},}`, `[]`, ` {"a" : -0.0} `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := strictjson.Object(body)
		if err != nil {
			if !errors.Is(err, strictjson.Err) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		var want map[string]any
		if err := json.Unmarshal(body, &want); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Fatalf("taken, and no JSON: %v", err)
		}
		if len(want) != len(got) {
			t.Errorf("%d keys, want %d", len(got), len(want))
		}
	})
}
