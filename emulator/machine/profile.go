package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
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
	Processors   Processors                `json:"processors"`
	MemoryMiB    int                       `json:"memoryMiB"`
	NICs         []NICModel                `json:"nics"`
	Storage      []storage.ControllerModel `json:"storage"`
	BootOrder    []SourceKind              `json:"bootOrder"`
	Timings      Timings                   `json:"timings"`
	Firmware     FirmwareModel             `json:"firmware"`
}

// BIOS identifies the system firmware (SMBIOS type 0).
type BIOS struct {
	Vendor  string `json:"vendor"`
	Version string `json:"version"`
	Date    string `json:"date"` // MM/DD/YYYY
}

// Processors describes a server's equal processors.
type Processors struct {
	Sockets int      `json:"sockets"`
	Cores   int      `json:"cores"`   // per socket
	Threads int      `json:"threads"` // per socket
	Vendor  string   `json:"vendor"`
	Model   string   `json:"model"`
	MHz     int      `json:"mhz"`
	Arch    string   `json:"arch"`  // as uname -m says
	Flags   []string `json:"flags"` // as /proc/cpuinfo spells them
}

// NICModel is one network port of a model.
type NICModel struct {
	ID         string `json:"id"`   // of the Redfish resource: "1"
	Name       string `json:"name"` // as Linux names it: "eno1"
	PCIVendor  string `json:"pciVendor"`
	PCIDevice  string `json:"pciDevice"`
	PCIAddress string `json:"pciAddress"` // 0000:3b:00.0
	SpeedMbps  int    `json:"speedMbps"`
}

// Timings are a model's delays, on the model's clock.
type Timings struct {
	PowerOn  Duration `json:"powerOn"`  // from the button to the first instruction
	POST     Duration `json:"post"`     // power-on self test
	OSBoot   Duration `json:"osBoot"`   // from the boot loader to a running system
	Shutdown Duration `json:"shutdown"` // an operating system going down by itself
	PowerOff Duration `json:"powerOff"` // until the supply has really gone
}

// Duration is a time.Duration that is written as Go writes it ("90s").
type Duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("machine: duration %q: use a form like 90s or 2m", b)
	}
	if v < 0 {
		return fmt.Errorf("machine: duration %q: must not be negative", b)
	}
	d.Duration = v
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// NIC is one network port of one server.
type NIC struct {
	*NICModel
	MAC string // lower case, colons
}

// Identity is what tells a server from its twins. All of it is derived from
// the rack's seed, the server's place and its name, so that Redfish, IPMI,
// SMBIOS and the agent tell the same story, and a lab made again is the same.
type Identity struct {
	Name    string
	Serial  string
	UUID    string // lower case
	NICs    []NIC
	Storage []storage.Controller
}

// NewIdentity derives the identity of the server that is the index-th of its
// rack, counted from 0. MAC addresses and WWNs carry the index itself and so
// cannot collide in a rack of less than 2^24 servers; they are locally
// administered and of no registered vendor.
func NewIdentity(seed uint64, index int, name string, p *Profile) Identity {
	sum := sha256.Sum256(fmt.Appendf(nil, "metalab/%d/%s", seed, name))
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // RFC 9562 version 8, custom
	x := hex.EncodeToString(u)
	id := Identity{
		Name:   name,
		Serial: serial("ML", sum[16:]),
		UUID:   fmt.Sprintf("%s-%s-%s-%s-%s", x[:8], x[8:12], x[12:16], x[16:20], x[20:]),
	}
	var at [4]byte
	binary.BigEndian.PutUint32(at[:], uint32(index))
	for i := range p.NICs {
		mac := fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[24], at[1], at[2], at[3], i)
		id.NICs = append(id.NICs, NIC{NICModel: &p.NICs[i], MAC: mac})
	}
	n := 0
	for c := range p.Storage {
		model := &p.Storage[c]
		ctl := storage.Controller{ControllerModel: model, Serial: serial("C", drawn(sum, "controller", c))}
		for b := range model.Bays {
			ctl.Drives = append(ctl.Drives, storage.Drive{
				Model:  &model.Bays[b],
				ID:     fmt.Sprintf("Disk.%d", n),
				Bay:    b,
				Serial: serial("D", drawn(sum, "drive", n)),
				// NAA 3: locally assigned (T10 SPC-5, §7.7.6.4).
				WWN: fmt.Sprintf("3%05x%02x%06x%02x", binary.BigEndian.Uint32(sum[25:29])>>12, 0, index, n),
			})
			n++
		}
		id.Storage = append(id.Storage, ctl)
	}
	return id
}

func drawn(sum [32]byte, kind string, n int) []byte {
	s := sha256.Sum256(fmt.Appendf(sum[:], "/%s/%d", kind, n))
	return s[:]
}

// serial makes a ten-character serial number without look-alike letters.
func serial(prefix string, from []byte) string {
	const digits = "0123456789ABCDEFGHJKLMNPQRSTVWXYZ"
	b := []byte(prefix)
	for i := 0; len(b) < 10; i++ {
		b = append(b, digits[int(from[i])%len(digits)])
	}
	return string(b)
}
