package lab

import (
	"context"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/lab/outbound"
)

// eventSource is a host as the poster of events sees it.
type eventSource struct{ *Host }

var _ outbound.EventSource = eventSource{}

// Subscription is a subscription as it stands, with its headers.
func (m eventSource) Subscription(id string) (bmc.Subscription, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bmc.Subscription(id)
}

// TrustedCertificates are the certificates of a subscription.
func (m eventSource) TrustedCertificates(id string) (out [][]byte) {
	for _, c := range m.BMC().Certificates.Store(bmc.SubscriptionStore(id)) {
		out = append(out, c.Chain...)
	}
	return out
}

// DeliveryAttempted tells the BMC how a delivery went, whose policy says what follows.
func (m eventSource) DeliveryAttempted(id string, failed error) (after time.Duration, again bool) {
	if failed == nil {
		if s, ok := m.Subscription(id); ok && s.Failures == 0 {
			return 0, false // as before
		}
		if _, err := m.ApplyBMC(context.Background(), bmc.Delivered{ID: id}); err != nil {
			m.lab.log.Debug("delivery not noted", "host", m.Name(), "subscription", id, "err", err)
		}
		return 0, false
	}
	m.lab.log.Info("event not delivered", "host", m.Name(), "subscription", id, "err", failed)
	evs, err := m.ApplyBMC(context.Background(), bmc.DeliveryFailed{ID: id})
	if err != nil { // it is no more, or nothing can be stored
		m.lab.log.Debug("delivery not noted", "host", m.Name(), "subscription", id, "err", err)
		return 0, false
	}
	for _, ev := range evs {
		if ev, ok := ev.(bmc.RetryDelivery); ok {
			return ev.After, true
		}
	}
	return 0, false
}
