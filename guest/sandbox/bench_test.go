package sandbox_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// BenchmarkExec runs commands one after the other on a server with as many files as the lab's
// servers have. Its processor time is that of this process and of those that it has started.
func BenchmarkExec(b *testing.B) {
	prerequisites.Need(b, "user namespaces")
	files := sandbox.MachineFiles()
	for name, n := range base() {
		files[name] = n
	}
	for i := range 300 {
		files[fmt.Sprintf("etc/defaults/%d.conf", i)] = sandbox.File(0o644, "# nothing\n")
	}
	lowers := sandbox.NewLowers(b.TempDir() + "/lowers")
	defer lowers.Close()
	s := sandbox.New(sandbox.Config{Base: files, Lowers: lowers, Store: &memory{}, Dir: b.TempDir() + "/root", RequireLimits: true})
	defer s.Close()
	command := func() {
		if _, err := s.Exec(context.WithoutCancel(b.Context()), sandbox.Command{Args: []string{"true"}}); err != nil {
			b.Fatal(err)
		}
	}
	command() // writes the shared lower layers
	began := cpuTime(b)
	for b.Loop() {
		command()
	}
	b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// cpuTime is the processor time of this process and of its children that have ended.
func cpuTime(b *testing.B) (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
