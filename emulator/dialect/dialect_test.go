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
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

func TestGenericRecordIsValid(t *testing.T) {
	if err := generic.Record.Validate(); err != nil {
		t.Error(err)
	}
}

func TestOEMCommandsAreValidated(t *testing.T) {
	r := generic.Record
	r.IPMI.OEMCommands, r.IPMI.OEMSystemInfo = idrac.OEMCommands, idrac.OEMSystemInfo
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []dialect.OEMCommand{
		{NetFn: 0x06, Name: "a", Privilege: 2}, {NetFn: 0x30, Privilege: 2}, {NetFn: 0x30, Name: "a"},
		{NetFn: 0x30, Name: "a", Privilege: 2, Prefix: []byte{1}}, {NetFn: 0x30, Name: "a", Privilege: 2, Response: []dialect.OEMField{{}}},
		{NetFn: 0x30, Name: "a", Privilege: 2, Response: []dialect.OEMField{{Value: "luck", Size: 2}}},
	} {
		r.IPMI.OEMCommands = []dialect.OEMCommand{bad}
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "ipmi.oemCommands") {
			t.Errorf("%+v is valid: %v", bad, err)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for field, spoil := range map[string]func(r *dialect.Record){
		"name":                                  func(r *dialect.Record) { r.Name = "" },
		"redfishVersion":                        func(r *dialect.Record) { r.RedfishVersion = "" },
		"systemID":                              func(r *dialect.Record) { r.SystemID = "" },
		"managerID":                             func(r *dialect.Record) { r.ManagerID = "" },
		"redundantReset":                        func(r *dialect.Record) { r.RedundantReset = "shrug" },
		"bmc.sessionTimeout":                    func(r *dialect.Record) { r.BMC.SessionTimeout = time.Second },
		"resetTypes":                            func(r *dialect.Record) { r.ResetTypes = nil },
		`resetTypes[0]: "Kick": must be one of`: func(r *dialect.Record) { r.ResetTypes = []machine.ResetKind{"Kick"} },
		"bootTargets":                           func(r *dialect.Record) { r.BootTargets = []machine.SourceKind{"Tape"} },
		"protocol.messages.X":                   func(r *dialect.Record) { r.Protocol.Messages = map[string]dialect.VendorMessage{"X": {Key: "Y"}} },
		"bmc.key":                               func(r *dialect.Record) { r.BMC.Key = "wood" },
		"bmc.accounts.most":                     func(r *dialect.Record) { r.BMC.Accounts.Most = 0 },
		"bmc.accounts.types":                    func(r *dialect.Record) { r.BMC.Accounts.Types = r.BMC.Accounts.Types[1:] },
		"policy.minPassword":                    func(r *dialect.Record) { r.BMC.Accounts.Policy.MaxPassword = 1 },
		"policy.forgetAfter":                    func(r *dialect.Record) { r.BMC.Accounts.Policy.LockoutCounterResetAfter = time.Hour },
		"policy.sessionEnd":                     func(r *dialect.Record) { r.BMC.Accounts.Policy.AbsoluteSessionTimeout = 0 },
		"chassisID":                             func(r *dialect.Record) { r.ChassisID = "" },
		"bmc.taskRetention.ended":               func(r *dialect.Record) { r.BMC.TaskRetention.Ended = time.Second },
		"logs":                                  func(r *dialect.Record) { r.Logs.Manager = "" },
		"maxImageBytes":                         func(r *dialect.Record) { r.MaxImageBytes = 0 },
		"tasks.missingReads":                    func(r *dialect.Record) { r.Tasks.MissingReads = -1 },
		"bios.applyTimes[0]":                    func(r *dialect.Record) { r.BIOS.ApplyTimes = []firmware.ApplyTime{"Soon"} },
		"bios.applyDuration":                    func(r *dialect.Record) { r.BIOS.ApplyDuration = 2 * time.Hour },
		"bios.unknownToBIOS":                    func(r *dialect.Record) { r.BIOS.UnknownToBIOS = -1 },
		"bios.taskForApplyTime":                 func(r *dialect.Record) { r.BIOS.WaitForApplyTime, r.BIOS.TaskForApplyTime = true, false },
		"protocol.pageSize":                     func(r *dialect.Record) { r.Protocol.PageSize = -1 },
		"protocol.etags.format":                 func(r *dialect.Record) { r.Protocol.ETags.Format = "loose" },
		"protocol.etags.comparison":             func(r *dialect.Record) { r.Protocol.ETags.Comparison = "loose" },
		"protocol.etags.gzipSuffix":             func(r *dialect.Record) { r.Protocol.ETags.GzipSuffix, r.Protocol.Gzip = true, false },
		"protocol.patchDelay":                   func(r *dialect.Record) { r.Protocol.PatchDelay = -1 },
		"protocol.emptyCollectionsAfterBoot":    func(r *dialect.Record) { r.Protocol.EmptyCollectionsAfterBoot = -1 },
		"ipmi.manufacturer":                     func(r *dialect.Record) { r.IPMI.Manufacturer = 1 << 20 },
		"ipmi.revision":                         func(r *dialect.Record) { r.IPMI.Revision = 16 },
		"ipmi.firstUser":                        func(r *dialect.Record) { r.IPMI.FirstUser = 64 },
		"ipmi.maxSessions":                      func(r *dialect.Record) { r.IPMI.MaxSessions = 256 },
		"ipmi.maxPendingLogins":                 func(r *dialect.Record) { r.IPMI.MaxPendingLogins = 257 },
		"ipmi.addedSDRBytes":                    func(r *dialect.Record) { r.IPMI.AddedSDRBytes = 1 << 16 },
		"ipmi.clearSELDuration":                 func(r *dialect.Record) { r.IPMI.ClearSELDuration = time.Hour },
		"ipmi.faults.writesPerWindow":           func(r *dialect.Record) { r.IPMI.Faults.WritesPerWindow, r.IPMI.Faults.WriteWindow = 1, 0 },
		"ipmi.cipherSuites":                     func(r *dialect.Record) { r.IPMI.CipherSuites = nil },
		"ipmi.missingBootOptions[0]":            func(r *dialect.Record) { r.IPMI.MissingBootOptions = []uint8{8} },
		"bmc.slots":                             func(r *dialect.Record) { r.BMC.Slots = []bmc.SlotSpec{{ID: "Cd"}, {ID: "Cd"}} },
	} {
		r := generic.Record
		spoil(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("Validate() = %v, want an error that names %s", err, field)
		}
	}
}

// TestRejectRulesWithoutAPropertyHaveNoArguments shows that a message never gets an
// argument that the rejected request does not have.
func TestRejectRulesWithoutAPropertyHaveNoArguments(t *testing.T) {
	for _, tt := range []struct {
		text string
		rule dialect.RejectRule
		bad  bool
	}{
		{"%1", dialect.RejectRule{While: dialect.SystemOn}, true},
		{"%1", dialect.RejectRule{Missing: []string{"Image"}}, false},
		{"%2", dialect.RejectRule{Missing: []string{"Image"}}, true},
		{"%2", dialect.RejectRule{SendsAny: []string{"Image"}}, false},
	} {
		r := generic.Record
		tt.rule.ResourceType, tt.rule.Message = "VirtualMedia", dialect.VendorMessage{Registry: "Base", Version: "1.0.0", Key: "A", Text: tt.text}
		r.Presentation.RejectRules = []dialect.RejectRule{tt.rule}
		if err := r.Validate(); (err != nil) != tt.bad {
			t.Errorf("text %q of %+v: %v", tt.text, tt.rule, err)
		}
	}
}
