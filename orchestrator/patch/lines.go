package patch

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// LineCounts counts the lines of contents by their ids, -1 for one that has more than max
// bytes. One process reads them all.
func (r *Mirror) LineCounts(ctx context.Context, ids []string, max int64) ([]int, error) {
	if err := checkIDs(ids...); err != nil {
		return nil, err
	}
	counts := make([]int, len(ids))
	err := r.blobs(ctx, ids, func(i int, size int64, content io.Reader) error {
		if counts[i] = -1; size > max {
			return nil
		}
		n, err := countLines(content)
		counts[i] = n
		return err
	})
	return counts, err
}

// countLines counts a last line without a line feed, too.
func countLines(content io.Reader) (int, error) {
	buf := make([]byte, 32<<10)
	n, last := 0, byte('\n')
	for {
		got, err := content.Read(buf)
		if got > 0 {
			n += bytes.Count(buf[:got], []byte{'\n'})
			last = buf[got-1]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
	}
	if last != '\n' {
		n++
	}
	return n, nil
}
