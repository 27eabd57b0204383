package views_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gatehouse/static"
)

// palettes reads the custom properties of each theme from the stylesheet: light, dark
// by the system's wish, dark by choice.
func palettes(t *testing.T) map[string]map[string]string {
	t.Helper()
	css, ok := static.File("tokens.css")
	if !ok {
		t.Fatal("tokens.css is missing")
	}
	blocks := map[string]string{"light": ":root {", "dark by the system": `:root:not([data-theme="light"]) {`, "dark by choice": `:root[data-theme="dark"] {`}
	property := regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6})`)
	out := map[string]map[string]string{}
	for theme, selector := range blocks {
		_, rest, found := strings.Cut(string(css), selector)
		if !found {
			t.Fatalf("no block %q", selector)
		}
		body, _, _ := strings.Cut(rest, "}")
		out[theme] = map[string]string{}
		for _, m := range property.FindAllStringSubmatch(body, -1) {
			out[theme][m[1]] = m[2]
		}
	}
	return out
}

// luminance and contrast follow WCAG 2.2.
func luminance(hex string) float64 {
	channel := func(s string) float64 {
		n, _ := strconv.ParseUint(s, 16, 8)
		v := float64(n) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(hex[1:3]) + 0.7152*channel(hex[3:5]) + 0.0722*channel(hex[5:7])
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestContrast holds text to 4.5 and control edges and icons to 3, on every surface they stand on.
func TestContrast(t *testing.T) {
	surfaces := []string{"bg", "surface", "raised", "sunken"}
	diff := []string{"add-line", "add-word", "del-line", "del-word"}
	type pair struct {
		fg   string
		bgs  []string
		want float64
	}
	pairs := []pair{
		{"text", append(append([]string{"run-bg", "wait-bg", "bad-bg"}, surfaces...), diff...), 4.5},
		{"muted", append([]string{"add-line", "del-line"}, surfaces...), 4.5},
		{"accent", append([]string{"wait-bg"}, surfaces...), 4.5},
		{"control", surfaces[:3], 3},
		{"on-accent", []string{"accent"}, 4.5},
		{"approve-text", []string{"approve-fill"}, 4.5},
		{"reject-text", []string{"reject-fill"}, 4.5},
	}
	for _, role := range []string{"wait", "run", "ok", "bad", "special", "neutral"} {
		pairs = append(pairs, pair{role + "-fg", append([]string{role + "-bg"}, surfaces...), 4.5})
	}
	for _, c := range "ksmntc" {
		pairs = append(pairs, pair{fmt.Sprintf("code-%c", c), append([]string{"bg", "raised"}, diff...), 4.5})
	}
	for theme, colours := range palettes(t) {
		for _, p := range pairs {
			for _, bg := range p.bgs {
				if colours[p.fg] == "" || colours[bg] == "" {
					t.Errorf("%s: %s or %s is not defined", theme, p.fg, bg)
					continue
				}
				if got := contrast(colours[p.fg], colours[bg]); got < p.want {
					t.Errorf("%s: %s on %s is %.2f, wants %.1f", theme, p.fg, bg, got, p.want)
				}
			}
		}
	}
}

func TestBothDarkThemesAreTheSame(t *testing.T) {
	all := palettes(t)
	if fmt.Sprint(all["dark by the system"]) != fmt.Sprint(all["dark by choice"]) {
		t.Error("the dark theme differs between the system's wish and the reader's choice")
	}
}
