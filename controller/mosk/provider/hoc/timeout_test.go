package hoc

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// The deadline of a configuration's playbooks reaches their items, and executes none again.
func TestDeadlineOfPlaybooks(t *testing.T) {
	l := start(t, objects([]client.Object{lcmCluster(), hoc("test", config("sample", "1.0.0", `{"a":1}`))}, worker("w-0"))...)
	l.run("w-0")
	for _, text := range []string{"90m", "2h", ""} {
		l.edit("test", func(o *kaasv1.HostOSConfiguration) {
			o.Annotations = map[string]string{item.TimeoutAnnotation: text}
			if text == "" {
				o.Annotations = nil
			}
		})
		if got := l.run("w-0"); len(got["w-0"]) != 0 {
			t.Errorf("deadline %q: executed %v, want nothing", text, got)
		}
		m := l.lcmMachine("w-0")
		if got := m.Spec.StateItemsOverwrites[playbook][item.ParamTimeout]; got != text || m.Status.State != lcmv1.StateReady {
			t.Errorf("deadline %q: the item has %q, the machine is %s", text, got, m.Status.State)
		}
		if got := m.Spec.StateItemsOverwrites[download][item.ParamTimeout]; got != "" {
			t.Errorf("deadline %q: the download has %q", text, got)
		}
	}
}
