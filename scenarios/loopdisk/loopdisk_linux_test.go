package loopdisk

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const (
	dead = "/tmp/a/metalab-loop-ABCDEFGHIJKLMNOPQRSTUVWXYZ.img"
	live = "/tmp/b/metalab-loop-BBCDEFGHIJKLMNOPQRSTUVWXYZ.img"
)

// Arrays and devices of others, and of tests that run, are never left.
func TestLeftoversAreOfKilledTestsAlone(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	arrays, loops := leftovers(fstest.MapFS{
		"loop0/loop/backing_file": file(dead),
		"loop1/loop/backing_file": file(live),
		"loop2/loop/backing_file": file("/home/somebody/disk.img"),
		"loop3/loop/backing_file": file("/home/somebody/metalab-loop-x.img"),
		"loop4/loop/backing_file": file(strings.Replace(live, "/b/", "/c/", 1) + " (deleted)"),
		"loop5/size":              file("0"), // not attached
		"sda/size":                file("1"),
		"md127/slaves/loop0/x":    file(""),
		"md127/slaves/loop4/x":    file(""),
		"md126/slaves/loop0/x":    file(""),
		"md126/slaves/loop1/x":    file(""), // in use
		"md125/slaves/sda/x":      file(""),
		"md124/slaves/loop2/x":    file(""),
		"md123/size":              file("0"), // without members
	}, func(name string) bool { return name == dead })
	if diff := cmp.Diff([]string{"loop0", "loop4"}, loops); diff != "" {
		t.Errorf("loop devices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"md127"}, arrays); diff != "" {
		t.Errorf("arrays (-want +got):\n%s", diff)
	}
}

func TestAttachedFileIsADevice(t *testing.T) {
	var name, file string
	t.Run("attach", func(t *testing.T) {
		name = attach(t)
		file = backing(name)
		got := make([]byte, 4)
		f, err := os.Open("/dev/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(got, 0); err != nil || string(got) != "head" {
			t.Errorf("%s begins with %q, %v, want head", name, got, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if left, err := RemoveLeft(); slices.Contains(left, name) || err != nil {
			t.Errorf("RemoveLeft() = %v, %v, want %s untouched", left, err, name)
		}
	})
	if backing(name) == file && file != "" {
		t.Errorf("%s has %s after the test", name, file)
	}
}

// attach attaches a file. Where there are no loop devices, or only the superuser has them, nothing
// can be left.
func attach(t *testing.T) (name string) {
	t.Helper()
	name, err := Attach(t, 1<<20, []byte("head"))
	if err != nil {
		t.Skipf("no loop devices here: %v", err)
	}
	return name
}

// backing returns the file of a device; "": it has none.
func backing(name string) string {
	b, _ := os.ReadFile(filepath.Join("/sys/block", name, "loop/backing_file"))
	return strings.TrimSpace(string(b))
}

// killedEnv is set in the process that TestDevicesOfAKilledTestAreRemoved kills.
const killedEnv = "METALAB_TEST_KILLED"

// A killed test leaves its device where an array, or whoever else has it open, keeps it.
func TestDevicesOfAKilledTestAreRemoved(t *testing.T) {
	if os.Getenv(killedEnv) != "" {
		name := attach(t)
		f, err := os.OpenFile("/dev/"+name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		// The kernel keeps the device after its last user, as it does for an array.
		if err := unix.IoctlLoopSetStatus64(int(f.Fd()), &unix.LoopInfo64{}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(os.Getenv(killedEnv), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	attach(t) // else there are no loop devices here
	report := filepath.Join(t.TempDir(), "name")
	c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	c.Env = append(os.Environ(), killedEnv+"="+report, "TMPDIR="+t.TempDir())
	out, err := c.CombinedOutput()
	b, read := os.ReadFile(report)
	if err == nil || read != nil {
		t.Fatalf("the test was not killed: %v, %v:\n%s", err, read, out)
	}
	name := string(b)
	file := backing(name)
	if !strings.Contains(file, "metalab-loop-") {
		t.Fatalf("%s has the file %q: nothing is left to remove", name, file)
	}
	if left, err := RemoveLeft(); !slices.Contains(left, name) || err != nil {
		t.Errorf("RemoveLeft() = %v, %v, want %s", left, err, name)
	}
	if backing(name) == file {
		t.Errorf("%s has %s still", name, file)
	}
}
