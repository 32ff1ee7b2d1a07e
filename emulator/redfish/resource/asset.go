package resource

import (
	"regexp"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// showLight shows the indicator, the way of today and that of before
// ComputerSystem 1.13 and Chassis 1.14.
func showLight(v View, o Object) {
	o["LocationIndicatorActive"] = v.Machine.Asset.IndicatorLED != machine.IndicatorOff
	o["IndicatorLED"], o["IndicatorLED@Redfish.AllowableValues"] = string(v.Machine.Asset.IndicatorLED), lights(v)
}

func lights(View) []string { return Texts(machine.IndicatorLEDs) }

// assetOf is what is written on the machine, with the indicator as a client
// wants it.
func assetOf(c Call) machine.Asset {
	a := *c.View.Machine.Asset
	if on, ok := c.Values["LocationIndicatorActive"].(bool); ok && on != (a.IndicatorLED != machine.IndicatorOff) {
		a.IndicatorLED = map[bool]machine.IndicatorLED{true: machine.IndicatorBlinking, false: machine.IndicatorOff}[on]
	}
	a.IndicatorLED = machine.IndicatorLED(Value(c.Values, "IndicatorLED", string(a.IndicatorLED)))
	if c.Values["LocationIndicatorActive"] != nil || c.Values["IndicatorLED"] != nil {
		a.IndicatorUntil = time.Time{} // who switches it here has it stay so
	}
	return a
}

var hostName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*)?$`)

// isHostName says whether a text can name a host (RFC 1123, §2.1); "" names
// none.
func isHostName(text string) bool { return machine.ValidText(text) && hostName.MatchString(text) }
