package host

import (
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// WorkaroundsCondition is there for hosts whose BMC is not as others are, and
// says what its driver does about that. Upstream has no such condition, and no
// other place for it in a status; nothing decides by it.
const (
	WorkaroundsCondition = "BMCWorkarounds"
	workaroundsReason    = "WorkaroundsInUse"
)

// tellLessons shows what was learned about a host's BMC. What an earlier
// controller has shown stays until this one has learned something itself.
func tellLessons(h *metal3.BareMetalHost, c bmc.Client) {
	learner, ok := c.(bmc.Learner)
	if !ok {
		return
	}
	var all []string
	for _, l := range learner.Lessons() {
		all = append(all, l.String())
	}
	if len(all) == 0 {
		return
	}
	meta.SetStatusCondition(&h.Status.Conditions, metav1.Condition{
		Type: WorkaroundsCondition, Status: metav1.ConditionTrue, Reason: workaroundsReason,
		Message: strings.Join(all, "; "), ObservedGeneration: h.Generation,
	})
}
