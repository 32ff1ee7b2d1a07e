package dialect

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// BIOS describes how the service applies BIOS settings. The zero value is what the
// standard asks for: a PATCH of the settings resource is applied at the next reset,
// unless it has an apply time (DSP0266, "Settings resource").
type BIOS struct {
	// WaitForApplyTime keeps settings that were sent without an apply time: no reset
	// applies them until a client sends an apply time, alone or with more settings.
	WaitForApplyTime bool
	// TaskForApplyTime answers a PATCH that has an apply time with a task, which
	// ends when the settings have been applied.
	TaskForApplyTime bool
	TaskName         string // Name of that task; "" is "Apply BIOS settings"
	// ApplyDuration is how much longer POST takes while it applies settings that
	// have a task: at most an hour.
	ApplyDuration time.Duration
	// UnknownToBIOS is how many of the settings of a PATCH the BIOS does not know
	// because the service's registry is newer. The service accepts them; the last
	// of them by name are then not applied, and @Redfish.Settings has a message for
	// each.
	UnknownToBIOS int
	ApplyTimes    []firmware.ApplyTime // apply times that the service offers; empty: all
	// SettingsShowAll makes the settings resource show all attributes with their
	// future values, instead of those that wait to be applied.
	SettingsShowAll bool
	// FlatAttributes shows the attributes in the Bios and settings resources
	// themselves, instead of in Attributes: as iLO 4 does, which is older than that
	// property.
	FlatAttributes bool
}

// validateBIOS checks BIOS.
func (r *Record) validateBIOS(need func(ok bool, field, fix string)) {
	for i, t := range r.BIOS.ApplyTimes {
		need(slices.Contains(firmware.SettingsTimes, t), item("bios.applyTimes", i), fmt.Sprintf("%q: must be one of %v", t, firmware.SettingsTimes))
	}
	need(r.BIOS.ApplyDuration >= 0 && r.BIOS.ApplyDuration <= time.Hour, "bios.applyDuration", "must be 0 to an hour")
	need(r.BIOS.UnknownToBIOS >= 0, "bios.unknownToBIOS", "must not be negative")
	need(!r.BIOS.WaitForApplyTime || r.BIOS.TaskForApplyTime, "bios.taskForApplyTime", "must be true where waitForApplyTime is: nothing else applies the settings")
}
