package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// How much is remembered of what was shown, and how long.
const (
	keepReviewed = 30 * 24 * time.Hour
	maxReviewed  = 1000    // requests
	maxMemory    = 1 << 16 // bytes of one
)

// reviewed is what `gatehouse review` has shown of a request: a yes off a terminal counts
// for that alone.
type reviewed struct {
	Server   string    `json:"server"`
	Request  string    `json:"request"`
	Revision int       `json:"revision"`
	Digest   string    `json:"digest"`
	Codes    []string  `json:"codes"` // of the warnings that were shown
	At       time.Time `json:"at"`
}

// wasShown is what was shown of r.
func wasShown(sh *console.Shell, api *client.Client, r wire.Request) reviewed {
	return reviewed{Server: api.Base(), Request: r.ID, Revision: r.Revision, Digest: r.Digest, Codes: r.Codes(), At: sh.Now().UTC()}
}

// is reports whether r is still what was shown.
func (v reviewed) is(r wire.Request) bool { return v.Digest == r.Digest && v.Revision == r.Revision }

// memoryFile is the folder of what was shown, and the file in it that is about one request:
// each server and each person, by the hash of the token, has its own.
func memoryFile(sh *console.Shell, server, request string) (folder, file string, err error) {
	state, _ := sh.Env("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the field's rule: what is relative is ignored
		home, _ := sh.Env("HOME")
		if !filepath.IsAbs(home) {
			return "", "", errors.New("neither XDG_STATE_HOME nor HOME names a folder")
		}
		state = filepath.Join(home, ".local", "state")
	}
	token := sha256.Sum256([]byte(sh.Token))
	sum := sha256.Sum256([]byte(server + "\n" + hex.EncodeToString(token[:]) + "\n" + request))
	folder = filepath.Join(state, "gatehouse", "reviewed")
	return folder, filepath.Join(folder, hex.EncodeToString(sum[:20])+".json"), nil
}

// rememberShown keeps what was shown of r. That it cannot is no reason not to read.
func rememberShown(sh *console.Shell, api *client.Client, r wire.Request) {
	if err := keepShown(sh, wasShown(sh, api, r)); err != nil {
		sh.Hint("What was shown could not be remembered (%s). To approve it off a terminal, name it: gatehouse approve %s --digest %s", console.Line(err.Error()), console.Short(r.ID), console.Line(r.Digest))
	}
}

func keepShown(sh *console.Shell, v reviewed) error {
	folder, file, err := memoryFile(sh, v.Server, v.Request)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make the folder for it: %w", err)
	}
	if err := ours(folder); err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode it: %w", err)
	}
	f, err := os.CreateTemp(folder, ".new-*") // with the mode 0600
	if err != nil {
		return fmt.Errorf("write it: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write it: %w", err), os.Remove(f.Name()))
	}
	return forgetShown(sh, folder)
}

// ours refuses a folder into which others may write: what is remembered says what this
// person has read.
func ours(folder string) error {
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return fmt.Errorf("look at the folder for it: %w", err)
	case !info.IsDir() || info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write into %s", folder)
	}
	return nil
}

// forgetShown removes what is too old, and the oldest of too many.
func forgetShown(sh *console.Shell, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("look for what is too old: %w", err)
	}
	var kept []fs.FileInfo
	remove := func(name string) {
		if e := os.Remove(filepath.Join(folder, name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	for _, entry := range entries {
		info, e := entry.Info()
		switch {
		case e != nil: // another command removed it
		case sh.Now().Sub(info.ModTime()) > keepReviewed:
			remove(info.Name())
		default:
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, info := range kept[min(len(kept), maxReviewed):] {
		remove(info.Name())
	}
	return err
}

// recallShown is what was shown of a request to this person; false: nothing that counts.
func recallShown(sh *console.Shell, api *client.Client, request string) (reviewed, bool) {
	folder, file, err := memoryFile(sh, api.Base(), request)
	if err != nil || ours(folder) != nil {
		return reviewed{}, false
	}
	f, err := os.Open(file)
	if err != nil {
		return reviewed{}, false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMemory))
	var v reviewed
	if err != nil || json.Unmarshal(text, &v) != nil || v.Server != api.Base() || v.Request != request || v.Digest == "" || v.Revision < 1 {
		return reviewed{}, false
	}
	age := sh.Now().Sub(v.At)
	return v, age <= keepReviewed
}
