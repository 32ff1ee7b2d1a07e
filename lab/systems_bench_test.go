package lab

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// BenchmarkSystems boots 1,000 servers from their disks, and then writes 20 files of 1 KiB
// in each. The floor is the same power-on from empty disks: servers without an operating
// system. One operation is all servers. It fails where a booted server takes more than 64 KiB of
// heap, or the lab with all of them more than 300 MB of memory.
func BenchmarkSystems(b *testing.B) {
	const (
		hosts, files = 1000, 20
		mostHeap     = 64 << 10
		mostMemory   = 300e6
	)
	for b.Loop() {
		b.StopTimer()
		floor := measureSystems(b, hosts, 0, false)
		b.StartTimer()
		m := measureSystems(b, hosts, files, true)
		b.ReportMetric(float64(m.heap-floor.heap)/hosts/1024, "KiB-heap/system")
		b.ReportMetric(float64(m.resident)/1e6, "MB-resident")
		if each := (m.heap - floor.heap) / hosts; each > mostHeap {
			b.Errorf("a booted server takes %d bytes of heap, more than %d", each, mostHeap)
		}
		if m.resident > mostMemory {
			b.Errorf("a lab with %d booted servers takes %d bytes of memory, more than %.0f", hosts, m.resident, mostMemory)
		}
		b.ReportMetric(float64(m.goroutines-floor.goroutines)/hosts, "goroutines/system")
		b.ReportMetric(float64(m.descriptors-floor.descriptors), "descriptors")
		b.ReportMetric(float64(m.mounts-floor.mounts), "mounts")
		b.ReportMetric(float64(m.disk)/1e6, "MB-disk")
		b.ReportMetric(m.boot.Seconds(), "s-boot")
		b.ReportMetric(floor.boot.Seconds(), "s-floor")
		b.ReportMetric(0, "ns/op") // most of it is the start of labs
	}
}

// systemCosts are the costs of servers that run.
type systemCosts struct {
	heap, disk                      int64 // bytes that running and storing files add
	resident                        int64 // bytes of memory of this process, once all run
	goroutines, descriptors, mounts int
	boot                            time.Duration
}

// measureSystems starts a lab and switches its servers on.
func measureSystems(b *testing.B, hosts, files int, bootable bool) (out systemCosts) {
	cfg := Config{Dir: b.TempDir(), Settings: Settings{Hosts: hosts, Speed: "max"}, Listen: AnyPort}
	w, err := Start(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			b.Error(err)
		}
	}()
	image, err := images.Build()
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for _, h := range w.rack.Hosts() {
		names = append(names, h.Name())
		if bootable {
			writeImage(b, h, image)
		}
	}
	before := collect()
	began := time.Now()
	if err := w.Control().PowerAll(b.Context(), names, "On", func(control.Powered) {}); err != nil {
		b.Fatal(err)
	}
	for _, h := range w.rack.Hosts() {
		err := wait.PollUntilContextTimeout(b.Context(), 10*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
			if !bootable {
				return h.Machine().Phase == machine.Halted, nil
			}
			_, err := w.agents.systems.of(ctx, h)
			return err == nil, nil
		})
		if err != nil {
			b.Fatalf("%s does not boot: %v, phase %v", h.Name(), err, h.Machine().Phase)
		}
	}
	out.boot = time.Since(began)
	out.heap, out.goroutines = collect()-before, runtime.NumGoroutine()
	out.resident = resident(b)
	out.descriptors, out.mounts = count(b, "/proc/self/fd"), lines(b, "/proc/self/mounts")
	if !bootable {
		return out
	}
	stored := usage(b, cfg.Dir)
	random := rand.NewChaCha8([32]byte{}) // incompressible
	for _, h := range w.rack.Hosts() {
		x, err := w.agents.systems.of(b.Context(), h)
		if err != nil {
			b.Fatal(err)
		}
		t, content := sandbox.Tree{}, make([]byte, 1024)
		for i := range files {
			_, _ = random.Read(content)
			t[fmt.Sprintf("etc/app/%d", i)] = sandbox.File(0o644, string(content))
		}
		if err := x.Put(t); err != nil {
			b.Fatal(err)
		}
	}
	out.disk = usage(b, cfg.Dir) - stored
	return out
}

// collect returns the bytes of the heap that are in use.
func collect() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// resident returns the memory of this process after the free part of the heap is returned.
func resident(b *testing.B) int64 {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm") // proc(5): in pages
	if err != nil {
		b.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// writeImage writes the image to the first disk of a server, with holes for zeros.
func writeImage(b testing.TB, h *rack.Host, image []byte) {
	b.Helper()
	m, err := h.Medium(h.Drives()[0].ID)
	if err != nil {
		b.Fatal(err)
	}
	const block = 4096
	for at := 0; at < len(image); at += block {
		part := image[at:min(at+block, len(image))]
		if strings.Trim(string(part), "\x00") == "" {
			continue
		}
		if _, err := m.WriteAt(part, int64(at)); err != nil {
			b.Fatal(err)
		}
	}
}

// usage returns the bytes of blocks below a directory.
func usage(b *testing.B, dir string) (n int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		if st, ok := i.Sys().(*syscall.Stat_t); ok {
			n += st.Blocks * 512
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func count(b *testing.B, dir string) int {
	b.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	return len(list)
}

func lines(b *testing.B, file string) int {
	b.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}
