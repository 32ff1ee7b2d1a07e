package prerequisites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// smallFileSystem returns "" when this user may mount a file system of a given size in a
// mount namespace, as smalldisk.Run does. unshare makes all mounts of the namespace
// private: nothing of them appears outside.
func smallFileSystem() (string, error) {
	return withTemporary(func(dir string) *exec.Cmd {
		args := []string{"--mount"}
		if os.Getuid() != 0 {
			args = append(args, "--map-root-user")
		}
		return exec.Command("unshare", append(args, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir)...)
	})
}

// networkNamespace returns the command that runs another in a network namespace of its own, whose
// loopback interface is down.
func networkNamespace() (string, error) {
	args := []string{"unshare", "--net"}
	if os.Getuid() != 0 {
		args = append(args, "--map-root-user")
	}
	if out, err := exec.Command(args[0], append(args[1:], "true")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return strings.Join(args, " "), nil
}

// preallocation returns "" when the file system of temporary files can allocate blocks of a
// file before they are written (fallocate(2)).
func preallocation() (string, error) {
	return withTemporary(func(dir string) *exec.Cmd {
		return exec.Command("fallocate", "--length", "4096", filepath.Join(dir, "file"))
	})
}

// withTemporary runs a command that is given an empty directory, and returns its failure
// with its output.
func withTemporary(command func(dir string) *exec.Cmd) (string, error) {
	dir, err := os.MkdirTemp("", "prerequisites")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if out, err := command(dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return "", nil
}

// overlayInNamespace returns "" when this user may mount an overlay of /usr in a user
// namespace, as guest/sandbox does.
func overlayInNamespace() (string, error) {
	return withTemporary(func(dir string) *exec.Cmd {
		const script = `cd "$0" && mkdir upper work root && mount -t overlay overlay -o lowerdir=/usr,upperdir="$0/upper",workdir="$0/work",userxattr root && touch root/x`
		return exec.Command("unshare", "--map-root-user", "--mount", "--pid", "--fork", "--net", "--uts", "--ipc", "sh", "-c", script, dir)
	})
}
