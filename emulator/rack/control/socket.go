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
	// socketLink is a symbolic link in the lab's directory to the socket. Clients
	// may have another environment than the lab.
	socketLink = "control.sock"
	// maxPath is below the limit of a unix socket's path (108 bytes on Linux, 104
	// elsewhere).
	maxPath = 100
)

// socketPath chooses the path of a lab's socket. The socket is not in the lab's
// directory, because that path may be too long.
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
	return "", fmt.Errorf("no place for a socket: %w", errors.Join(errs...))
}

// makePrivateDir makes a directory that only this user can enter, or checks an
// existing one: another user may have made it first in a shared directory.
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

// listen opens the socket of a lab that this process has open. An existing socket is
// from a lab that was killed.
func listen(dir string) (net.Listener, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	to := filepath.Join(dir, socketLink)
	if err = os.Remove(to); err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Symlink(path, to)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}
