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

// ErrInUse is returned by Start for a state folder on which an API runs already.
var ErrInUse = errors.New("in use")

// lockGrace is how long lock waits for another process. One that was killed a
// moment ago takes some time to give back its memory, and its files come last.
const lockGrace = 2 * time.Second

// lock takes the state folder dir for this API alone. The kernel releases an
// flock with the process that holds it, however it ends, so there is no stale
// lock to clear.
func lock(ctx context.Context, dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("kube: state folder: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, lockGrace, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return false, nil
		}
		return err == nil, err
	})
	if err == nil {
		// The file stays: removing it would let two processes lock two files.
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
		}
	} else if wait.Interrupted(err) && ctx.Err() == nil {
		pid, _ := io.ReadAll(io.LimitReader(f, 20)) // only for the message
		err = fmt.Errorf("%w by process %s", ErrInUse, pid)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("kube: state folder %s: %w", dir, err)
	}
	return f.Close, nil
}

// maxSocketPath is the longest path of a socket that every system of ours binds:
// sun_path takes 104 bytes on some, with a final zero.
const maxSocketPath = 103

// socketDir makes the folder for etcd's sockets. It is not in the state folder,
// whose path may be too long for a socket, but in the user's runtime folder
// under a name that only this state folder has.
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
		return "", fmt.Errorf("kube: socket %s: a path of %d bytes, the system takes %d: point XDG_RUNTIME_DIR to a shorter one",
			clientSocket(folder), n, maxSocketPath)
	}
	for _, d := range []string{base, folder} {
		if err := privateDir(d); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// privateDir makes dir, or makes sure that nobody else has made it: the
// temporary folder is everybody's, and who speaks to etcd is past all of the
// API's checks.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("kube: socket folder: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("kube: socket folder: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !fi.IsDir() || ok && int(st.Uid) != os.Getuid() || fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("kube: socket folder %s must be a folder of ours with mode 0700, but is %s", dir, fi.Mode())
	}
	return nil
}

func clientSocket(folder string) string { return filepath.Join(folder, "client.sock") }
func peerSocket(folder string) string   { return filepath.Join(folder, "peer.sock") }

// listen opens the API's port. One that the system chose is remembered in dir
// and asked for again the next time.
func listen(dir, address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("kube: listen: %w", err)
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
		return nil, fmt.Errorf("kube: %w", err)
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

// reachable returns the address at which a client on this machine finds a
// server that listens on ip.
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

// replaceFile writes a file, for its owner only, that is there either whole or
// not at all, even after kill -9 and a power cut.
func replaceFile(path string, data []byte) error {
	part := path + ".part" // one name suffices under the lock, and leaves no litter
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("kube: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return fmt.Errorf("kube: %w", err)
	}
	return nil
}

// readFile is os.ReadFile, except that a file which is not there is empty.
func readFile(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("kube: %w", err)
	}
	return b, nil
}
