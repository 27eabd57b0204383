package views

import (
	"testing"
	"time"
)

func TestVisibleNamesWhatCannotBeSeen(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 漢 🙂":      "plain ä 漢 🙂",
		"a\u202Eb":         "a⟦U+202E⟧b",
		"\u2066x\u2069":    "⟦U+2066⟧x⟦U+2069⟧",
		"zero\u200Bwidth":  "zero⟦U+200B⟧width",
		"\x1b[31m":         "⟦U+001B⟧[31m",
		"nul\x00":          "nul⟦U+0000⟧",
		"bad\xffbyte":      "bad⟦0xFF⟧byte",
		"real \uFFFD mark": "real \uFFFD mark",
		"tag\U000E0041":    "tag⟦U+E0041⟧",
		"tab\tand\nline":   "tab\tand\nline",
		"cr\r\n":           "cr⟦U+000D⟧\n",
		"thin\u2009space":  "thin⟦U+2009⟧space",
	} {
		if got := VisibleText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		38 * time.Second: "38 s", 6*time.Minute + 12*time.Second: "6 min 12 s", 21 * time.Hour: "21 h", 71 * time.Hour: "2 d 23 h", 400 * time.Millisecond: "400 ms", 1200 * time.Millisecond: "1.2 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := ShortID("tsk_01k9m2c8w5q3z7x4v6b8n7f3k9q"); got != "tsk_…7f3k9q" {
		t.Errorf("short id %q", got)
	}
	if got := (Usage{}).Words(); got != "usage not reported" {
		t.Errorf("an unknown usage reads %q", got)
	}
	if got := (Usage{Reported: true, Tokens: 9400}).Words(); got != "9.4k tokens · cost not reported" {
		t.Errorf("an unknown cost reads %q", got)
	}
	if got := Thousands(-1234567); got != "−1,234,567" {
		t.Errorf("thousands %q", got)
	}
}
