package redfish

import (
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// others are values of the types of machine.Main that are not zero, by type: of
// those that a piece has words for, one of these.
var others = map[reflect.Type]any{
	reflect.TypeFor[machine.Phase]():         machine.InSetup,
	reflect.TypeFor[machine.Progress]():      machine.Progress("OSRunning"),
	reflect.TypeFor[time.Time]():             time.Unix(1_900_000_000, 0),
	reflect.TypeFor[bool]():                  true,
	reflect.TypeFor[*machine.PendingReset](): &machine.PendingReset{},
	reflect.TypeFor[machine.PowerLoss]():     machine.PowerLoss("x"),
	reflect.TypeFor[machine.Duration]():      machine.Duration{Duration: time.Minute},
	reflect.TypeFor[machine.ResetCause]():    machine.CauseCommand,
	reflect.TypeFor[machine.RestorePolicy](): machine.AlwaysOn,
	reflect.TypeFor[*machine.LastReset]():    &machine.LastReset{Cause: machine.CauseCommand},
	reflect.TypeFor[machine.Override]():      machine.Override{Enabled: machine.Once, Target: machine.Cd},
	reflect.TypeFor[uint64]():                uint64(7),
	reflect.TypeFor[int]():                   7,
	reflect.TypeFor[[]machine.Source]():      []machine.Source{{Kind: machine.Cd}},
	reflect.TypeFor[machine.SourceKind]():    machine.Usb,
	reflect.TypeFor[*machine.Source]():       &machine.Source{Kind: machine.Cd},
	reflect.TypeFor[*machine.OS]():           &machine.OS{Name: "x"},
}

// A piece that is said to be alike is: whatever else of power and boot differs.
func TestPiecesThatAreAlikeShowTheSame(t *testing.T) {
	h := newHost(t)
	m := newService(t, h).find(httptest.NewRequest("GET", sys, nil).URL)
	for _, base := range []machine.Phase{machine.Off, machine.InSetup, machine.Running} {
		for i := range reflect.TypeFor[machine.Main]().NumField() {
			f := reflect.TypeFor[machine.Main]().Field(i)
			other, ok := others[f.Type]
			if !ok {
				t.Fatalf("%s: others needs a value of %s", f.Name, f.Type)
			}
			was, is := machine.Main{Phase: base, FirmwareApp: machine.Diags}, machine.Main{Phase: base, FirmwareApp: machine.Diags}
			reflect.ValueOf(&is).Elem().Field(i).Set(reflect.ValueOf(other))
			for _, p := range systemPieces {
				if p.alike == nil || !p.alike(&was, &is) {
					continue
				}
				show := func(main *machine.Main) object {
					at := look(h)
					view := *at.m
					view.Main, at.m = main, &view
					return p.of(m.see(m.follows(&p), at))
				}
				if diff := cmp.Diff(show(&was), show(&is)); diff != "" {
					t.Errorf("machines that differ in %s are alike, and show:\n%s", f.Name, diff)
				}
			}
		}
	}
}
