package patch

import (
	"context"
	"slices"
)

// checkSwell refuses a patch that is small as text and large as files, such as many copies
// of one file, before anything holds its content. Sizes are counted from the base tree:
// what a file was, and the lines that come and go.
func (r *Mirror) checkSwell(ctx context.Context, base map[string]entry, files []filePatch) error {
	var ids []string
	for _, f := range files {
		if e, ok := base[f.old]; ok && f.old != "" {
			ids = append(ids, e.id)
		}
	}
	slices.Sort(ids)
	sizes, err := r.sizes(ctx, slices.Compact(ids))
	if err != nil {
		return err
	}
	limits := r.home.opts.Limits
	var total int64
	for i := range files {
		f := &files[i]
		old := sizes[base[f.old].id]
		if f.old != "" && old > limits.FileBytes && len(f.hunks) > 0 {
			return refuse(CodeTooLarge, f.old, "A file that the patch changes is %d bytes long; %d is the limit.", old, limits.FileBytes)
		}
		if f.status == Deleted {
			continue
		}
		now := max(0, old) + f.grows()
		if now > limits.FileBytes {
			return refuse(CodeTooLarge, f.new, "%s would be %d bytes long; %d is the limit.", Shown(f.new), now, limits.FileBytes)
		}
		if total += max(0, now); total > limits.Bytes {
			return refuse(CodeTooLarge, "", "The patch brings more than %d kB, renamed and copied files counted whole; that is the limit. Split the task.", limits.Bytes>>10)
		}
	}
	return nil
}

// grows is how many bytes the hunks add; below 0 when they take more away.
func (f *filePatch) grows() int64 {
	var n int64
	for _, h := range f.hunks {
		for _, l := range h.lines {
			switch l.op {
			case '+':
				n += int64(len(l.text))
			case '-':
				n -= int64(len(l.text))
			}
		}
	}
	return n
}
