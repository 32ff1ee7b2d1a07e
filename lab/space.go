package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// Space on the disk, in bytes.
const (
	// reserve stays free: below it, clients' changes are refused.
	reserve = 16 << 20
	// kubeReserve is the reserve with a Kubernetes API of the lab's own, whose etcd must
	// be able to write in any case.
	kubeReserve = 48 << 20
	// kubeBallast is let go when the reserve is used up: two files of etcd's log fit in.
	kubeBallast = 16 << 20
	// kubeSpace is the size of a new Kubernetes API on disk, in bytes.
	kubeSpace = 32 << 20
	// hostSpace is the size of a new server on disk, in bytes.
	hostSpace = 16 << 10
)

// watchSpace checks that there is space for the lab, and makes the watch of it.
func (l *Lab) watchSpace() (err error) {
	c := space.Config{Dir: l.cfg.Dir, Reserve: reserve, Log: l.cfg.Log}
	need := int64(0)
	if l.cfg.Settings.Kube && l.cfg.Settings.Kubeconfig == "" {
		c.Reserve, c.Ballast = kubeReserve, kubeBallast
		need += spaceOfKube(l.cfg.Dir)
	}
	if !fileExists(filepath.Join(l.cfg.Dir, ImagesDir, images.DemoRaw)) {
		need += images.DemoSpace
	}
	if !fileExists(filepath.Join(l.cfg.Dir, settingsFile)) {
		definition := l.cfg.Settings.Definition()
		need += int64(definition.Len()) * hostSpace
	}
	l.space, err = watchSpace(c, need)
	return err
}

// spaceOfKube returns the number of bytes that the Kubernetes API in a state directory needs
// in addition to its files.
func spaceOfKube(dir string) int64 {
	if fileExists(filepath.Join(dir, KubeDir, "etcd")) {
		return 0
	}
	return kubeSpace
}

// watchSpace makes a watch. It fails unless need bytes are free besides the watch's reserve.
func watchSpace(c space.Config, need int64) (*space.Watch, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := space.Require(c.Dir, need+c.Reserve+c.Ballast-space.Held(c.Dir)); err != nil {
		return nil, fmt.Errorf("%w (or name a directory on another file system with --state)", err)
	}
	w := space.New(c)
	w.Look()
	return w, nil
}

func fileExists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil || !os.IsNotExist(err)
}
