package kube

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// allocated returns how many bytes of the disk a file takes.
func allocated(path string) (int64, error) {
	var st syscall.Stat_t
	err := syscall.Stat(path, &st)
	return st.Blocks * 512, err
}

// etcd allocates its write-ahead log in advance.
func TestDiskUsageOfAnEmptyAPI(t *testing.T) {
	dir := t.TempDir()
	api := start(t, Config{Dir: dir})
	defer stop(t, api)
	used := int64(0)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		n, err := allocated(path)
		used += n
		return err
	})
	if err != nil || used > 32<<20 {
		t.Errorf("the state folder takes %d MB, %v, want at most 32", used>>20, err)
	}
}
