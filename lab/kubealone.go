package lab

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/metalab-dev/metalab/emulator/rack/space"
)

// WatchKubeSpace checks that there is space for a Kubernetes API without servers in a state
// directory, and makes the watch of it. Its reserve is that of a lab with an API.
func WatchKubeSpace(dir string, log *slog.Logger) (*space.Watch, error) {
	return watchSpace(space.Config{Dir: dir, Reserve: kubeReserve, Ballast: kubeBallast, Log: log}, spaceOfKube(dir))
}

// KubeRuns reports whether a process runs the Kubernetes API of a state directory, alone or as
// a part of a lab.
func KubeRuns(dir string) bool {
	f, err := os.Open(filepath.Join(dir, KubeDir, "lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
