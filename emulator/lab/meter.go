package lab

import (
	"slices"
	"sync"
	"time"
)

// maxMetered is how many hosts have counts of their own; those of all others
// are added up.
const maxMetered = 1000

// LatencyBounds are the upper bounds of the classes of Latency, of the lab's
// time.
var LatencyBounds = []time.Duration{
	time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
	2 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute,
}

// meteredMethods are counted by their names, all others together: a client can
// make up as many as it likes.
var meteredMethods = []string{"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}

const otherMethods = "other"

// Traffic is how many requests of a kind there were since the lab was opened.
type Traffic struct {
	Host     string // "" of all hosts beyond the first thousand
	Method   string
	Status   int // 0 of requests that got no answer
	Requests uint64
	In, Out  uint64 // bytes of the bodies
}

// Latency is how long answers took, of the lab's time.
type Latency struct {
	Method  string
	Classes []uint64 // by LatencyBounds; the last is of all that took longer
	Sum     time.Duration
}

// meter counts requests.
type meter struct {
	mu   sync.Mutex
	by   map[metered]*counts
	took map[string]*Latency
}

type metered struct {
	host   int // -1 of all others
	method string
	status int
}

type counts struct{ requests, in, out uint64 }

func (m *meter) add(host int, method string, status int, took time.Duration, in, out int64) {
	if host >= maxMetered {
		host = -1
	}
	if !slices.Contains(meteredMethods, method) {
		method = otherMethods
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.by[metered{host, method, status}]
	if c == nil {
		if m.by == nil {
			m.by, m.took = map[metered]*counts{}, map[string]*Latency{}
		}
		c = new(counts)
		m.by[metered{host, method, status}] = c
	}
	c.requests++
	c.in += uint64(in)
	c.out += uint64(out)
	t := m.took[method]
	if t == nil {
		t = &Latency{Method: method, Classes: make([]uint64, len(LatencyBounds)+1)}
		m.took[method] = t
	}
	i, _ := slices.BinarySearch(LatencyBounds, took)
	t.Classes[i]++
	t.Sum += took
}

// Traffic lists how many requests there were, in no order.
func (l *Lab) Traffic() []Traffic {
	l.meter.mu.Lock()
	defer l.meter.mu.Unlock()
	var out []Traffic
	for k, c := range l.meter.by {
		t := Traffic{Method: k.method, Status: k.status, Requests: c.requests, In: c.in, Out: c.out}
		if k.host >= 0 {
			t.Host = l.hosts[k.host].Name()
		}
		out = append(out, t)
	}
	return out
}

// Latencies lists how long answers took, in no order.
func (l *Lab) Latencies() []Latency {
	l.meter.mu.Lock()
	defer l.meter.mu.Unlock()
	var out []Latency
	for _, t := range l.meter.took {
		c := *t
		c.Classes = slices.Clone(t.Classes)
		out = append(out, c)
	}
	return out
}
