package kube

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// busyPercent is for a heap that is small but changes quickly. At Go's default of 100, an
	// API server spends a fifth of its processor time on garbage collection.
	busyPercent = 500
	// quietPercent is for an API that has little to do: with busyPercent its heap would still grow
	// to six times of what it keeps.
	quietPercent = 75
	// memoryLimit, in bytes, makes the collector run more often in a large lab. A thousand
	// hosts that are worked on at the same time use 500 MB, much of it garbage that was made
	// during a collection: with a limit of 1,200 MB, a quarter of the processor time was
	// garbage collection.
	memoryLimit = 1600 << 20

	// The collector looks at what was allocated in each period: an idle lab with all families
	// allocates 3 MB at most, one that starts or works on hosts 40 to 250 MB.
	collectorPeriod = 2 * time.Second
	quietBytes      = 32 << 20 // in a period
	quietPeriods    = 3        // so many in a row are quiet
)

// TrimCollector tunes the garbage collector of this process for an API server, which allocates much
// and keeps little, until stop is called: for few collections while it works, and for little memory
// while it is idle. It changes the whole process, so only programs that run an API call it. It leaves
// settings alone that the environment variables GOGC and GOMEMLIMIT make.
func TrimCollector() (stop func()) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(busyPercent)
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(collectorPeriod)
		defer tick.Stop()
		c := collector{before: allocatedBytes()}
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if percent, changed := c.next(allocatedBytes()); changed {
				debug.SetGCPercent(percent)
				if percent == quietPercent {
					debug.FreeOSMemory()
				}
			}
		}
	})
	return sync.OnceFunc(func() {
		close(quit)
		done.Wait()
	})
}

// allocatedBytes returns the bytes that the process has allocated so far.
func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// collector decides between busyPercent and quietPercent. It begins with busyPercent.
type collector struct {
	before  uint64 // allocated at the end of the last period
	periods int    // that were quiet, in a row
	quiet   bool
}

// next ends a period, and reports the percentage when it changes.
func (c *collector) next(allocated uint64) (percent int, changed bool) {
	n := allocated - c.before
	c.before = allocated
	if n > quietBytes {
		changed, c.quiet, c.periods = c.quiet, false, 0
		return busyPercent, changed
	}
	c.periods++
	if c.quiet || c.periods < quietPeriods {
		return busyPercent, false
	}
	c.quiet = true
	return quietPercent, true
}
