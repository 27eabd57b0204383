package patch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/orchestrator/patch"
)

// BenchmarkHop is what one hop with a checkout costs: look at the source, check
// out, snapshot, validate, record, review.
func BenchmarkHop(b *testing.B) {
	source := filepath.Join(b.TempDir(), "src")
	git(b, "", "init", "-q", "-b", "main", source)
	fs := files{}
	for i := range 200 {
		fs[fmt.Sprintf("d%d/f%d.txt", i%10, i)] = fmt.Sprintf("%d\n", i)
	}
	commit(b, source, fs)
	m := patch.NewMirrors(b.TempDir(), patch.Options{}).Open(patch.Repository{Name: "app", Source: source, Branch: "main"})
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	must(m.Fetch(ctx))
	base, err := m.Branch(ctx, "")
	must(err)
	run := b.TempDir()
	n := 0
	for _, step := range []string{"fetch", "checkout", "snapshot", "validate", "record", "review", "hunks"} {
		dir := filepath.Join(run, "shared")
		_ = os.RemoveAll(dir)
		must(m.Checkout(ctx, base.Commit, "", dir))
		must(os.WriteFile(filepath.Join(dir, "d1/f1.txt"), []byte("changed\n"), 0o644))
		snap, err := m.Snapshot(ctx, dir, base.Tree)
		must(err)
		r, err := m.Review(ctx, base.Tree, snap.Tree)
		must(err)
		b.Run(step, func(b *testing.B) {
			for b.Loop() {
				n++
				switch step {
				case "fetch":
					must(m.Fetch(ctx))
				case "checkout":
					must(m.Checkout(ctx, base.Commit, "", filepath.Join(run, fmt.Sprint(n))))
				case "snapshot":
					_, err := m.Snapshot(ctx, dir, base.Tree)
					must(err)
				case "validate":
					must(m.Validate(ctx, base.Tree, snap.Tree, patch.Rules{}))
				case "record":
					_, err := m.Record(ctx, patch.RecordSpec{Key: "k", Base: base.Commit, Tree: snap.Tree, Title: "x", Delegation: "d", Agent: "a", At: at})
					must(err)
				case "review":
					_, err := m.Review(ctx, base.Tree, snap.Tree)
					must(err)
				case "hunks":
					_, err := m.Hunks(ctx, base.Tree, snap.Tree, r.Files[0], 3)
					must(err)
				}
			}
		})
	}
}
