package control

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// socketLink, in the state directory, leads to the socket: a client may have
	// another environment than the lab.
	socketLink = "control.sock"
	// maxPath is safely below what a unix socket's address holds (108 bytes
	// on Linux, 104 elsewhere).
	maxPath = 100
)

// socketPath chooses where the socket of the lab in a directory is. It is not
// in that directory, whose path may be too long.
func socketPath(dir string) (string, error) {
	name := fmt.Sprintf("%x.sock", sha256.Sum256([]byte(dir)))[48:]
	places := []string{filepath.Join(os.TempDir(), fmt.Sprintf("metalab-%d", os.Getuid())), fmt.Sprintf("/tmp/metalab-%d", os.Getuid())}
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		places = append([]string{filepath.Join(run, "metalab")}, places...)
	}
	var errs []error
	for _, p := range places {
		path := filepath.Join(p, name)
		if len(path) > maxPath {
			errs = append(errs, fmt.Errorf("%s is longer than %d bytes", path, maxPath))
			continue
		}
		if err := makePrivateDir(p); err != nil {
			errs = append(errs, err)
			continue
		}
		return path, nil
	}
	return "", fmt.Errorf("control: no place for a socket: %w", errors.Join(errs...))
}

// makePrivateDir makes a directory that nobody else can enter, or finds one: in a
// directory for all, another user may have been first.
func makePrivateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a directory of this user alone (mode 0700)", dir)
	}
	return nil
}

// listen opens the socket of the lab that this process holds. One that is there
// already is of a lab that was killed.
func listen(dir string) (net.Listener, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("control: %w", err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	to := filepath.Join(dir, socketLink)
	if err = os.Remove(to); err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Symlink(path, to)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control: %w", err), ln.Close())
	}
	return ln, nil
}
