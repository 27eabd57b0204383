package console

import (
	"testing"
	"time"
)

func TestLengthsHaveTwoUnitsAtMost(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 ms", 40 * time.Millisecond: "40 ms", 59 * time.Second: "59 s", 372 * time.Second: "6 min 12 s",
		time.Hour: "1 h", 71 * time.Hour: "2 d 23 h", 24 * 90 * time.Hour: "90 d",
	} {
		if got := Length(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 9400: "9.4k", 150000: "150k", 2_500_000: "2.5M"} {
		if got := Tokens(n); got != want {
			t.Errorf("%d tokens are %q, want %q", n, got, want)
		}
	}
}
