package machine

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// Profile is a server model: what all servers of the model share. It is parsed
// once and immutable.
type Profile struct {
	Name         string                    `json:"name"`         // name that rack files refer to
	Dialect      string                    `json:"dialect"`      // name of the dialect of its BMC
	Manufacturer string                    `json:"manufacturer"` // manufacturer of the system
	Model        string                    `json:"model"`        // model of the system
	SKU          string                    `json:"sku"`          // SKU of the system
	PartNumber   string                    `json:"partNumber"`   // part number of the system
	BIOS         BIOS                      `json:"bios"`
	BMCFirmware  string                    `json:"bmcFirmware"` // version of the BMC firmware
	BMCModel     string                    `json:"bmcModel"`    // Manager.Model; "" is that of the dialect
	Processors   Processors                `json:"processors"`
	MemoryMiB    int                       `json:"memoryMiB"` // total size of the memory
	Memory       Memory                    `json:"memory"`
	NICs         []NICModel                `json:"nics"`
	Cards        []Card                    `json:"cards"`
	TPM          *TPMModel                 `json:"tpm"` // nil: none
	Storage      []storage.ControllerModel `json:"storage"`
	Thermal      thermal.Model             `json:"thermal"`
	SecureBoot   SecureBootModel           `json:"secureBoot"`
	BootOrder    []SourceKind              `json:"bootOrder"` // default boot order
	OS           OSBehavior                `json:"os"`
	Timings      Timings                   `json:"timings"`
	Telemetry    Telemetry                 `json:"-"` // initial definitions; built from the sensors
	Firmware     FirmwareModel             `json:"firmware"`
}

// BIOS identifies the system firmware (SMBIOS type 0).
type BIOS struct {
	Vendor  string `json:"vendor"`  // as SMBIOS has it
	Version string `json:"version"` // version of the BIOS firmware
	Date    string `json:"date"`    // MM/DD/YYYY
}

// Timings are a model's delays in lab time.
type Timings struct {
	PowerOn  Duration `json:"powerOn"`  // from power-on to the first instruction
	POST     Duration `json:"post"`     // power-on self test
	OSBoot   Duration `json:"osBoot"`   // from the boot loader to a running system
	Shutdown Duration `json:"shutdown"` // graceful shutdown of an operating system
	PowerOff Duration `json:"powerOff"` // until the power supplies are off
	Graceful Duration `json:"graceful"` // how long a graceful reset waits for an operating system that ignores it
	Dump     Duration `json:"dump"`     // crash dump before a restart
}

// OSBehavior says what operating systems on a model do, and how the model
// treats them.
type OSBehavior struct {
	PanicOnNMI         bool        `json:"panicOnNMI"`     // an NMI crashes the operating system
	RestartOnCrash     bool        `json:"restartOnCrash"` // the operating system restarts after a crash
	ForcedAfterTimeout []ResetKind `json:"forces"`         // graceful resets that become forced ones when the system ignores them
}

// Duration is a time.Duration that is written like Go's ("90s").
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
