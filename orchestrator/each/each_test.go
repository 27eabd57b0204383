package each

import (
	"slices"
	"strconv"
	"testing"
)

func TestOf(t *testing.T) {
	if got := Of([]int{2, 1}, strconv.Itoa); !slices.Equal(got, []string{"2", "1"}) {
		t.Errorf("two items become %q", got)
	}
	if got := Of([]int{}, strconv.Itoa); got != nil {
		t.Errorf("no items become %q", got)
	}
}
