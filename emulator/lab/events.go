package lab

import (
	"context"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/lab/outbound"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

// mailbox is a host as the poster of events sees it.
type mailbox struct{ *Host }

var _ outbound.Mailbox = mailbox{}

// Subscription is a subscription as it stands, with its headers.
func (m mailbox) Subscription(id string) (bmc.Subscription, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bmc.Subscription(id)
}

// Trusted are the certificates of a subscription.
func (m mailbox) Trusted(id string) (out [][]byte) {
	for _, c := range m.BMC().Certificates.Store(bmc.SubscriptionStore(id)) {
		out = append(out, c.Chain...)
	}
	return out
}

// Attempted tells the BMC how a delivery went, whose policy says what follows.
func (m mailbox) Attempted(id string, failed error) (after time.Duration, again bool) {
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

// tell tells the subscribers what has happened in a step. It holds h.mu.
func (h *Host) tell(st *step, was *machine.View, wasBMC *bmc.View) {
	if st.event > 0 && h.lab.service != nil {
		told := st.bmc
		for _, ev := range st.machine {
			if ev, ok := ev.(machine.MetricReportReady); ok {
				told = append(told[:len(told):len(told)], ev)
			}
		}
		letters := h.lab.service.Tell(h, redfish.Step{
			Number: st.event, At: st.now, WasMachine: was, Machine: h.Machine(), WasBMC: wasBMC, BMC: h.BMC(), Events: told,
		})
		for _, l := range letters {
			if !h.BMC().Life.Serves() { // nobody is there to send it
				break
			}
			h.lab.poster.Post(mailbox{h}, l.Subscription, l.At, l.Body)
		}
	}
	if h.lab.ipmi != nil {
		h.lab.ipmi.FilterEvents(h, st.now, st.bmc)
	}
	for _, ev := range st.bmc {
		switch ev := ev.(type) {
		case bmc.SubscriptionResumed:
			h.lab.poster.Resume(mailbox{h}, ev.ID, ev.Since)
		case bmc.Unsubscribed:
			h.lab.poster.Forget(mailbox{h}, ev.ID)
		}
	}
}
