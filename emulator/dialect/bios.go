package dialect

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// BIOS is how a vendor's service has settings of the BIOS applied. Its zero
// value is what the standard asks for: what was sent is applied at the next
// reset, unless it says when (DSP0266, "Settings resource").
type BIOS struct {
	// Held says that settings which come without an apply time are kept, and
	// that no reset applies them before a client has said when: by a change that
	// has an apply time, and which may have nothing else.
	WaitForApplyTime bool
	// Task says that a change with an apply time is answered with a task, which
	// ends when it was applied.
	TaskForApplyTime bool
	TaskName         string // name of its job; "": "Apply BIOS settings"
	// Takes is for how long POST waits while settings that have a task are
	// applied.
	ApplyDuration time.Duration
	// Lag is of how many settings the service knows that the BIOS does not, as the
	// registry is newer: of those that are asked for the last, by name, are taken,
	// and then not applied, of which @Redfish.Settings tells.
	UnknownToBIOS int
	ApplyTimes    []firmware.ApplyTime // that the service offers; none: all
	// Whole says that the settings are shown with all attributes as they will be,
	// not with those alone that wait.
	SettingsShowAll bool
	// Flat says that attributes stand in the resources themselves, as they did
	// before there was a place for them.
	FlatAttributes bool
}

// validateBIOS says what is wrong with it.
func (r *Record) validateBIOS(need func(ok bool, field, fix string)) {
	for i, t := range r.BIOS.ApplyTimes {
		need(slices.Contains(firmware.SettingsTimes, t), item("bios.applyTimes", i), fmt.Sprintf("%q: must be one of %v", t, firmware.SettingsTimes))
	}
	need(r.BIOS.ApplyDuration >= 0 && r.BIOS.ApplyDuration <= time.Hour, "bios.applyDuration", "must be 0 to an hour")
	need(r.BIOS.UnknownToBIOS >= 0, "bios.unknownToBIOS", "must not be negative")
	need(!r.BIOS.WaitForApplyTime || r.BIOS.TaskForApplyTime, "bios.taskForApplyTime", "must be true where waitForApplyTime is: nothing else applies the settings")
}
