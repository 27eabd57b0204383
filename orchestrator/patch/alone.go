package patch

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// How long a landing waits before it asks for the folder again, and after which time it
// gives its place to others and says so: a push may hang in a filter of the people's own.
const (
	alonePause = 20 * time.Millisecond
	aloneTime  = time.Minute
)

// alone waits until no other landing, of this process or of another node on this
// machine, moves the local source. receive-pack moves the files before the ref: of two
// at once the one that loses the ref would leave its files behind, and a folder that
// looks like somebody's uncommitted work. The lock is on the open folder, so nothing is
// written and none stays behind. A push gets the folder that is held: git outlives a
// server that is killed, and the lock lasts until both have let go. nil is held by nobody.
func (r *Mirror) alone(ctx context.Context) (held *os.File, release func(), err error) {
	if !r.repo.Local() {
		return nil, func() {}, nil
	}
	f, err := os.Open(r.repo.Source)
	if err != nil {
		return nil, func() {}, nil // what is wrong with the folder is said by who looks at it next
	}
	limit := time.After(aloneTime)
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil, unix.ENOLCK, unix.EOPNOTSUPP: // a file system without locks: as good as it gets
			return f, func() { _ = f.Close() }, nil
		case unix.EWOULDBLOCK, unix.EINTR:
		default:
			_ = f.Close()
			return nil, nil, fmt.Errorf("wait for other landings: %w", err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, nil, context.Cause(ctx)
		case <-limit:
			_ = f.Close()
			return nil, nil, r.source(SourceUnreachable, nil, "%s is busy: another landing still moves its folder. The approval stands.", r.repo.Name)
		case <-time.After(alonePause):
		}
	}
}
