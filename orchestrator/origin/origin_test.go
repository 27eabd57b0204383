package origin_test

import (
	"encoding/json"
	"testing"

	"gatehouse/orchestrator/origin"

	"pgregory.net/rapid"
)

// Every form that was ever stored reads as what it meant, and is written as it was.
func TestEveryStoredFormReads(t *testing.T) {
	for text, want := range map[string]struct {
		from  origin.Origin
		words string
	}{
		"":                    {origin.Origin{}, ""},
		"web":                 {origin.From(origin.Web), "on the web"},
		"chat":                {origin.From(origin.Chat), "in chat"},
		"telegram":            {origin.From(origin.Telegram), "on Telegram"},
		"cli":                 {origin.From(origin.CLI), "on the command line"},
		"api":                 {origin.From(origin.API), "through the API"},
		"revert":              {origin.From(origin.Revert), "on revert"},
		"webhook":             {origin.From(origin.Webhook), "on webhook"},
		"webhook ci-failed":   {origin.Trigger(origin.Webhook, "ci-failed"), "by webhook ci-failed"},
		"schedule each night": {origin.Trigger(origin.Schedule, "each night"), "by schedule each night"},
		"webhook ":            {origin.From("webhook "), "on webhook "},
		"carrier pigeon":      {origin.From("carrier pigeon"), "on carrier pigeon"},
	} {
		if got := origin.Parse(text); got != want.from || got.Words() != want.words || got.String() != text {
			t.Errorf("%q reads as %+v, %q, and is written %q", text, got, got.Words(), got)
		}
	}
}

// What is published and stored in JSON is the text, nothing is lost on the way, and an
// empty one is left out where it was.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`(web|webhook|schedule) ?[a-z ]*`)).Draw(t, "text")
		type row struct {
			Via origin.Origin `json:"via,omitzero"`
		}
		was, err := json.Marshal(struct {
			Via string `json:"via,omitempty"`
		}{text})
		if err != nil {
			t.Fatal(err)
		}
		var read row
		if err := json.Unmarshal(was, &read); err != nil {
			t.Fatal(err)
		}
		if is, err := json.Marshal(read); err != nil || string(is) != string(was) {
			t.Fatalf("%s became %s: %v", was, is, err)
		}
	})
}
