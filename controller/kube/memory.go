package kube

import (
	"os"
	"runtime/debug"
)

const (
	// gcPercent is for a heap that is small but changes quickly. At Go's default of 100, an
	// API server spends a fifth of its processor time on garbage collection.
	gcPercent = 500
	// memoryLimit, in bytes, makes the collector run more often in a large lab. A thousand
	// hosts that are worked on at the same time use 500 MB, much of it garbage that was made
	// during a collection: with a limit of 1,200 MB, a quarter of the processor time was
	// garbage collection.
	memoryLimit = 1600 << 20
)

// TrimCollector tunes the garbage collector of this process for an API server, which
// allocates much and keeps little. It changes the whole process, so only programs that run
// an API call it. It leaves settings alone that the environment variables GOGC and
// GOMEMLIMIT make.
func TrimCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
