package rack

import (
	"context"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
)

// eventSource implements outbound.EventSource.
type eventSource struct{ *Host }

var _ outbound.EventSource = eventSource{}

// Subscription implements outbound.EventSource.
func (m eventSource) Subscription(id string) (bmc.Subscription, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bmc.Subscription(id)
}

// TrustedCertificates implements outbound.EventSource.
func (m eventSource) TrustedCertificates(id string) (out [][]byte) {
	for _, c := range m.BMC().Certificates.Store(bmc.SubscriptionStore(id)) {
		out = append(out, c.Chain...)
	}
	return out
}

// DeliveryAttempted implements outbound.EventSource. The BMC's retry policy decides
// what follows.
func (m eventSource) DeliveryAttempted(id string, failed error) (after time.Duration, again bool) {
	if failed == nil {
		if s, ok := m.Subscription(id); ok && s.Failures == 0 {
			return 0, false // nothing changes
		}
		if _, err := m.ApplyBMC(context.Background(), bmc.Delivered{ID: id}); err != nil {
			m.rack.log.Debug("event delivery not recorded", "host", m.Name(), "subscription", id, "err", err)
		}
		return 0, false
	}
	m.rack.log.Info("event not delivered", "host", m.Name(), "subscription", id, "err", failed)
	evs, err := m.ApplyBMC(context.Background(), bmc.DeliveryFailed{ID: id})
	if err != nil { // the subscription was deleted, or the step could not be stored
		m.rack.log.Debug("event delivery not recorded", "host", m.Name(), "subscription", id, "err", err)
		return 0, false
	}
	for _, ev := range evs {
		if ev, ok := ev.(bmc.RetryDelivery); ok {
			return ev.After, true
		}
	}
	return 0, false
}
