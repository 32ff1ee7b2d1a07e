package host

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalab-dev/metalab/controller/bmc"
)

type learned struct {
	bmc.Client
	lessons []bmc.Lesson
}

func (l learned) Lessons() []bmc.Lesson { return l.lessons }

func TestLessonsAreACondition(t *testing.T) {
	h := &metal3.BareMetalHost{}
	for _, tt := range []struct {
		client bmc.Client
		want   string // message; "": there is no condition
	}{
		{nil, ""},
		{learned{}, ""},
		{learned{lessons: []bmc.Lesson{{Topic: "ETag", Way: "without quotes"}, {Topic: "power", Way: "it has to settle"}}}, "ETag: without quotes; power: it has to settle"},
		{learned{}, "ETag: without quotes; power: it has to settle"}, // of a controller that was before
		{learned{lessons: []bmc.Lesson{{Topic: "ETag", Way: "strong"}}}, "ETag: strong"},
	} {
		tellLessons(h, tt.client)
		got := ""
		if c := meta.FindStatusCondition(h.Status.Conditions, WorkaroundsCondition); c != nil {
			got = c.Message
		}
		if got != tt.want {
			t.Errorf("after %+v it says %q, want %q", tt.client, got, tt.want)
		}
	}
}
