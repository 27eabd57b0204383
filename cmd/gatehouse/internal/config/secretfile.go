package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxSecret is the most that a file named by ${file:PATH} may have, in bytes.
const maxSecret = 64 << 10

// readSecret reads the text of a file without its last line ends. The warning says who else
// may read or write it. It never waits: a pipe is refused.
func readSecret(path string) (text, warning string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", fmt.Errorf("the file %s is not there. Make it, or name another one", path)
	case errors.As(err, &at):
		return "", "", fmt.Errorf("the file %s cannot be read: %w. Let this user read it", path, at.Err)
	case err != nil:
		return "", "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", "", err
	}
	if !info.Mode().IsRegular() {
		return "", "", fmt.Errorf("%s is no plain file. Name a file with the value in it", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", "", fmt.Errorf("the file %s cannot be read: %w", path, err)
	case len(b) > maxSecret:
		return "", "", fmt.Errorf("the file %s has more than %d kB. Name one with the value alone", path, maxSecret>>10)
	case !utf8.Valid(b) || strings.ContainsRune(string(b), 0):
		return "", "", fmt.Errorf("the file %s is no text. Name one with the value alone", path)
	}
	text = strings.TrimRight(string(b), "\r\n")
	if text == "" {
		return "", "", fmt.Errorf("the file %s is empty. Write the value into it", path)
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		warning = fmt.Sprintf("the file %s can be changed by others of this machine. Run: chmod 600 %s", path, path)
	case mode&0o004 != 0:
		warning = fmt.Sprintf("the file %s can be read by everybody on this machine. Run: chmod 600 %s", path, path)
	}
	return text, warning, nil
}
