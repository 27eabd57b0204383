package views

import "gatehouse/orchestrator/agent"

// HintWords are what the server of a tool says of it.
func HintWords(h agent.Hints) []string {
	var words []string
	say := func(hint *bool, yes, no string) {
		switch {
		case hint == nil:
		case *hint:
			words = append(words, yes)
		default:
			words = append(words, no)
		}
	}
	say(h.ReadOnly, "only reads", "changes things")
	say(h.Destructive, "may destroy something", "destroys nothing")
	say(h.OpenWorld, "reaches the world outside", "stays inside its system")
	return words
}
