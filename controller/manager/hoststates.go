package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// hostStates counts hosts by provisioning state, and how long they were in each, from the
// changes of the cache. It complements upstream's metrics, which have operations only.
type hostStates struct {
	clock clock.PassiveClock
	hosts *prometheus.GaugeVec
	took  *prometheus.HistogramVec

	mu    sync.Mutex
	since map[types.UID]hostState
}

// hostState is the state of a host and when it began; zero when that was not seen.
type hostState struct {
	state string
	began time.Time
}

// stateBuckets are in seconds, up to four hours.
var stateBuckets = []float64{1, 10, 30, 60, 120, 300, 600, 1200, 2400, 4800, 14400}

func newHostStates(c clock.PassiveClock) *hostStates {
	return &hostStates{
		clock: c, since: map[types.UID]hostState{},
		hosts: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "metalab_controller_hosts", Help: "BareMetalHosts by provisioning state."}, []string{"state"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "metalab_controller_host_state_seconds", Help: "How long BareMetalHosts were in a provisioning state that has ended.", Buckets: stateBuckets,
		}, []string{"state"}),
	}
}

// watch follows the hosts of a cache and registers the metrics.
func (s *hostStates) watch(ctx context.Context, c cache.Cache, reg prometheus.Registerer) error {
	for _, m := range []prometheus.Collector{s.hosts, s.took} {
		if err := reg.Register(m); err != nil {
			return fmt.Errorf("metrics of hosts: %w", err)
		}
	}
	informer, err := c.GetInformer(ctx, &metal3.BareMetalHost{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("metrics of hosts: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { s.set(obj, !initial) },
		UpdateFunc: func(_, obj any) { s.set(obj, true) },
		DeleteFunc: s.remove,
	})
	if err != nil {
		return fmt.Errorf("metrics of hosts: %w", err)
	}
	return nil
}

// set takes a host. seen means that its state began just now if it is another.
func (s *hostStates) set(obj any, seen bool) {
	h, ok := obj.(*metal3.BareMetalHost)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after := hostState{state: string(h.Status.Provisioning.State)}
	before, known := s.since[h.UID]
	if known && before.state == after.state {
		return
	}
	if seen {
		after.began = s.clock.Now()
	}
	if known {
		s.ended(before)
	}
	s.since[h.UID] = after
	s.hosts.WithLabelValues(after.state).Inc()
}

// remove takes a host that is gone.
func (s *hostStates) remove(obj any) {
	if late, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = late.Obj
	}
	h, ok := obj.(*metal3.BareMetalHost)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, known := s.since[h.UID]; known {
		s.ended(was)
		delete(s.since, h.UID)
	}
}

// ended counts a state that has ended. The caller holds s.mu.
func (s *hostStates) ended(was hostState) {
	s.hosts.WithLabelValues(was.state).Dec()
	if !was.began.IsZero() {
		s.took.WithLabelValues(was.state).Observe(s.clock.Since(was.began).Seconds())
	}
}
