package raid

import (
	"encoding/json"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// refusal is why a server cannot have the software RAID of a specification.
type refusal struct{ spec, error string }

// softKey identifies a host's software RAID and the inspection of its disks: with another
// of them, what was impossible may be possible.
func softKey(h *metal3.BareMetalHost) string {
	_, soft := wanted(h)
	b, err := json.Marshal(soft)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return h.Status.OperationHistory.Inspect.Start.UTC().Format(time.RFC3339) + " " + string(b)
}

// refuse remembers why the agent has found the software RAID impossible.
func (p *Part) refuse(h *metal3.BareMetalHost, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = map[types.UID]refusal{}
	}
	p.refused[h.UID] = refusal{softKey(h), why}
}

// refusal returns why the server cannot have the software RAID; "" if it may.
func (p *Part) refusal(h *metal3.BareMetalHost) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.refused[h.UID]; ok && r.spec == softKey(h) {
		return r.error
	}
	return ""
}
