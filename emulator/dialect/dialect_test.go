package dialect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/dialect/idrac"
	"github.com/metalab-dev/metalab/emulator/machine"
)

func TestGenericIsValid(t *testing.T) {
	if err := generic.Record.Validate(); err != nil {
		t.Error(err)
	}
}

func TestVendorsCommandsAreValid(t *testing.T) {
	r := generic.Record
	r.IPMI.OEMCommands, r.IPMI.OEMSystemInfo = idrac.Commands, idrac.Info
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []dialect.OEMCommand{
		{NetFn: 0x06, Name: "a", Privilege: 2}, {NetFn: 0x30, Privilege: 2}, {NetFn: 0x30, Name: "a"},
		{NetFn: 0x30, Name: "a", Privilege: 2, Prefix: []byte{1}}, {NetFn: 0x30, Name: "a", Privilege: 2, Response: []dialect.OEMField{{}}},
		{NetFn: 0x30, Name: "a", Privilege: 2, Response: []dialect.OEMField{{Value: "luck", Size: 2}}},
	} {
		r.IPMI.OEMCommands = []dialect.OEMCommand{bad}
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "IPMI.Commands") {
			t.Errorf("%+v is valid: %v", bad, err)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for field, spoil := range map[string]func(r *dialect.Record){
		"Name":               func(r *dialect.Record) { r.Name = "" },
		"RedfishVersion":     func(r *dialect.Record) { r.RedfishVersion = "" },
		"SystemID":           func(r *dialect.Record) { r.SystemID = "" },
		"ManagerID":          func(r *dialect.Record) { r.ManagerID = "" },
		"Redundant":          func(r *dialect.Record) { r.RedundantReset = "shrug" },
		"BMC.SessionTimeout": func(r *dialect.Record) { r.BMC.SessionTimeout = time.Second },
		"ResetTypes":         func(r *dialect.Record) { r.ResetTypes = nil },
		`"Kick" is no reset`: func(r *dialect.Record) { r.ResetTypes = []machine.ResetKind{"Kick"} },
		"BootTargets":        func(r *dialect.Record) { r.BootTargets = []machine.SourceKind{"Tape"} },
		"Protocol.Sayings":   func(r *dialect.Record) { r.Protocol.Messages = map[string]dialect.VendorMessage{"X": {Key: "Y"}} },
		"BMC.Key":            func(r *dialect.Record) { r.BMC.Key = "wood" },
		"BMC.Accounts.Most":  func(r *dialect.Record) { r.BMC.Accounts.Most = 0 },
		"BMC.Accounts.Types": func(r *dialect.Record) { r.BMC.Accounts.Types = r.BMC.Accounts.Types[1:] },
		"Policy.MinPassword": func(r *dialect.Record) { r.BMC.Accounts.Policy.MaxPassword = 1 },
		"Policy.ForgetAfter": func(r *dialect.Record) { r.BMC.Accounts.Policy.ForgetAfter = time.Hour },
		"Policy.SessionEnd":  func(r *dialect.Record) { r.BMC.Accounts.Policy.SessionEnd = 0 },
		"BMC.Slots":          func(r *dialect.Record) { r.BMC.Slots = []bmc.SlotSpec{{ID: "Cd"}, {ID: "Cd"}} },
	} {
		r := generic.Record
		spoil(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("Validate() = %v, want an error that names %s", err, field)
		}
	}
}
