package drain

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Lease is how long an owner has a node without renewing it.
	Lease = 15 * time.Minute
	// Namespace is the namespace of the leases in the node's cluster. Every cluster has it.
	Namespace = metav1.NamespaceSystem

	leasePrefix = "drain-"
	// cordonedAnnotation of a lease is "true" when its owner has cordoned the node.
	cordonedAnnotation = "metalab.dev/cordoned"
)

// HeldError is the error for a node that another owner has.
type HeldError struct {
	Node, Owner string
	Until       time.Time // unless the owner renews its lease
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("node %s is held by %s: it waits until that is done", e.Node, e.Owner)
}

// Owner returns the owner of a node, "" without one.
func (s *Service) Owner(ctx context.Context, node string) (string, error) {
	l, err := s.lease(ctx, node)
	if err != nil || l == nil || !s.Clock.Now().Before(expiry(l)) {
		return "", err
	}
	return holder(l), nil
}

// Since returns when the owner acquired a node, the zero time when it does not have it. The lease
// stores it, so that a restarted owner knows how long its drain takes.
func (s *Service) Since(ctx context.Context, node, owner string) (time.Time, error) {
	l, err := s.held(ctx, node, owner)
	if err != nil || l == nil || l.Spec.AcquireTime == nil {
		return time.Time{}, err
	}
	return l.Spec.AcquireTime.Time, nil
}

// lease returns the lease of a node, nil when there is none.
func (s *Service) lease(ctx context.Context, node string) (*coordinationv1.Lease, error) {
	l := new(coordinationv1.Lease)
	switch err := s.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: leasePrefix + node}, l); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("drain: lease of node %s: %w", node, err)
	}
	return l, nil
}

// held returns the lease of a node that the owner has, nil when the owner does not have it.
func (s *Service) held(ctx context.Context, node, owner string) (*coordinationv1.Lease, error) {
	l, err := s.lease(ctx, node)
	if err != nil || l == nil || holder(l) != owner {
		return nil, err
	}
	return l, nil
}

// acquire gives the node to the owner. cordons means that the owner is about to cordon the
// node.
func (s *Service) acquire(ctx context.Context, node, owner string, cordons bool) (*coordinationv1.Lease, error) {
	now := s.Clock.Now()
	l, err := s.lease(ctx, node)
	if err != nil {
		return nil, err
	}
	if l == nil {
		l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: leasePrefix + node}}
		s.give(l, owner, now)
		mark(l, cordons)
		if err := s.Client.Create(ctx, l); err != nil {
			return nil, fmt.Errorf("drain: lease of node %s: %w", node, err)
		}
		return l, nil
	}
	switch held := holder(l); {
	case held == owner:
		if renewed := l.Spec.RenewTime; renewed != nil && now.Sub(renewed.Time) < Lease/3 && !cordons {
			return l, nil
		}
		l.Spec.RenewTime = &metav1.MicroTime{Time: now}
	case now.Before(expiry(l)):
		return nil, &HeldError{Node: node, Owner: held, Until: expiry(l)}
	default: // the annotation stays: the next owner of a cordoned node uncordons it
		s.give(l, owner, now)
	}
	mark(l, cordons)
	// An update carries the resourceVersion: when two owners take over at once, one gets a
	// conflict.
	if err := s.Client.Update(ctx, l); err != nil {
		return nil, fmt.Errorf("drain: lease of node %s: %w", node, err)
	}
	return l, nil
}

func (s *Service) give(l *coordinationv1.Lease, owner string, now time.Time) {
	seconds, at := int32(Lease/time.Second), metav1.MicroTime{Time: now}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &owner, &seconds
	l.Spec.AcquireTime, l.Spec.RenewTime = &at, &at
}

func mark(l *coordinationv1.Lease, cordons bool) {
	if cordons {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, cordonedAnnotation, "true")
	}
}

// marked reports whether the owner of a lease has cordoned the node.
func marked(l *coordinationv1.Lease) bool { return l.Annotations[cordonedAnnotation] == "true" }

// release deletes a lease, unless it has changed since it was read.
func (s *Service) release(ctx context.Context, l *coordinationv1.Lease) error {
	precondition := client.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}
	if err := s.Client.Delete(ctx, l, precondition); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("drain: release node %s: %w", strings.TrimPrefix(l.Name, leasePrefix), err)
	}
	return nil
}

func holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func expiry(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
}
