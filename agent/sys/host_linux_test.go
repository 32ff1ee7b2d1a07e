package sys_test

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/hosttest"
)

func scratch(t *testing.T) (*sys.Host, string) {
	t.Helper()
	dir := t.TempDir()
	h, err := sys.OpenHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	return h, dir
}

func TestHost(t *testing.T) {
	machine, err := sys.OpenHost("/")
	if err != nil {
		t.Fatal(err)
	}
	below, _ := scratch(t)
	for _, tt := range []struct {
		name string
		host *sys.Host
		dir  func() string
	}{
		{"machine", machine, t.TempDir},
		{"scratch root", below, func() string { return "/root/" + rand(t) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hosttest.Files(t, tt.host, tt.dir())
			hosttest.Commands(t, tt.host, tt.dir())
			hosttest.ContextEndsCommand(t, tt.host, tt.dir())
		})
	}
}

func rand(t *testing.T) string {
	return filepath.Base(filepath.Dir(t.TempDir())) + filepath.Base(t.TempDir())
}

func TestNothingLeavesAScratchRoot(t *testing.T) {
	h, dir := scratch(t)
	outside := t.TempDir()
	for _, link := range []string{outside, "../" + filepath.Base(outside)} {
		if err := h.Put(sys.File{Name: "/out", Mode: fs.ModeSymlink, Link: link}); err != nil {
			t.Fatal(err)
		}
		if err := h.Put(sys.File{Name: "/out/file", Mode: 0o600}); err == nil {
			t.Errorf("Put wrote through the link to %s", link)
		}
		if err := h.Remove("/out/" + filepath.Base(dir)); err == nil {
			t.Errorf("Remove went through the link to %s", link)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside of the root: %v, %v", left, err)
	}
	if err := h.Put(sys.File{Name: "/../../up", Mode: 0o600}); err != nil {
		t.Errorf("Put: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "up")); err != nil {
		t.Errorf("a path above the root is not at the root: %v", err)
	}
	if err := h.Reboot(t.Context()); err == nil || !strings.Contains(err.Error(), "scratch root") {
		t.Errorf("Reboot error = %v, want a refusal", err)
	}
	if err := h.Remove("/"); err == nil {
		t.Error("Remove removed the root")
	}
	if code, err := h.Exec(t.Context(), sys.Command{Args: []string{"true"}, Dir: "/none"}); code != sys.CodeCannotRun || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Exec in a directory that does not exist = %d, %v", code, err)
	}
}

func TestPutThatFailsLeavesTheOldFile(t *testing.T) {
	h, dir := scratch(t)
	long := strings.Repeat("a", 240) // the temporary name is longer than file systems take
	if err := os.WriteFile(filepath.Join(dir, long), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Put(sys.File{Name: "/" + long, Mode: 0o600, Content: []byte("new")}); err == nil {
		t.Fatal("Put succeeded")
	}
	if names, err := h.ReadDir("/"); err != nil || !slices.Equal(names, []string{long}) {
		t.Errorf("ReadDir = %q, %v", names, err)
	}
	if got, err := h.ReadFile("/" + long); err != nil || string(got) != "old" {
		t.Errorf("the file is %q, %v, want the old one", got, err)
	}
}

func TestBootAndAddressesOfThisMachine(t *testing.T) {
	h, _ := scratch(t)
	b, err := h.Boot()
	if err != nil || len(b.ID) < 32 || b.Time.Before(time.Unix(1e9, 0)) {
		t.Errorf("Boot = %+v, %v", b, err)
	}
	addresses, err := h.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	if lo := addresses["lo"]; len(lo) > 0 && slices.ContainsFunc(lo, netip.Addr.IsLoopback) {
		t.Errorf("loopback addresses: %v", lo)
	}
}
