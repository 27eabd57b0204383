package patch

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alonePause is how long a landing waits before it asks for the folder again.
const alonePause = 20 * time.Millisecond

// alone waits until no other landing, of this process or of another node on this
// machine, moves the local source. receive-pack moves the files before the ref: of two
// at once the one that loses the ref would leave its files behind, and a folder that
// looks like somebody's uncommitted work. The lock is on the open folder, so nothing is
// written and none stays behind.
func (r *Mirror) alone(ctx context.Context) (release func(), err error) {
	if !r.repo.Local() {
		return func() {}, nil
	}
	f, err := os.Open(r.repo.Source)
	if err != nil {
		return func() {}, nil // what is wrong with the folder is said by who looks at it next
	}
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil, unix.ENOLCK, unix.EOPNOTSUPP: // a file system without locks: as good as it gets
			return func() { _ = f.Close() }, nil
		case unix.EWOULDBLOCK, unix.EINTR:
		default:
			_ = f.Close()
			return nil, fmt.Errorf("wait for other landings: %w", err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(alonePause):
		}
	}
}
