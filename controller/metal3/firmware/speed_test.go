package firmware

import (
	"fmt"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// model returns a server model with this many settings: its registry, as bytes of
// the usual size, and the settings of a server.
func model(settings int) ([]byte, func([]byte) (*bmc.AttributeRegistry, error), bmc.Settings) {
	body := make([]byte, settings*600)
	values := bmc.Settings{}
	for i := range settings {
		values[fmt.Sprintf("Setting%d", i)] = int64(i)
	}
	return body, func([]byte) (*bmc.AttributeRegistry, error) {
		var all []bmc.Attribute
		for name := range values {
			all = append(all, bmc.Attribute{Name: name, Type: bmc.IntegerAttribute, Lower: new(int64(0)), Upper: new(int64(5000))})
		}
		return bmc.NewAttributeRegistry("R", all), nil
	}, values
}

// rack repeats the work of one pass for this many hosts of one model: it finds the
// registry and the schema, and validates ten settings. It returns the number of
// schemas.
func rack(tb testing.TB, hosts, settings int) int {
	body, parse, values := model(settings)
	var registries bmc.Registries
	known := newSchemas()
	want := metal3.DesiredSettingsMap{}
	for i := range 10 {
		want[fmt.Sprintf("Setting%d", i)] = num(4000 + i)
	}
	names := map[*schema]bool{}
	for range hosts {
		r, err := registries.Store(bmc.RegistryKey{ID: "R"}, "", body, parse)
		if err != nil {
			tb.Fatal(err)
		}
		b := bmc.BIOS{Settings: values, Registry: r}
		s := known.forBIOS(b)
		names[s] = true
		if errs := validate(want, b, s); errs != nil {
			tb.Fatal(errs)
		}
	}
	return len(names)
}

// A thousand hosts of one model, with registries of 300 and of 1,000 settings,
// share one schema. BenchmarkThousandHosts measures the cost.
func TestThousandHostsShareOneSchema(t *testing.T) {
	for _, settings := range []int{300, 1000} {
		if n := rack(t, 1000, settings); n != 1 {
			t.Errorf("%d settings: %d schemas, want one", settings, n)
		}
	}
}

func BenchmarkThousandHosts(b *testing.B) {
	for _, settings := range []int{300, 1000} {
		b.Run(fmt.Sprint(settings), func(b *testing.B) {
			for b.Loop() {
				rack(b, 1000, settings)
			}
		})
	}
}
