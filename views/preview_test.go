package views_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/static"
)

// TestWritePages renders every page to files, as a browser would get them. With
// GATEHOUSE_SHOTS set they go to that folder, for people who want to look.
func TestWritePages(t *testing.T) {
	dir := os.Getenv("GATEHOUSE_SHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	for name, page := range pages() {
		f, err := os.Create(filepath.Join(dir, name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		if err := page.Render(context.Background(), f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tokens.css", "app.css", "pages.css", "review.css", "audit.css", "audit.js", "theme.js", "morph.js", "live.js", "app.js", "review.js", "insight.css", "trace.css", "trace.js", "parts.js", "converse.js", "insight.js", "vendor/uPlot.iife.min.js", "vendor/uPlot.min.css", "vendor/htmx.min.js", "favicon-wait.svg"} {
		body, ok := static.File(name)
		if !ok {
			t.Errorf("static file %s is missing", name)
			continue
		}
		path := filepath.Join(dir, "static", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
