package machine

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// Profile is a server model: everything that two servers of that model share.
// It is parsed once and never changed.
type Profile struct {
	Name         string                    `json:"name"`
	Dialect      string                    `json:"dialect"` // of its BMC
	Manufacturer string                    `json:"manufacturer"`
	Model        string                    `json:"model"`
	SKU          string                    `json:"sku"`
	PartNumber   string                    `json:"partNumber"`
	BIOS         BIOS                      `json:"bios"`
	BMCFirmware  string                    `json:"bmcFirmware"`
	BMCModel     string                    `json:"bmcModel"` // "": as its dialect has it
	Processors   Processors                `json:"processors"`
	MemoryMiB    int                       `json:"memoryMiB"`
	Memory       Memory                    `json:"memory"`
	NICs         []NICModel                `json:"nics"`
	Cards        []Card                    `json:"cards"`
	TPM          *TPMModel                 `json:"tpm"` // nil: it has none
	Storage      []storage.ControllerModel `json:"storage"`
	Thermal      thermal.Model             `json:"thermal"`
	SecureBoot   SecureBootModel           `json:"secureBoot"`
	BootOrder    []SourceKind              `json:"bootOrder"`
	OS           OSBehavior                `json:"os"`
	Timings      Timings                   `json:"timings"`
	Telemetry    Telemetry                 `json:"-"` // at first; made of the sensors
	Firmware     FirmwareModel             `json:"firmware"`
}

// BIOS identifies the system firmware (SMBIOS type 0).
type BIOS struct {
	Vendor  string `json:"vendor"`
	Version string `json:"version"`
	Date    string `json:"date"` // MM/DD/YYYY
}

// Timings are a model's delays, on the model's clock.
type Timings struct {
	PowerOn  Duration `json:"powerOn"`  // from the button to the first instruction
	POST     Duration `json:"post"`     // power-on self test
	OSBoot   Duration `json:"osBoot"`   // from the boot loader to a running system
	Shutdown Duration `json:"shutdown"` // an operating system going down by itself
	PowerOff Duration `json:"powerOff"` // until the supply has really gone
	Graceful Duration `json:"graceful"` // for which a system is waited that is to shut down and does not hear it
	Dump     Duration `json:"dump"`     // a crashed system saving its memory, before it restarts
}

// OSBehavior is what systems on a model do, and what the model does with them.
type OSBehavior struct {
	PanicOnNMI         bool        `json:"panicOnNMI"`
	RestartOnCrash     bool        `json:"restartOnCrash"`
	ForcedAfterTimeout []ResetKind `json:"forces"` // graceful resets that are done by force when nobody heard them
}

// Duration is a time.Duration that is written as Go writes it ("90s").
type Duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q: use a form like 90s or 2m", b)
	}
	if v < 0 {
		return fmt.Errorf("%q: must not be negative", b)
	}
	d.Duration = v
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
