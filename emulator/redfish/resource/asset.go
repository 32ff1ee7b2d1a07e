package resource

import (
	"regexp"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// addIndicator adds LocationIndicatorActive and the deprecated IndicatorLED,
// which clients of ComputerSystem before 1.13 and Chassis before 1.14 read.
func addIndicator(v View, o Object) {
	o["LocationIndicatorActive"] = v.Machine.Asset.IndicatorLED != machine.IndicatorOff
	o["IndicatorLED"], o["IndicatorLED@Redfish.AllowableValues"] = string(v.Machine.Asset.IndicatorLED), indicatorStates(v)
}

func indicatorStates(View) []string { return Texts(machine.IndicatorLEDs) }

// patchedAsset returns the asset of the machine with a client's change of the
// indicator.
func patchedAsset(c Call) machine.Asset {
	a := *c.View.Machine.Asset
	if on, ok := c.Values["LocationIndicatorActive"].(bool); ok && on != (a.IndicatorLED != machine.IndicatorOff) {
		a.IndicatorLED = map[bool]machine.IndicatorLED{true: machine.IndicatorBlinking, false: machine.IndicatorOff}[on]
	}
	a.IndicatorLED = machine.IndicatorLED(Value(c.Values, "IndicatorLED", string(a.IndicatorLED)))
	if c.Values["LocationIndicatorActive"] != nil || c.Values["IndicatorLED"] != nil {
		a.IndicatorUntil = time.Time{} // an indicator that Redfish switches has no time limit
	}
	return a
}

var hostName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*)?$`)

// isHostName reports whether a string is a host name (RFC 1123, §2.1) or empty.
func isHostName(text string) bool { return machine.ValidText(text) && hostName.MatchString(text) }
