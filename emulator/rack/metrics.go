package rack

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxMeasuredHosts is how many hosts are counted one by one; the others are counted
// together.
const maxMeasuredHosts = 1000

// LatencyBounds are the upper bounds of the buckets of Latency, in the lab's time.
var LatencyBounds = latencyBounds[:]

var latencyBounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
	2 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute,
}

// countedMethods are counted by name. All others are counted together, because a
// client can make up any number of them.
var countedMethods = []string{"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}

const otherMethods = "other"

// Traffic is how many requests of one kind came since the rack was opened.
type Traffic struct {
	Host     string // "": all hosts beyond the first thousand
	Method   string
	Status   int // 0: no response
	Requests uint64
	In, Out  uint64 // bytes of the bodies
}

// Latency is how long the responses to a method took, in the lab's time.
type Latency struct {
	Method  string
	Classes []uint64 // by LatencyBounds; the last has all that took longer
	Sum     time.Duration
}

// metrics counts requests. Counting takes a lock only the first time for a host,
// method and status.
type metrics struct {
	mu     sync.Mutex                                      // held to add counters
	byHost [maxMeasuredHosts + 1]atomic.Pointer[[]*counts] // the last is of all other hosts

	kinds    kindCounts
	sessions sessionCounts
}

// counts are the counters of one host, method and status.
type counts struct {
	method            string
	status            int
	requests, in, out atomic.Uint64
	took              atomic.Int64 // lab time of the responses, in nanoseconds
	classes           [len(latencyBounds) + 1]atomic.Uint64
}

func (m *metrics) count(host int, dialect, method string, status int, took time.Duration, in, out int64) {
	if !slices.Contains(countedMethods, method) {
		method = otherMethods
	}
	m.kinds.add(RequestKind{Dialect: dialect, Method: method, Code: status})
	c := m.counts(min(host, maxMeasuredHosts), method, status)
	c.requests.Add(1)
	if in > 0 {
		c.in.Add(uint64(in))
	}
	if out > 0 {
		c.out.Add(uint64(out))
	}
	c.took.Add(int64(took))
	class := 0
	for class < len(latencyBounds) && latencyBounds[class] < took {
		class++
	}
	c.classes[class].Add(1)
}

func (m *metrics) counts(host int, method string, status int) *counts {
	if c, _ := m.find(host, method, status); c != nil {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c, all := m.find(host, method, status)
	if c == nil {
		c = &counts{method: method, status: status}
		all = append(slices.Clip(all), c) // readers use the old slice
		m.byHost[host].Store(&all)
	}
	return c
}

// find returns the counters, or nil when there are none, and all counters of the
// host.
func (m *metrics) find(host int, method string, status int) (*counts, []*counts) {
	all := m.byHost[host].Load()
	if all == nil {
		return nil, nil
	}
	for _, c := range *all {
		if c.status == status && c.method == method {
			return c, *all
		}
	}
	return nil, *all
}

// each calls f with all counters, in no particular order.
func (m *metrics) each(f func(host int, c *counts)) {
	for host := range m.byHost {
		if all := m.byHost[host].Load(); all != nil {
			for _, c := range *all {
				f(host, c)
			}
		}
	}
}

// Traffic returns the numbers of requests, in no particular order.
func (l *Rack) Traffic() []Traffic {
	var out []Traffic
	l.metrics.each(func(host int, c *counts) {
		t := Traffic{Method: c.method, Status: c.status, Requests: c.requests.Load(), In: c.in.Load(), Out: c.out.Load()}
		if host < maxMeasuredHosts {
			t.Host = l.hosts[host].Name()
		}
		out = append(out, t)
	})
	return out
}

// Latencies returns how long responses took, in no particular order.
func (l *Rack) Latencies() []Latency {
	var out []Latency
	l.metrics.each(func(_ int, c *counts) {
		i := slices.IndexFunc(out, func(t Latency) bool { return t.Method == c.method })
		if i < 0 {
			i = len(out)
			out = append(out, Latency{Method: c.method, Classes: make([]uint64, len(c.classes))})
		}
		for class := range c.classes {
			out[i].Classes[class] += c.classes[class].Load()
		}
		out[i].Sum += time.Duration(c.took.Load())
	})
	return out
}
