package host

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// readingMaxAge is how long a host that waits for its agent uses one reading of
// its BMC: the interval of the power poll (B-121). Such a host checks its agent
// every 10 s (B-12), which costs nothing; a BMC is slow, and while a rack boots
// each would be read a dozen times without a change.
const readingMaxAge = powerPoll

// bmcReading is the state of a BMC in a pass that had nothing to do but wait for
// the agent. Later passes use it only to decide that they wait, too: every action
// is based on a reading of the same pass.
type bmcReading struct {
	key    readingKey
	at     time.Time
	system bmc.System
	media  phase.Media
}

// readingKey identifies the inputs of a reading, which is invalid with another boot,
// specification or secret.
type readingKey struct {
	boot       string
	generation int64
	secret     types.UID
	version    string // resourceVersion of the secret
}

func readingKeyOf(h *metal3.BareMetalHost, o *observation) (readingKey, bool) {
	b, _ := currentBoot(h)
	if b.ID == "" || o.secret == nil {
		return readingKey{}, false
	}
	return readingKey{b.ID, h.Generation, o.secret.UID, o.secret.ResourceVersion}, true
}

// useReading fills the observation from the stored reading. It returns false if
// there is none with the same key and younger than readingMaxAge.
func (r *Reconciler) useReading(h *metal3.BareMetalHost, o *observation) bool {
	key, ok := readingKeyOf(h, o)
	if !ok {
		return false
	}
	last := r.memory.get(h.UID).reading
	if last == nil || last.key != key || r.Clock.Since(last.at) >= readingMaxAge {
		return false
	}
	o.system, o.facts.Media, o.cached = last.system, last.media, true
	return true
}

// storeReading stores the reading of a pass that has nothing to do but wait for
// the agent, and drops the stored one after any other pass.
func (r *Reconciler) storeReading(h *metal3.BareMetalHost, o *observation, d phase.Decision) {
	key, ok := readingKeyOf(h, o)
	switch {
	case !d.Awaits || !ok || o.facts.RegistrationError != "":
		r.dropReading(h.UID)
	case !o.cached:
		now := bmcReading{key, r.Clock.Now(), o.system, o.facts.Media}
		r.memory.update(h.UID, func(m *hostMemory) { m.reading = &now })
	}
}

// dropReading makes the next observation read the BMC.
func (r *Reconciler) dropReading(uid types.UID) {
	r.memory.update(uid, func(m *hostMemory) { m.reading = nil })
}
