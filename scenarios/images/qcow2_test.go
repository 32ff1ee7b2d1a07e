package images

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/lima-vm/go-qcow2reader"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// disks returns raw disks to convert.
func disks(t testing.TB) map[string][]byte {
	noise := make([]byte, 3*qcowCluster+sectorSize) // ends within a cluster
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	return map[string][]byte{"demo": build(t), "noise": noise, "empty": make([]byte, megabyte), "nothing": nil}
}

func TestQCOW2ReadsBack(t *testing.T) {
	for name, raw := range disks(t) {
		t.Run(name, func(t *testing.T) {
			b, err := QCOW2(raw)
			if err != nil {
				t.Fatalf("QCOW2: %v", err)
			}
			f, err := os.Open(writeFile(t, "a.qcow2", b))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			img, err := qcow2reader.Open(f)
			if err != nil {
				t.Fatalf("qcow2reader.Open: %v", err)
			}
			got, err := io.ReadAll(io.NewSectionReader(img, 0, img.Size()))
			if err != nil || !bytes.Equal(got, raw) {
				t.Fatalf("read %d bytes back, %v: want the same %d bytes", len(got), err, len(raw))
			}
		})
	}
}

func TestQCOW2PassesQemuImgCheck(t *testing.T) {
	tool := prerequisites.Need(t, "qemu-img")
	for name, raw := range disks(t) {
		t.Run(name, func(t *testing.T) {
			b, err := QCOW2(raw)
			if err != nil {
				t.Fatalf("QCOW2: %v", err)
			}
			qcow, plain := writeFile(t, "a.qcow2", b), writeFile(t, "a.img", raw)
			for _, args := range [][]string{
				{"check", "-f", "qcow2", qcow},
				{"compare", "-f", "raw", "-F", "qcow2", plain, qcow},
			} {
				if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
					t.Errorf("qemu-img %s: %v\n%s", args[0], err, out)
				}
			}
		})
	}
}

func TestQCOW2RefusesPartialSectors(t *testing.T) {
	if _, err := QCOW2(make([]byte, 513)); err == nil {
		t.Error("QCOW2(513 bytes) = nil error, want one that asks for whole sectors")
	}
}
