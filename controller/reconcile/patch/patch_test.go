package patch_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/controller/reconcile/patch"
)

// The API server refuses a patch whose metadata.resourceVersion is not the object's (API
// conventions, "Concurrency Control and Consistency").
func TestIfUnchangedNamesTheVersionThatWasRead(t *testing.T) {
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7"}}
	now := before.DeepCopy()
	now.Spec.Unschedulable = true
	p := patch.IfUnchanged(before)
	data, err := p.Data(now)
	if want := `{"metadata":{"resourceVersion":"7"},"spec":{"unschedulable":true}}`; err != nil || string(data) != want || p.Type() != types.MergePatchType {
		t.Errorf("patch of type %s = %s, %v; want %s", p.Type(), data, err, want)
	}
}
