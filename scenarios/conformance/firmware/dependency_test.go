package firmware

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	simfirmware "github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// dependent lists a server model of each dialect and registry whose settings depend on
// each other.
var dependent = []string{
	"generic", "dense", "vast", "dell-r730", "dell-r640", "dell-r650", "dell-r770", "hpe-dl360-gen9", "hpe-dl360-gen10", "hpe-dl360-gen11",
	"hpe-dl360-gen12", "fujitsu-rx2530-m6", "fujitsu-rx2530-m7", "lenovo-sr650-v2", "lenovo-sr650-v3", "supermicro-1029u", "supermicro-621c",
	"gigabyte-r282", "huawei-1288h-v5",
}

// dependencyBench is a BMC whose dependencies are tested, and the settings that the driver reads.
type dependencyBench struct {
	t       *testing.T
	l       *racktest.Rack
	h       *rack.Host
	c       client
	present bmc.BIOS
}

func newDependencyBench(t *testing.T, profile string) *dependencyBench {
	t.Helper()
	l := start(t, profile)
	b := &dependencyBench{t: t, l: l, h: l.First()}
	c := config(t, l, b.h)
	c.Registries = new(bmc.Registries)
	b.c = open(t, c)
	b.boot() // some BMCs show no settings before the first start
	return b
}

// boot restarts the system, waits until POST is over, and reads the settings that there
// are then.
func (b *dependencyBench) boot() {
	b.t.Helper()
	for _, to := range []struct {
		kind  machine.ResetKind
		power machine.Power
		takes time.Duration
	}{{machine.ForceOff, machine.PowerOff, 0}, {machine.ResetOn, machine.PowerOn, time.Hour}} {
		if b.h.Machine().Power == to.power {
			continue
		}
		if err := b.h.Apply(b.t.Context(), machine.Reset{Kind: to.kind}); err != nil {
			b.t.Fatal(err)
		}
		for range 100 {
			if b.h.Machine().Power == to.power {
				break
			}
			b.l.Advance(10 * time.Second)
		}
		b.l.Advance(to.takes)
		b.l.Settle()
	}
	b.read()
}

func (b *dependencyBench) read() {
	b.t.Helper()
	var err error
	if b.present, err = b.c.BIOS(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// restore sets the settings to their defaults.
func (b *dependencyBench) restore() {
	b.t.Helper()
	b.apply(simfirmware.ClearPending{})
	b.apply(simfirmware.ResetBIOS{})
	b.boot()
}

func (b *dependencyBench) apply(c simfirmware.Command) {
	b.t.Helper()
	if err := b.h.Apply(b.t.Context(), machine.Firmware{Command: c}); err != nil {
		b.t.Fatal(err)
	}
}

// ask asks the BMC for settings, and returns its refusals by name.
func (b *dependencyBench) ask(s bmc.Settings) map[string]string {
	b.t.Helper()
	err := b.c.SetBIOS(b.t.Context(), s)
	refused := new(bmc.SettingsError)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused.Refused
	}
	b.t.Errorf("SetBIOS(%v) = %v, want it accepted, or refused by name", s, err)
	return nil
}

// judge returns whether the driver's side and the BMC allow a setting in a change. Both
// must agree, but for a strict BMC, which takes unlocked settings after a reset only, and
// for a value that other settings give: the driver's side does not ask for that.
func (b *dependencyBench) judge(what, name string, change bmc.Settings) bool {
	b.t.Helper()
	r := b.present.Registry
	e, locked := r.Locks(b.present.Settings, change)[name]
	why, refused := b.ask(change)[name]
	rules := r.Rules(b.after(change))
	given, follows := rules.Forced(name)
	follows = follows && bmc.SameValue(r.Attribute(name), given, change[name])
	locked = locked || !within(rules.Attribute(name), change[name])
	if locked && !refused || refused && !locked && !b.strict() && !follows {
		b.t.Errorf("%s: %v: the BMC refuses %s: %v (%s); Locks() = %v", what, change, name, refused, why, e)
	}
	b.apply(simfirmware.ClearPending{})
	if e == nil {
		return !locked
	}
	if len(e.Unlock) == 0 || !strings.Contains(e.Error(), "set "+e.Unlock[0].Name+" to ") {
		b.t.Errorf("%s: %v: %v: names no setting that unlocks it", what, change, e)
	}
	for _, c := range e.Unlock {
		change = with(change, c.Name, c.Value)
	}
	if why, refused := b.ask(change)[name]; refused && !b.strict() {
		b.t.Errorf("%s: %v: the BMC refuses %s (%s) after what unlocks it", what, change, name, why)
	}
	b.apply(simfirmware.ClearPending{})
	return !locked
}

// within reports whether an Integer is within its bounds.
func within(a *bmc.Attribute, v any) bool {
	n, ok := v.(int64)
	return !ok || (a.Lower == nil || n >= *a.Lower) && (a.Upper == nil || n <= *a.Upper)
}

func (b *dependencyBench) strict() bool {
	return b.h.Machine().Profile.Firmware.Model.Registry().Strict
}

// after returns the settings that there are after a change.
func (b *dependencyBench) after(change bmc.Settings) bmc.Settings {
	out := maps.Clone(b.present.Settings)
	maps.Copy(out, change)
	return out
}

// row tests one dependency: the change that it locks or unlocks is refused by both sides
// while it is locked, and accepted and applied while it is not.
func (b *dependencyBench) row(d bmc.Dependency) {
	b.t.Helper()
	what := fmt.Sprintf("%s %s %v if %v", d.Attribute, d.Property, d.Value, d.If)
	met, unmet := b.with(d, true), b.with(d, false)
	than := b.present.Settings[d.Attribute]
	if given, ok := b.present.Registry.Rules(b.after(met)).Forced(d.Attribute); ok {
		than = given
	}
	other := b.another(d.Attribute, than)
	met[d.Attribute], unmet[d.Attribute] = other, other
	holds, broken := b.judge(what, d.Attribute, met), b.judge(what, d.Attribute, unmet)
	switch {
	case d.Property == bmc.ReadOnly && d.Value == false && !holds:
		b.t.Errorf("%s: %v is locked", what, met)
	case d.Property == bmc.ReadOnly && d.Value == false && broken && !bmc.SameValue(nil, other, b.present.Settings[d.Attribute]):
		b.t.Errorf("%s: %v is not locked", what, unmet)
	case (d.Property == bmc.ReadOnly && d.Value == true || d.Property == bmc.CurrentValue) && holds:
		b.t.Errorf("%s: %v is not locked", what, met)
	}
	b.settle(what, d, met, holds)
}

// settle applies the change while the row holds. Where the row locks the setting that is
// left out, and the row may give it a value.
func (b *dependencyBench) settle(what string, d bmc.Dependency, change bmc.Settings, allowed bool) {
	b.t.Helper()
	if !allowed {
		delete(change, d.Attribute)
	}
	maps.DeleteFunc(change, func(name string, v any) bool { return bmc.SameValue(nil, b.present.Settings[name], v) })
	if len(change) == 0 {
		return // it is so now
	}
	for range 2 { // a strict BMC takes unlocked settings after a reset
		rest := maps.Clone(change)
		for name := range b.ask(rest) {
			delete(rest, name)
		}
		if len(rest) < len(change) && len(rest) > 0 && b.ask(rest) != nil {
			b.t.Errorf("%s: %v is refused", what, rest)
		}
		b.boot()
		maps.DeleteFunc(change, func(name string, v any) bool {
			return bmc.SameValue(b.present.Registry.Attribute(name), b.present.Settings[name], v)
		})
		if len(change) == 0 {
			break
		}
	}
	if len(change) > 0 {
		b.t.Errorf("%s: %v is not applied after two resets", what, change)
	}
	if now := b.present.Settings[d.Attribute]; d.Property == bmc.CurrentValue && !bmc.SameValue(nil, now, d.Value) {
		b.t.Errorf("%s: %s is %v, want what the row gives it", what, d.Attribute, now)
	}
	b.restore()
}

// with returns the change after which a dependency's conditions hold or do not.
func (b *dependencyBench) with(d bmc.Dependency, holds bool) bmc.Settings {
	probe := bmc.NewAttributeRegistry("", b.present.Registry.Attributes, bmc.Dependency{If: d.If, Attribute: "probe", Property: bmc.CurrentValue, Value: "yes"})
	var names []string
	for _, c := range d.If {
		if !slices.Contains(names, c.Attribute) {
			names = append(names, c.Attribute)
		}
	}
	var try func(change bmc.Settings, names []string) bmc.Settings
	try = func(change bmc.Settings, names []string) bmc.Settings {
		if _, yes := probe.Rules(b.after(change)).Forced("probe"); yes == holds {
			return change
		}
		if len(names) == 0 {
			return nil
		}
		for _, v := range append([]any{b.present.Settings[names[0]]}, b.values(names[0])...) {
			if got := try(with(change, names[0], v), names[1:]); got != nil {
				return got
			}
		}
		return nil
	}
	change := try(bmc.Settings{}, names)
	if change == nil {
		b.t.Fatalf("nothing makes %+v hold: %v", d.If, holds)
	}
	return change
}

func with(s bmc.Settings, name string, v any) bmc.Settings {
	out := maps.Clone(s)
	out[name] = v
	return out
}

// values returns some values that an attribute can have.
func (b *dependencyBench) values(name string) []any {
	var out []any
	a := b.present.Registry.Attribute(name)
	switch a.Type {
	case bmc.EnumerationAttribute:
		for _, v := range a.Values {
			out = append(out, v)
		}
	case bmc.BooleanAttribute:
		out = append(out, true, false)
	case bmc.IntegerAttribute:
		for _, n := range []*int64{a.Lower, a.Upper} {
			if n != nil {
				out = append(out, *n)
			}
		}
	default:
		form := regexp.MustCompile(b.h.Machine().Profile.Firmware.Model.Registry().Attribute(name).Pattern)
		for _, text := range []string{"http://192.0.2.1/x", "192.0.2.1", "2001:db8::1", "some", "x"} {
			if n := int64(len(text)); form.MatchString(text) && (a.MaxLength == nil || n <= *a.MaxLength) && (a.MinLength == nil || n >= *a.MinLength) {
				out = append(out, text)
			}
		}
	}
	return out
}

// another returns a value that an attribute can have other than one.
func (b *dependencyBench) another(name string, than any) any {
	b.t.Helper()
	for _, v := range b.values(name) {
		if !bmc.SameValue(nil, than, v) {
			return v
		}
	}
	b.t.Fatalf("%s has no value but %v", name, than)
	return nil
}

// Each dependency of each dialect's registry means the same to the driver, which evaluates
// the registry that the BMC sends, and to the BMC: both refuse a locked setting by name,
// and the settings that unlock it by the driver do so.
func TestDependenciesOfEachDialect(t *testing.T) {
	for _, profile := range sample.Rows(t, "dependencies of dialects", 4, dependent) {
		t.Run(profile, func(t *testing.T) {
			b := newDependencyBench(t, profile)
			rows := b.present.Registry.Dependencies
			if got, want := len(rows), len(b.h.Machine().Profile.Firmware.Model.Registry().Dependencies); got != want || got == 0 {
				t.Fatalf("the driver reads %d dependencies, want %d", got, want)
			}
			for _, d := range rows {
				b.row(d)
			}
		})
	}
}

// dependent has a model of each dialect and registry of the built-in models.
func TestDependentModelsAreAll(t *testing.T) {
	listed := map[[2]string]bool{}
	of := func(name string) ([2]string, bool) {
		p, d, err := rack.ReadProfile(fixtures.Profiles, name)
		if err != nil {
			t.Fatal(name, err)
		}
		if p.Firmware.Registry == "" {
			return [2]string{}, false
		}
		return [2]string{d.Name, p.Firmware.Registry}, len(p.Firmware.Model.Registry().Dependencies) > 0
	}
	for _, name := range dependent {
		is, _ := of(name)
		listed[is] = true
	}
	all, err := fixtures.Profiles.ReadDir("profiles")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, f := range all {
		name := strings.TrimSuffix(f.Name(), ".yaml")
		if is, depend := of(name); depend && !listed[is] {
			t.Errorf("dependent lacks a model of %v, such as %s", is, name)
		}
	}
}
