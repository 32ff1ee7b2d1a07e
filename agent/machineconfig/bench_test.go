package machineconfig

import (
	"syscall"
	"testing"
	"time"
)

// cpu returns the processor time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkUpdate updates one node, with the API's side as a fake: the daemon's part of the
// budgets of 150 ms and 15 writes a node for files, and of 220 ms and 20 writes for an image.
func BenchmarkUpdate(b *testing.B) {
	for _, image := range []bool{false, true} {
		b.Run(map[bool]string{false: "files", true: "image"}[image], func(b *testing.B) {
			var used time.Duration
			writes := 0
			for range b.N {
				c := newCluster(b)
				c.rendered("r1", ign{files: files("/etc/a", "1")})
				c.desire("r1", "")
				c.wantState("Done")
				c.rendered("r2", ign{files: files("/etc/a", "2", "/etc/b", "2")})
				ref := ""
				if image {
					ref = c.push(files("/etc/os-release", "ID=image\n", "/etc/a", "2", "/etc/b", "2"))
				}
				before, start := len(c.api.patches), cpu(b)
				c.desire("r2", ref)
				c.wantState("Done")
				used += cpu(b) - start
				writes += len(c.api.patches) - before
			}
			b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/node")
			b.ReportMetric(float64(writes)/float64(b.N), "writes/node")
		})
	}
}
