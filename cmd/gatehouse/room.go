package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/orchestrator/agent"
)

const (
	// noRoom is where a disk counts as full, in bytes: a checkout or a page of the database
	// may not fit any more.
	noRoom = 32 << 20
	// littleRoom deserves a look.
	littleRoom = 1 << 30
	// noFiles is how many more files a disk must take.
	noFiles = 1000
)

// spot is a folder that the server writes to.
type spot struct{ name, dir string }

// spots are all of them; several may be on one disk.
func spots(cfg *config.Config) []spot {
	all := []spot{{"data folder", cfg.Data}, {"runs", filepath.Join(cfg.Data, "runs")}, {"mirrors", filepath.Join(cfg.Data, "mirrors")}, {"temporary files", os.TempDir()}}
	if file, ok := strings.CutPrefix(cfg.Database, "sqlite:"); ok {
		all = append(all, spot{"database", filepath.Dir(file)})
	}
	return all
}

// room is what a folder's disk has left.
type room struct {
	device uint64
	bytes  int64
	files  int64 // -1: as many as there is room for
}

// roomAt looks at dir or, where it is not there yet, at the folder that it would be made in.
func roomAt(dir string) (room, error) {
	var st unix.Statfs_t
	var at unix.Stat_t
	for {
		err := errors.Join(unix.Statfs(dir, &st), unix.Stat(dir, &at))
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return room{}, fmt.Errorf("look at the disk of %s: %w", dir, err)
		}
		dir = filepath.Dir(dir)
	}
	r := room{device: uint64(at.Dev), bytes: int64(st.Bavail) * st.Bsize, files: -1} //nolint:unconvert // not the same type everywhere
	if st.Files > 0 {
		r.files = int64(st.Ffree)
	}
	return r, nil
}

// full says in what way a disk is full, "" when it is not.
func (r room) full() string {
	switch {
	case r.bytes < noRoom:
		return agent.Size(r.bytes) + " are left"
	case r.files >= 0 && r.files < noFiles:
		return fmt.Sprintf("%d more files fit", r.files)
	}
	return ""
}

// roomForWork is an error when a disk that the server writes to is full.
func roomForWork(cfg *config.Config) error {
	for _, p := range spots(cfg) {
		r, err := roomAt(p.dir)
		if err != nil {
			return err
		}
		if why := r.full(); why != "" {
			return fmt.Errorf("the disk of %s (%s) is full: %s", p.dir, p.name, why)
		}
	}
	return nil
}

// ready is what /readyz asks.
func (h *house) ready(ctx context.Context) error {
	if err := errors.Join(h.store.Ping(ctx), roomForWork(h.cfg)); err != nil {
		return err
	}
	why, older, err := h.behind(ctx)
	if older { // whoever rolls it out stops here; a node that others overtook is about to load the same
		err = errors.New(why)
	}
	return err
}

// checkRoom has one finding for each disk.
func checkRoom(cfg *config.Config) []finding {
	var all []finding
	var seen []uint64
	for _, p := range spots(cfg) {
		r, err := roomAt(p.dir)
		if err != nil {
			all = append(all, finding{"disk", odd, err.Error()})
			continue
		}
		if slices.Contains(seen, r.device) {
			continue
		}
		seen = append(seen, r.device)
		switch why := r.full(); {
		case why != "":
			all = append(all, finding{"disk", broke, fmt.Sprintf("The disk of %s (%s) is full: %s. Make room there.", p.dir, p.name, why)})
		case r.bytes < littleRoom:
			all = append(all, finding{"disk", odd, fmt.Sprintf("The disk of %s (%s) has %s left. Make room soon.", p.dir, p.name, agent.Size(r.bytes))})
		default:
			all = append(all, finding{"disk", fine, fmt.Sprintf("%s has %s left", p.dir, agent.Size(r.bytes))})
		}
	}
	return all
}
