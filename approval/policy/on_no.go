package policy

import "fmt"

// What may happen when people do not say yes to a hand-over (H18).
const (
	TellCaller = "tell" // its caller reads it as data, and goes on; what holds where nothing is said
	EndTask    = "end"  // the whole task ends with it
)

// CheckOnNo returns a sentence about what is wrong with a setting on_no.
func CheckOnNo(s string) error {
	if s != "" && s != TellCaller && s != EndTask {
		return fmt.Errorf("on_no is %q. Write end, so that a no ends the task, or tell, so that the caller reads it and goes on", s)
	}
	return nil
}
