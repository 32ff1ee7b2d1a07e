package helmcontroller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The times of a Lease: those of client-go's leader election, by which the controller in the cluster
// holds it.
const (
	leaseDuration = 15 * time.Second // how long the others wait for a holder that does not renew
	renewPeriod   = 5 * time.Second
	retryPeriod   = 2 * time.Second // after another process was faster
)

// Leases hold the Leases of Clusters for one pass at a time. The lab-controller of the management
// cluster works on all HelmBundles, and leaves that of a Cluster alone while another process holds
// its Lease. The controller in a cluster is elected once, and keeps the Lease: so it takes over when
// the pass ends that has installed it, and the management cluster acts again when it is gone.
type Leases struct {
	Client client.Client    // writes Leases
	Reader client.Reader    // reads them past the cache
	Holder string           // identity of this process
	Clock  clock.WithTicker // real time, in which all processes agree

	mu   sync.Mutex
	seen map[client.ObjectKey]record // what others have written last
}

// record is what another holder has written, and when this process has seen it. Clocks of two
// machines may differ: a Lease ends when its holder has not renewed it for the duration since then.
type record struct {
	version string // resourceVersion
	at      time.Time
}

// ErrLost is the cause with which the context of a pass ends whose Lease cannot be renewed.
var ErrLost = errors.New("helmcontroller: the Lease could not be renewed in time")

// Hold takes the Lease of a Cluster. The pass works with the context that Hold returns, which ends
// when the Lease is lost, and calls release at its end. While another process holds the Lease, wait
// is the time after which to ask again, and release is nil. A Cluster without a Lease has no
// controller of its own, so that every pass holds it.
func (l *Leases) Hold(ctx context.Context, cluster client.ObjectKey) (held context.Context, release func(), wait time.Duration, err error) {
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: Name(cluster.Name)}
	lease := new(coordinationv1.Lease)
	if err := l.Reader.Get(ctx, key, lease); apierrors.IsNotFound(err) {
		return ctx, func() {}, 0, nil
	} else if err != nil {
		return nil, nil, 0, fmt.Errorf("helmcontroller: Lease %s: %w", key, err)
	}
	if wait := l.others(key, lease); wait > 0 {
		return nil, nil, wait, nil
	}
	spec := &lease.Spec
	if ptr.Deref(spec.HolderIdentity, "") != l.Holder {
		spec.LeaseTransitions = ptr.To(ptr.Deref(spec.LeaseTransitions, 0) + 1)
		spec.AcquireTime = ptr.To(metav1.NewMicroTime(l.Clock.Now()))
	}
	spec.HolderIdentity = ptr.To(l.Holder)
	if err := l.renew(ctx, lease); apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, nil, retryPeriod, nil
	} else if err != nil {
		return nil, nil, 0, fmt.Errorf("helmcontroller: Lease %s: %w", key, err)
	}
	held, cancel := context.WithCancelCause(ctx)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.keep(held, lease, stop, cancel)
	}()
	return held, func() {
		close(stop)
		<-ended
		cancel(nil)
		l.release(context.WithoutCancel(ctx), lease)
	}, 0, nil
}

// others returns how long another process may still hold the Lease; 0 when this one may take it.
func (l *Leases) others(key client.ObjectKey, lease *coordinationv1.Lease) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder == "" || holder == l.Holder {
		delete(l.seen, key)
		return 0
	}
	now := l.Clock.Now()
	if l.seen[key].version != lease.ResourceVersion {
		if l.seen == nil {
			l.seen = map[client.ObjectKey]record{}
		}
		l.seen[key] = record{lease.ResourceVersion, now}
	}
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return max(l.seen[key].at.Add(lasts).Sub(now), 0)
}

// renew writes the Lease, unless another process has written it meanwhile.
func (l *Leases) renew(ctx context.Context, lease *coordinationv1.Lease) error {
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(l.Clock.Now()))
	return l.Client.Update(ctx, lease)
}

// keep renews the Lease until stop is closed, and cancels the pass when it is lost.
func (l *Leases) keep(ctx context.Context, lease *coordinationv1.Lease, stop <-chan struct{}, lost context.CancelCauseFunc) {
	tick := l.Clock.NewTicker(renewPeriod)
	defer tick.Stop()
	renewed := l.Clock.Now()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		begun := l.Clock.Now()
		limited, cancel := context.WithTimeout(ctx, renewPeriod)
		err := l.renew(limited, lease)
		cancel()
		switch {
		case err == nil:
			renewed = begun
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err) || l.Clock.Now().Sub(renewed) >= leaseDuration-renewPeriod:
			lost(ErrLost)
			return
		}
	}
}

// release gives the Lease back, as client-go's leader election does. A Lease that cannot be written
// ends with its duration.
func (l *Leases) release(ctx context.Context, lease *coordinationv1.Lease) {
	limited, cancel := context.WithTimeout(ctx, renewPeriod)
	defer cancel()
	now := ptr.To(metav1.NewMicroTime(l.Clock.Now()))
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](1)
	lease.Spec.AcquireTime, lease.Spec.RenewTime = now, now
	_ = l.Client.Update(limited, lease)
}
