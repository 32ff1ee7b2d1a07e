// Package leak tells whether the tests of a package leave labs behind: goroutines and
// descriptors that were not there before. It knows no lab.
package leak

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// What a program keeps of the labs that have ended in it: goroutines of libraries that start
// once and never end, such as the flushing of logs, and descriptors of connections that
// wait for another request.
const (
	spareGoroutines  = 60
	spareDescriptors = 20
)

// settleTime is how long the last goroutines may take to end.
const settleTime = 20 * time.Second

// PeakLine begins the line of Main's output that has the most resident memory that the tests had,
// in MiB.
const PeakLine = "peak memory in MiB: "

// Main runs the tests of a package that starts labs, and returns the exit code, as m.Run does.
// The tests fail when they leave goroutines or descriptors behind: labs that did not end, whose
// work slows down the tests that follow.
func Main(m *testing.M) int {
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors()
	code := m.Run()
	if peak := peakMemory(); peak > 0 {
		fmt.Printf("%s%d\n", PeakLine, peak>>20)
	}
	if code != 0 {
		return code
	}
	if err := settle(goroutines+spareGoroutines, descriptors+spareDescriptors, settleTime); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		leaking(os.Stderr)
		return 1
	}
	return 0
}

// settle waits until at most so many goroutines and descriptors are left.
func settle(goroutines, descriptors int, limit time.Duration) error {
	for end := time.Now().Add(limit); ; {
		runtime.GC() // closes files and connections that nobody has
		g, d := runtime.NumGoroutine(), openDescriptors()
		if g <= goroutines && d <= descriptors {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the tests leave %d goroutines and %d descriptors, more than %d and %d: labs that did not end", g, d, goroutines, descriptors)
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // nothing announces the end of the last goroutine
	}
}

// openDescriptors returns how many descriptors this process has open: 0 where that cannot be told.
func openDescriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(all)
}

// peakMemory returns the most resident memory that this process has had, in bytes: 0 where that
// cannot be told.
func peakMemory() (bytes int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscan(text, &bytes) // in kB, always
		}
	}
	return bytes << 10
}

// leaking writes the most frequent stacks.
func leaking(to io.Writer) {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return
	}
	const most = 10
	for i, stack := range bytes.SplitN(all.Bytes(), []byte("\n\n"), most+1) {
		if i < most {
			_, _ = fmt.Fprintf(to, "%s\n\n", stack)
		}
	}
}
