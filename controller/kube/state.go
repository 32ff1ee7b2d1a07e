package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrInUse is the error of Start for a state folder on which another API runs.
var ErrInUse = errors.New("in use")

// lockGrace is how long lock waits for another process to release the state folder. A
// process that was killed a moment ago releases its memory first and its files last.
const lockGrace = 2 * time.Second

// lock locks the state folder dir for this API. The kernel releases an flock when the
// process that holds it ends, however it ends, so there are no stale locks.
func lock(ctx context.Context, dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, lockGrace, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return false, nil
		}
		return err == nil, err
	})
	if err == nil {
		// unlock leaves the file: after a removal, two processes could lock two files.
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
		}
	} else if wait.Interrupted(err) && ctx.Err() == nil {
		pid, _ := io.ReadAll(io.LimitReader(f, 20)) // only for the error's text
		err = fmt.Errorf("%w by process %s", ErrInUse, pid)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("state folder %s: %w", dir, err)
	}
	return f.Close, nil
}

// maxSocketPath is the longest path in bytes of a Unix socket that every supported
// system can bind: on some, sun_path has 104 bytes with the final zero.
const maxSocketPath = 103

// socketDir creates the folder for etcd's sockets and returns its path. The folder is
// in the user's runtime folder, because the path of the state folder dir may be too long
// for a socket. Its name is a hash of dir.
func socketDir(dir string) (string, error) {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	sum := sha256.Sum256([]byte(dir))
	base := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "metalab")
	if !filepath.IsAbs(base) {
		base = filepath.Join(os.TempDir(), "metalab-"+strconv.Itoa(os.Getuid()))
	}
	folder := filepath.Join(base, hex.EncodeToString(sum[:8]))
	if n := len(clientSocket(folder)); n > maxSocketPath {
		return "", fmt.Errorf("socket %s: the path has %d bytes, the system allows %d: set XDG_RUNTIME_DIR to a shorter path",
			clientSocket(folder), n, maxSocketPath)
	}
	for _, d := range []string{base, folder} {
		if err := privateDir(d); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// privateDir creates dir with mode 0700. For an existing dir it checks owner and mode:
// every user can create folders in the temporary folder, and a client of etcd's socket
// bypasses the API's authentication and authorization.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("socket folder: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("socket folder: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || ok && int(st.Uid) != os.Getuid() || fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("socket folder %s must be a folder of this user with mode 0700, but is %s", dir, fi.Mode())
	}
	return nil
}

func clientSocket(folder string) string { return filepath.Join(folder, "client.sock") }
func peerSocket(folder string) string   { return filepath.Join(folder, "peer.sock") }

// listen opens the API's TCP port. For port 0 the system chooses one; listen stores it
// in dir and tries to open the same port the next time.
func listen(dir, address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	file := filepath.Join(dir, "port")
	if port == "0" {
		if last, err := os.ReadFile(file); err == nil {
			if ln, err := net.Listen("tcp", net.JoinHostPort(host, strings.TrimSpace(string(last)))); err == nil {
				return ln, nil
			}
		}
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if port == "0" {
		chosen := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
		if err := replaceFile(file, []byte(chosen+"\n")); err != nil {
			ln.Close()
			return nil, err
		}
	}
	return ln, nil
}

// reachable returns the address at which a client on this machine reaches a server that
// listens on ip.
func reachable(ip net.IP) net.IP {
	switch {
	case !ip.IsUnspecified():
		return ip
	case ip.To4() != nil:
		return net.IPv4(127, 0, 0, 1)
	default:
		return net.IPv6loopback
	}
}

// replaceFile writes a file with mode 0600 atomically: after kill -9 or a power cut the
// path has either the old contents or all of the new ones.
func replaceFile(path string, data []byte) error {
	part := path + ".part" // a fixed name, under the lock: a later call overwrites the file of a crashed one
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if st, statErr := os.Stat(path); err != nil && statErr == nil && st.IsDir() {
		return fmt.Errorf("%s is a directory: move it away: the API makes a file there", path)
	}
	if err != nil {
		return err
	}
	return nil
}

// readFile is os.ReadFile, but returns nil and no error for a file that does not exist.
// The contents of a file that exists are not nil: replaceFile leaves none that is empty,
// so an empty one is damaged.
func readFile(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: move it away", err)
	}
	return append([]byte{}, b...), nil
}
