package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/scenarios/capture"
)

// chassisWith returns the deriver of a capture with a chassis whose Thermal and Power, of the
// older schemas, have these fans, power supplies and redundancy.
func chassisWith(t *testing.T, parts int, redundancy string) (*deriver, resource) {
	t.Helper()
	list := "[" + strings.TrimSuffix(strings.Repeat("{},", parts), ",") + "]"
	text := fmt.Sprintf(`{
		"/redfish/v1/Chassis/1": {"Thermal": {"@odata.id": "/redfish/v1/Chassis/1/Thermal"}, "Power": {"@odata.id": "/redfish/v1/Chassis/1/Power"}},
		"/redfish/v1/Chassis/1/Thermal": {"Fans": %[1]s, "Redundancy": %[2]s},
		"/redfish/v1/Chassis/1/Power": {"PowerSupplies": %[1]s, "Redundancy": %[2]s}}`, list, redundancy)
	c := &capture.Capture{}
	if err := json.Unmarshal([]byte(text), &c.Resources); err != nil {
		t.Fatal(err)
	}
	return newDeriver(c), c.Resources["/redfish/v1/Chassis/1"]
}

// Without a redundancy group each fan is needed, and of two or more power supplies all but
// one.
func TestNeededFansAndPowerSupplies(t *testing.T) {
	for name, tt := range map[string]struct {
		parts          int
		redundancy     string
		fans, supplies int
	}{
		"no redundancy":               {4, `[]`, 4, 3},
		"one of each":                 {1, `[]`, 1, 1},
		"least number":                {4, `[{"MinNumNeeded": 2}]`, 2, 2},
		"redundancy without a number": {4, `[{"MinNumNeeded": null}, {"MinNumNeeded": 2}]`, 2, 2},
		"more than there are":         {2, `[{"MinNumNeeded": 9}]`, 2, 2},
		"none":                        {0, `[{"MinNumNeeded": 2}]`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, chassis := chassisWith(t, tt.parts, tt.redundancy)
			var fans thermal.Fans
			var supplies thermal.Supplies
			d.fans(&fans, chassis)
			d.supplies(&supplies, chassis)
			if fans.Count != tt.parts || fans.Needed != tt.fans {
				t.Errorf("%d fans, %d needed; want %d, %d", fans.Count, fans.Needed, tt.parts, tt.fans)
			}
			if supplies.Count != tt.parts || supplies.Needed != tt.supplies {
				t.Errorf("%d power supplies, %d needed; want %d, %d", supplies.Count, supplies.Needed, tt.parts, tt.supplies)
			}
		})
	}
}
