package release

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

func TestCheckNodeLabel(t *testing.T) {
	r := &kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: "mosk-1"}}
	if got := CheckNodeLabel(r, baremetalv1.KeyValue{Key: "a"}); got != "" {
		t.Errorf("a release without a list: %q", got)
	}
	r.Spec.AllowedNodeLabels = []kaasv1.AllowedNodeLabel{{Key: "zone", DisplayName: "Zone"}, {Key: "stacklight", Value: "enabled"}}
	const all = ": give one of zone, stacklight=enabled"
	for l, want := range map[baremetalv1.KeyValue]string{
		{Key: "zone", Value: "a"}:             "",
		{Key: "zone"}:                         "",
		{Key: "stacklight", Value: "enabled"}: "",
		{Key: "stacklight", Value: "off"}:     `ClusterRelease "mosk-1" does not allow the label stacklight=off` + all,
		{Key: "gpu", Value: "yes"}:            `ClusterRelease "mosk-1" does not allow the label gpu=yes` + all,
	} {
		if got := CheckNodeLabel(r, l); got != want {
			t.Errorf("CheckNodeLabel(%v) = %q, want %q", l, got, want)
		}
	}
}
