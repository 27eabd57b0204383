package bot

import (
	"testing"
)

type keys struct {
	Section `yaml:"-" reload:"yes"`

	Token string   `yaml:"token"`
	Rooms []string `yaml:"rooms" reload:"yes"`
}

// A bot goes on with what follows a reload; for any other key it has to be started again.
func TestSectionsThatAreTheSameAtTheStart(t *testing.T) {
	was := &keys{Token: "a", Rooms: []string{"1"}}
	for name, c := range map[string]struct {
		is   Section
		same bool
	}{
		"as before":          {&keys{Token: "a", Rooms: []string{"1"}}, true},
		"other rooms":        {&keys{Token: "a", Rooms: []string{"2"}}, true},
		"another token":      {&keys{Token: "b", Rooms: []string{"1"}}, false},
		"not there any more": {nil, false},
	} {
		if SameAtStart(was, c.is) != c.same || SameAtStart(c.is, was) != c.same {
			t.Errorf("%s: same is %v", name, !c.same)
		}
	}
	if !SameAtStart(nil, nil) {
		t.Error("a bot that was never there has changed")
	}
}
