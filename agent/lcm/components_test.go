package lcm

import (
	"strings"
	"testing"
	"time"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// An item reports the versions of its components, and the machine of the type ucp is Ready
// with them. A file without JSON stops no item, and the components stay as reported.
func TestComponentsOfAnItemAreReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		install := script("install", "mkdir -p "+s.path("/var/lib/lcm")+`; echo '{"ucpVersion": "3.7.1"}' >`+s.path(item.ComponentsFile), lcmv1.PhaseDeploy)
		f.change(machineWith(install))
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.LCMType, m.Spec.Components.UCPVersion = lcmv1.LCMTypeUCP, "3.7.1" })
		c := config(f, s)
		start(t, c)
		pass(0)
		m := f.machine()
		if got := m.Status.Components.UCPVersion; got != "3.7.1" || item.ComputeState(m) != lcmv1.StateReady {
			t.Errorf("components %+v, state %s; want 3.7.1, Ready", m.Status.Components, item.ComputeState(m))
		}
		for _, text := range []string{"3.8", `"` + strings.Repeat("x", maxComponents) + `"`} {
			s.write(t, item.ComponentsFile, text, 0o644)
			f.change(machineWith(install, script("more", "true", lcmv1.PhaseDeploy)))
			pass(time.Hour)
			m := f.machine()
			if m.Status.Components.UCPVersion != "3.7.1" || m.Status.StateItemStatuses["more"].Attempt != 1 {
				t.Errorf("with %.9s in the file: components %+v, items %+v", text, m.Status.Components, m.Status.StateItemStatuses)
			}
		}
		s.write(t, item.ComponentsFile, `{"ucpVersion": "3.8"}`, 0o644)
		pass(time.Hour)
		if got := f.machine().Status.Components.UCPVersion; got != "3.8" {
			t.Errorf("the corrected file: %q, want 3.8", got)
		}
	})
}
