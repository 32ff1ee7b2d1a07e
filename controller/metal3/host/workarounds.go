package host

import (
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// WorkaroundsCondition lists the workarounds that the BMC driver uses for this
// host. Hosts without workarounds do not have it. Upstream has no such condition,
// and no other place for it in a status; no decision depends on it.
const (
	WorkaroundsCondition = "BMCWorkarounds"
	workaroundsReason    = "WorkaroundsInUse"
)

// setWorkaroundsCondition lists the recorded workarounds in a condition. A
// condition of an earlier controller stays until this one has recorded a
// workaround itself.
func setWorkaroundsCondition(h *metal3.BareMetalHost, c bmc.Client) {
	reporter, ok := c.(bmc.WorkaroundReporter)
	if !ok {
		return
	}
	var all []string
	for _, w := range reporter.Workarounds() {
		all = append(all, w.String())
	}
	if len(all) == 0 {
		return
	}
	meta.SetStatusCondition(&h.Status.Conditions, metav1.Condition{
		Type: WorkaroundsCondition, Status: metav1.ConditionTrue, Reason: workaroundsReason,
		Message: strings.Join(all, "; "), ObservedGeneration: h.Generation,
	})
}
