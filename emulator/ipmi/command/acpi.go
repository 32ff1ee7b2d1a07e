package command

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// ACPI power states of the system and of the device (§20.6).
const (
	acpiWorking     = 0x00 // S0, D0
	acpiHibernating = 0x04 // S4
	acpiSoftOff     = 0x05 // S5
	acpiLegacyOn    = 0x20 // on, no ACPI yet
)

var (
	acpiSystem = []byte{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x20, 0x21, 0x2a}
	acpiDevice = []byte{0x00, 0x01, 0x02, 0x03, 0x2a}
)

// acpiState holds the ACPI power states that a client has set. The system's
// state is valid until the machine's power changes, which the BMC sees itself.
type acpiState struct {
	system, device byte
	systemSet      bool // system was set
	power          machine.Power
	boots          uint64
}

const acpiSet, acpiNoChange = 1 << 7, 0x7f

// setACPIPowerState handles Set ACPI Power State (§20.6).
func setACPIPowerState(x *Request) error {
	system, device := x.data[0], x.data[1]
	wrong := func(b byte, known []byte) bool {
		return b&acpiSet != 0 && b != acpiSet|acpiNoChange && !slices.Contains(known, b&^acpiSet)
	}
	if wrong(system, acpiSystem) || wrong(device, acpiDevice) {
		return InvalidDataField
	}
	v, is := x.machine(), &x.State.acpi
	if system&acpiSet != 0 && system != acpiSet|acpiNoChange {
		is.system, is.systemSet, is.power, is.boots = system&^acpiSet, true, v.Power, v.Boots
	}
	if device&acpiSet != 0 && device != acpiSet|acpiNoChange {
		is.device = device &^ acpiSet
	}
	return nil
}

// getACPIPowerState handles Get ACPI Power State (§20.7).
func getACPIPowerState(x *Request) error {
	v, is := x.machine(), &x.State.acpi
	system := acpiPowerState(v)
	if is.systemSet && is.power == v.Power && is.boots == v.Boots {
		system = is.system
	}
	x.put(system, is.device)
	return nil
}

// acpiPowerState returns the ACPI state that follows from the machine's power.
func acpiPowerState(v *machine.View) byte {
	switch {
	case v.Power == machine.PowerOff && v.SuspendedImage != nil:
		return acpiHibernating
	case v.Power == machine.PowerOff:
		return acpiSoftOff
	case v.OS == nil:
		return acpiLegacyOn
	}
	return acpiWorking
}
