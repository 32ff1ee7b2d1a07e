package manager_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalab-dev/metalab/controller/drain"
	"github.com/metalab-dev/metalab/controller/machineconfig/build"
	"github.com/metalab-dev/metalab/controller/machineconfig/builder"
	nodedrain "github.com/metalab-dev/metalab/controller/machineconfig/drain"
	"github.com/metalab-dev/metalab/controller/machineconfig/node"
	"github.com/metalab-dev/metalab/controller/machineconfig/render"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// requires checks that New takes a complete configuration, and names each field that is missing.
func requires[C, R any](t *testing.T, all C, create func(C) (R, error), fields ...string) {
	t.Helper()
	if _, err := create(all); err != nil {
		t.Errorf("New(%T) = %v, want no error", all, err)
	}
	for _, f := range fields {
		c := all
		reflect.ValueOf(&c).Elem().FieldByName(f).SetZero()
		if _, err := create(c); err == nil || !strings.Contains(err.Error(), "Config."+f) {
			t.Errorf("New(%T) without %s = %v, want an error that names it", c, f, err)
		}
	}
}

func TestReconcilersOfMachineConfigurationNameTheFieldThatIsMissing(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	w := queue.Work{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	requires(t, render.Config{Client: c, Work: w}, render.New, "Client", "Clock")
	requires(t, node.Config{Client: c, Reader: c, Work: w}, node.New, "Client", "Reader", "Clock")
	requires(t, nodedrain.Config{Client: c, Drains: drain.New(c, w.Clock, w.Clock), Work: w}, nodedrain.New, "Client", "Drains", "Clock")
	requires(t, build.Config{Client: c, Reader: c, Work: w}, build.New, "Client", "Reader", "Clock")
	requires(t, builder.Config{Client: c, Reader: c, Work: w}, builder.New, "Client", "Reader", "Clock")
}
