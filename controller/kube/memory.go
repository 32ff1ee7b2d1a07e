package kube

import (
	"os"
	"runtime/debug"
)

const (
	gcPercent = 500 // at the default of 100 a fifth of an API server's work is collecting garbage
	// From here on memory is dearer than time. A thousand hosts that are worked on
	// at once hold 500 MB, much of it garbage that was made while the collector
	// looked: with 1,200 MB for all, a quarter of their work was to collect it.
	memoryLimit = 1600 << 20
)

// TrimCollector makes the garbage collector of this process trade memory for
// speed as long as there is little of it: an API server makes much garbage and
// holds little. It is for programs that run the API, as it changes the whole
// process; who has set GOGC or GOMEMLIMIT has decided already.
func TrimCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
