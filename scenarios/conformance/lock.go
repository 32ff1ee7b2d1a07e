package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// LockFolder is the folder of the locks of all BMCs of this user.
func LockFolder() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "metalab", "conformance")
}

// Folder is where the journal and the reports of a BMC are, below the working directory,
// unless the user names another folder. The host may have a port.
func Folder(host string) string {
	return filepath.Join("conformance", strings.NewReplacer(":", "_", "[", "", "]", "").Replace(host))
}

// Lock makes sure that one run at a time uses a BMC. The file in dir stays; the
// lock ends with release, or with the process.
func Lock(dir, host string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := strings.NewReplacer("/", "_", ":", "_", "[", "", "]", "").Replace(host) + ".lock"
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &Refusal{fmt.Sprintf("another run uses the BMC at %s", host)}
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}
