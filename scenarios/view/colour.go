package view

import "strconv"

// Tone is a colour by its meaning. The style sheet has its values for dark and light.
type Tone string

// The tones.
const (
	Good    Tone = "good"
	Busy    Tone = "busy"
	Warn    Tone = "warn"
	Bad     Tone = "bad"
	Info    Tone = "info"
	Special Tone = "special"
	Quiet   Tone = "quiet" // off, or nothing to say
)

// Shade is a value of a tile and its tone.
type Shade struct {
	Value string `json:"value"`
	Label string `json:"label"`
	Tone  Tone   `json:"tone"`
}

// Scheme is a way to colour the tiles.
type Scheme struct {
	Name   string  `json:"name"` // in links
	Label  string  `json:"label"`
	Field  string  `json:"field"` // field of a tile, as JSON spells it
	Shades []Shade `json:"shades"`
	// Other is the tone of values without a shade.
	Other Tone `json:"other"`

	value func(*Tile) string
}

// Schemes are all ways to colour the tiles.
var Schemes = []Scheme{
	{Name: "power", Label: "Power", Field: "power", Other: Quiet, value: func(t *Tile) string { return t.Power }, Shades: []Shade{
		{"On", "on", Good}, {"PoweringOn", "powering on", Busy}, {"PoweringOff", "powering off", Busy}, {"Paused", "paused", Info},
		{"Off", "off", Quiet}, {"NoAC", "no AC power", Bad}, {"", "unknown", Quiet},
	}},
	{Name: "state", Label: "Provisioning", Field: "state", Other: Info, value: func(t *Tile) string { return t.State }, Shades: []Shade{
		{"provisioned", "provisioned", Good}, {"externally provisioned", "externally provisioned", Good}, {"available", "available", Info},
		{"registering", "registering", Busy}, {"inspecting", "inspecting", Busy}, {"preparing", "preparing", Busy}, {"provisioning", "provisioning", Busy},
		{"deprovisioning", "deprovisioning", Warn}, {"deleting", "deleting", Warn}, {"powering off before delete", "powering off before delete", Warn},
		{"unmanaged", "unmanaged", Special}, {"", "no object", Quiet},
	}},
	{Name: "role", Label: "Role", Field: "role", Other: Info, value: func(t *Tile) string { return t.Role }, Shades: []Shade{
		{"control-plane", "control plane", Special}, {"worker", "worker", Good}, {"", "none", Quiet},
	}},
	{Name: "health", Label: "Health", Field: "health", Other: Quiet, value: func(t *Tile) string { return t.Health }, Shades: []Shade{
		{"OK", "OK", Good}, {"Warning", "warning", Warn}, {"Critical", "critical", Bad}, {"", "unknown", Quiet},
	}},
	{Name: "bmc", Label: "BMC", Field: "bmc", Other: Quiet, value: func(t *Tile) string { return t.BMC }, Shades: []Shade{
		{"reachable", "reachable", Good}, {"starting", "starting", Busy}, {"gone", "gone", Bad}, {offline, "offline", Bad},
	}},
	{Name: "faults", Label: "Faults", Field: "faults", Other: Bad, value: func(t *Tile) string { return strconv.Itoa(t.Faults) }, Shades: []Shade{
		{"0", "none", Quiet}, {"1", "one", Warn},
	}},
}

// scheme returns the scheme of a name.
func scheme(name string) (Scheme, bool) {
	for _, s := range Schemes {
		if s.Name == name {
			return s, true
		}
	}
	return Scheme{}, false
}

// tone returns the tone of a tile.
func (s *Scheme) tone(t *Tile) Tone {
	is := s.value(t)
	for _, shade := range s.Shades {
		if shade.Value == is {
			return shade.Tone
		}
	}
	return s.Other
}
