package view

import (
	"path"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/rack"
)

// Tile is one server in the picture of a rack.
type Tile struct {
	Index   int    `json:"i"`
	Name    string `json:"name"`
	Rack    string `json:"rack"` // "" for none
	Profile string `json:"profile"`
	Power   string `json:"power"`           // as Redfish spells it; "" when the shard does not run
	Boot    string `json:"boot"`            // phase of the boot process
	State   string `json:"state,omitempty"` // provisioning state; "" without an object
	Role    string `json:"role,omitempty"`
	Error   string `json:"error,omitempty"` // kind of the provisioning error
	Health  string `json:"health"`          // OK, Warning or Critical; "" when the shard does not run
	BMC     string `json:"bmc"`             // reachable, starting, gone, or offline when the shard does not run
	Faults  int    `json:"faults"`          // rules and quirks that are on it
}

// tile returns the tile of a host.
func tile(h *rack.Host, rules []fault.Listed, o Object) Tile {
	v := h.Machine()
	t := Tile{
		Index: h.Index(), Name: h.Name(), Rack: h.Rack(), Profile: v.Profile.Name, Power: string(v.Power), Boot: string(v.Phase),
		State: o.State, Role: o.Role, Error: o.Error, Health: string(health(v)), BMC: string(h.Reach()), Faults: len(h.Quirks()),
	}
	if !v.AC {
		t.Power = "NoAC"
	}
	for _, r := range rules {
		if on(r, h.Name()) {
			t.Faults++
		}
	}
	return t
}

// on reports whether a fault rule is for a host.
func on(r fault.Listed, host string) bool {
	if r.Phase == fault.Over {
		return false
	}
	ok, err := path.Match(r.BMC, host)
	return r.BMC == "" || err == nil && ok
}

// health returns the worst health of a server's drives, volumes, fans and power supplies.
func health(v *machine.View) event.Severity {
	worst := event.OK
	note := func(s event.Severity) {
		if s == event.Critical || s == event.Warning && worst == event.OK {
			worst = s
		}
	}
	for _, c := range v.Storage.Controllers() {
		for _, d := range c.Drives {
			if d.Serial != "" {
				note(d.Health())
			}
		}
		for _, x := range c.Volumes {
			note(x.Health())
		}
	}
	for n := range v.Thermal.Model.Fans.Count {
		if v.Thermal.FanFailed(n) {
			note(failures[v.Thermal.FanRedundancy()])
		}
	}
	for n := range v.Thermal.Model.Supplies.Count {
		if v.Thermal.SupplyFault(n) != thermal.NoFault {
			note(failures[v.Thermal.SupplyRedundancy()])
		}
	}
	return worst
}

// failures are the health of a server with a failed fan or power supply, by the redundancy
// of the remaining ones.
var failures = map[thermal.Redundancy]event.Severity{
	thermal.Redundant: event.Warning, thermal.Bare: event.Warning, thermal.Insufficient: event.Critical,
}
