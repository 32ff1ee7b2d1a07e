package host

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// hostMemory is the state of one host that the reconciler remembers between two
// passes.
// It is lost when the controller restarts, and every decision must be right
// without it: it only measures waits and saves requests.
type hostMemory struct {
	softOff      *time.Time   // time of the last soft power-off request
	power        *powerChange // power change in progress
	silentSince  *time.Time   // time of the first request that the BMC has not answered
	dataRetry    *dataRetry   // next attempt to attach or detach a data image
	restartedFor string       // reason of the last restart of a server that must stay on
	reading      *bmcReading  // the BMC's state while the host waits for its agent
	slot         slotState    // place among the hosts that are served at a time
	inventory    *inventoryReading
	bmc, system  string // key of the BMC and ID of the system that the host was registered for
}

// memories holds a hostMemory for each host that has something to remember. The
// zero value is ready to use.
type memories struct {
	mu    sync.Mutex
	hosts map[types.UID]hostMemory
}

// get returns a copy of a host's memory; the zero value if there is none.
func (m *memories) get(uid types.UID) hostMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hosts[uid]
}

// update changes a host's memory. It creates the entry of a host that has none,
// and drops an entry that has nothing left to remember.
func (m *memories) update(uid types.UID, change func(*hostMemory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(uid, change)
}

// set is update for callers that hold mu.
func (m *memories) set(uid types.UID, change func(*hostMemory)) {
	h := m.hosts[uid]
	change(&h)
	if h == (hostMemory{}) {
		delete(m.hosts, uid)
		return
	}
	if m.hosts == nil {
		m.hosts = map[types.UID]hostMemory{}
	}
	m.hosts[uid] = h
}

// claim remembers that a host is registered for a BMC and a system, unless another host is: then it
// returns its UID. system is "" where it is not known.
func (m *memories) claim(uid types.UID, bmc, system string) (holder types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, h := range m.hosts {
		if other != uid && (h.bmc == bmc || h.system == system && system != "") {
			return other
		}
	}
	m.set(uid, func(h *hostMemory) { h.bmc, h.system = bmc, system })
	return ""
}

// forget drops a host's memory.
func (m *memories) forget(uid types.UID) {
	m.update(uid, func(h *hostMemory) { *h = hostMemory{} })
}

// silence returns how long a BMC has not answered; the first call for a silent
// BMC returns 0.
func (r *Reconciler) silence(uid types.UID) (d time.Duration) {
	now := r.Clock.Now()
	r.memory.update(uid, func(h *hostMemory) {
		if h.silentSince == nil {
			h.silentSince = &now
		}
		d = now.Sub(*h.silentSince)
	})
	return d
}

// answered ends the silence of a BMC.
func (r *Reconciler) answered(uid types.UID) {
	r.memory.update(uid, func(h *hostMemory) { h.silentSince = nil })
}

// askedOff returns the time of the last soft power-off request.
func (r *Reconciler) askedOff(uid types.UID) (time.Time, bool) {
	if at := r.memory.get(uid).softOff; at != nil {
		return *at, true
	}
	return time.Time{}, false
}
