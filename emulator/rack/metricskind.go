package rack

import (
	"sync"
	"sync/atomic"
)

// RequestKind is a kind of request to BMCs, over all hosts.
type RequestKind struct {
	Dialect string // name of the BMC's dialect
	Command bool   // an IPMI command; else an HTTP request
	Method  string // HTTP method, or the name of the command
	Code    int    // status of the response, or the completion code; 0 for HTTP: no response
}

// otherCommands are the IPMI commands that no table names.
const otherCommands = "other"

// kindCounts counts requests by kind. There are as many kinds as dialects, methods and codes;
// no client can make up more.
type kindCounts struct{ byKind sync.Map } // RequestKind to *atomic.Uint64

func (c *kindCounts) add(k RequestKind) {
	n, ok := c.byKind.Load(k)
	if !ok {
		n, _ = c.byKind.LoadOrStore(k, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}

// RequestKinds returns how many requests of each kind came since the rack was opened.
func (l *Rack) RequestKinds() map[RequestKind]uint64 {
	out := map[RequestKind]uint64{}
	l.metrics.kinds.byKind.Range(func(k, n any) bool {
		out[k.(RequestKind)] = n.(*atomic.Uint64).Load()
		return true
	})
	return out
}

// sessionCounts counts IPMI sessions. A BMC numbers its sessions from 1 when it comes up.
type sessionCounts struct {
	mu    sync.Mutex
	last  map[int]uint32 // number of the latest session, by host
	total uint64
}

// note takes the session of a command.
func (c *sessionCounts) note(host int, session uint32) {
	if session == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[int]uint32{}
	}
	switch last := c.last[host]; {
	case session == last:
		return
	case session > last:
		c.total += uint64(session - last)
	default: // the BMC has restarted, or an older session goes on
		if session != 1 {
			return
		}
		c.total++
	}
	c.last[host] = session
}

// IPMISessions returns how many IPMI sessions have executed commands since the rack was opened.
func (l *Rack) IPMISessions() uint64 {
	l.metrics.sessions.mu.Lock()
	defer l.metrics.sessions.mu.Unlock()
	return l.metrics.sessions.total
}

// StoreStats are how much the rack has stored.
type StoreStats struct {
	Saves   uint64 // steps that changed something
	Commits uint64 // writes of one or more saves
	Bytes   int64  // size of the files of the database and its log
}

// StoreStats returns how much the rack has stored since it was opened.
func (l *Rack) StoreStats() StoreStats {
	saves, commits, size := l.store.Stats()
	return StoreStats{Saves: saves, Commits: commits, Bytes: size}
}
