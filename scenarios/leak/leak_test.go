package leak

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestSettleSeesGoroutinesAndFilesThatStay(t *testing.T) {
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors()
	if err := settle(goroutines+5, descriptors+5, time.Second); err != nil {
		t.Errorf("nothing left: %v", err)
	}
	end := make(chan struct{})
	for range 20 {
		go func() { <-end }()
	}
	err := settle(goroutines+5, descriptors+5, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "goroutines") {
		t.Errorf("20 goroutines: %v", err)
	}
	var out strings.Builder
	if leaking(&out); !strings.Contains(out.String(), "TestSettleSeesGoroutinesAndFilesThatStay.func") {
		t.Errorf("the goroutines are not shown:\n%s", &out)
	}
	close(end)
	if err := settle(goroutines+5, descriptors+5, time.Minute); err != nil {
		t.Errorf("after their end: %v", err)
	}
	var files []*os.File
	for range 20 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if err := settle(goroutines+5, descriptors+5, time.Millisecond); err == nil {
		t.Error("20 files are not seen")
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPeakMemoryCountsWhatWasFreed(t *testing.T) {
	before := peakMemory()
	if before == 0 {
		t.Fatal("the system does not tell how much memory the process has had")
	}
	const size = 256 << 20
	touched := make([]byte, size)
	for i := 0; i < size; i += os.Getpagesize() {
		touched[i] = 1
	}
	runtime.KeepAlive(touched)
	runtime.GC()
	if after := peakMemory(); after < size || after < before {
		t.Errorf("peak = %d bytes, want %d at least", after, size)
	}
}
