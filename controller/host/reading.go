package host

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host/phase"
)

// readingLasts is for how long a host that waits for its agent goes on to wait
// without asking its BMC: as long as one in a stable state (B-121). It looks at
// the agent every 10 s (B-12), which costs nothing; a BMC is slow, and while a
// rack boots each would be asked a dozen times for what nobody has changed.
const readingLasts = powerPoll

// reading is what a BMC said when there was nothing to do but wait for the
// agent. It is good for that alone: whatever is done rests on what the BMC says
// in the same pass.
type reading struct {
	of     subject
	at     time.Time
	system bmc.System
	media  phase.Media
}

// subject is what a reading is about: another boot, specification or secret is
// another subject.
type subject struct {
	boot       string
	generation int64
	secret     types.UID
	version    string // of the secret
}

func subjectOf(h *metal3.BareMetalHost, o *observation) (subject, bool) {
	b, _ := currentBoot(h)
	if b.ID == "" || o.secret == nil {
		return subject{}, false
	}
	return subject{b.ID, h.Generation, o.secret.UID, o.secret.ResourceVersion}, true
}

// recall takes the BMC's last word instead of its next; false when there is none
// that is about the same, and young enough.
func (r *Reconciler) recall(h *metal3.BareMetalHost, o *observation) bool {
	of, ok := subjectOf(h, o)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.waits.readings[h.UID]
	if !ok || last.of != of || r.Clock.Since(last.at) >= readingLasts {
		return false
	}
	o.system, o.facts.Media, o.recalled = last.system, last.media, true
	return true
}

// remember keeps what the BMC said in this pass, if it left nothing to do but
// wait; else the next pass asks.
func (r *Reconciler) remember(h *metal3.BareMetalHost, o *observation, d phase.Decision) {
	of, ok := subjectOf(h, o)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !d.Awaits || !ok || o.facts.RegistrationError != "":
		delete(r.waits.readings, h.UID)
	case !o.recalled:
		r.waits.readings[h.UID] = reading{of, r.Clock.Now(), o.system, o.facts.Media}
	}
}

// forgetReading has the next observation ask the BMC.
func (r *Reconciler) forgetReading(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits.readings, uid)
}
