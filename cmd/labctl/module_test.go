package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
)

// A file in the way of an archive may be a disk's image: it is not read into memory.
func TestLargeFileIsNoModule(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sysctl-1.1.0.tgz")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 4*module.MaxArchive); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	made := isModule(name)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; made || got > module.MaxArchive {
		t.Errorf("a file of %d MiB: module %t, and %d MiB were allocated for it", 4*module.MaxArchive>>20, made, got>>20)
	}
	if _, err := readModule(t.Context(), name); err == nil || !strings.Contains(err.Error(), "an archive has 64 MiB at most") {
		t.Errorf("readModule() = %v", err)
	}
}
