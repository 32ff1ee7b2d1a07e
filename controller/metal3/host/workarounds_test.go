package host

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalab-dev/metalab/controller/bmc"
)

type reporter struct {
	bmc.Client
	workarounds []bmc.Workaround
}

func (r reporter) Workarounds() []bmc.Workaround { return r.workarounds }

func TestWorkaroundsAreACondition(t *testing.T) {
	h := &metal3.BareMetalHost{}
	for _, tt := range []struct {
		client bmc.Client
		want   string // message; "": there is no condition
	}{
		{nil, ""},
		{reporter{}, ""},
		{reporter{workarounds: []bmc.Workaround{{Topic: "ETag", Variant: "without quotes"}, {Topic: "power", Variant: "it has to settle"}}}, "ETag: without quotes; power: it has to settle"},
		{reporter{}, "ETag: without quotes; power: it has to settle"}, // recorded by an earlier controller
		{reporter{workarounds: []bmc.Workaround{{Topic: "ETag", Variant: "strong"}}}, "ETag: strong"},
	} {
		setWorkaroundsCondition(h, tt.client)
		got := ""
		if c := meta.FindStatusCondition(h.Status.Conditions, WorkaroundsCondition); c != nil {
			got = c.Message
		}
		if got != tt.want {
			t.Errorf("after %+v it says %q, want %q", tt.client, got, tt.want)
		}
	}
}
