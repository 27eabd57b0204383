package agent

import (
	"fmt"
	"strconv"
)

// Hops reads the values of HopsHeader: how many hand-overs between systems led to a request,
// at whatever door it comes. Without the header it is 0.
func Hops(values []string) (int, error) {
	if len(values) == 0 {
		return 0, nil
	}
	n, err := strconv.Atoi(values[0])
	if len(values) > 1 || err != nil || n < 0 || n > 1000 {
		return 0, fmt.Errorf("the header %s is not understood: send it once, with a number from 0 to 1000", HopsHeader)
	}
	return n, nil
}
