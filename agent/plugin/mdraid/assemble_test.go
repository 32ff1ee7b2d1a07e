package mdraid_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/sys/systest"
	"github.com/metalab-dev/metalab/scenarios/loopdisk"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// The kernel runs the agent's arrays: mdadm assembles the members of each level,
// also without one of them if the level permits that, and the array contains what
// was written through systest. The test needs root, loop devices and a kernel with
// the md driver.
func TestKernelRunsTheArrays(t *testing.T) {
	program := prerequisites.Need(t, "mdadm")
	needMd(t)
	t.Setenv("MDADM_NO_UDEV", "1") // without udev mdadm creates the device node itself
	for _, tt := range places {
		t.Run("level "+tt.level, func(t *testing.T) {
			s := newServer(t, 8, 8, 8, 8)
			s.create(spec, volume("root", tt.level, 4, s.members(tt.disks...)))
			b, err := s.OpenBlock("md127")
			if err != nil {
				t.Fatal(err)
			}
			var want []byte
			for c := range byte(8) {
				want = append(want, bytes.Repeat([]byte{'A' + c}, 512<<10)...)
			}
			if _, err := b.WriteAt(want, 0); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			var members []string
			for _, d := range tt.disks {
				members = append(members, loop(t, s.disks[d]))
			}
			runs(t, program, members, want)
			if tt.level != "0" {
				runs(t, program, members[1:], want)
			}
		})
	}
}

// runs assembles an array, reads its beginning, and stops it.
func runs(t *testing.T, program string, members []string, want []byte) {
	t.Helper()
	device := "/dev/md/metalab-" + rand.Text()[:8] // mdadm refuses the name of another
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("mdadm %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(append([]string{"--assemble", "--run", "--readonly", device}, members...)...)
	defer run("--stop", device)
	f, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d members hold something else (%v): %s", len(members), err, run("--detail", device))
	}
}

// needMd skips the test if the kernel lacks the md driver.
func needMd(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this kernel has no md driver for us: it takes root")
	}
	for _, module := range []string{"raid0", "raid1", "raid10"} {
		_ = exec.Command("modprobe", module).Run() // it may be built in
	}
	have, err := os.ReadFile("/proc/mdstat")
	if err != nil {
		t.Skipf("this kernel has no md driver: %v", err)
	}
	for _, level := range []string{"[raid0]", "[raid1]", "[raid10]"} {
		if !strings.Contains(string(have), level) {
			t.Skipf("this kernel has no md driver for %s", level)
		}
	}
}

// loop attaches the first member on a disk as a block device: the bytes behind its
// first partition, up to the end of the second.
func loop(t *testing.T, disk *systest.Memory) string {
	t.Helper()
	const off, head = 551 << 20, 10 << 20 // the superblock, and more than is read
	b := make([]byte, head)
	if _, err := disk.ReadAt(b, off); err != nil {
		t.Fatal(err)
	}
	device, err := loopdisk.Attach(t, disk.Size()-off-1<<20, b)
	if err != nil {
		t.Skipf("this kernel has no md driver that could be tried: %v", err)
	}
	return "/dev/" + device
}
