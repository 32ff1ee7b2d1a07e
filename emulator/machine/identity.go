package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// NIC is one network port of one server.
type NIC struct {
	*NICModel
	MAC string // lower case, colons
}

// Identity is what tells a server from its twins. All of it is derived from
// the rack's seed, the server's place and its name, so that Redfish, IPMI,
// SMBIOS and the agent tell the same story, and a lab made again is the same.
type Identity struct {
	Name string
	FRUInfo
	UUID    string // lower case
	NICs    []NIC
	Storage []storage.Controller
	// Root is what all else is drawn from when it is asked for.
	Root [sha256.Size]byte
}

// NewIdentity derives the identity of the server that is the index-th of its
// rack, counted from 0. MAC addresses and WWNs carry the index itself and so
// cannot collide in a rack of less than 2^24 servers; they are locally
// administered and of no registered vendor.
func NewIdentity(seed uint64, index int, name string, p *Profile) Identity {
	sum := sha256.Sum256(fmt.Appendf(nil, "metalab/%d/%s", seed, name))
	id := Identity{Name: name, FRUInfo: labelOf(p, serial("ML", sum[16:])), UUID: uuid(&sum), Root: sum}
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

// labelOf is what a server with a serial number says that it is.
func labelOf(p *Profile, serial string) FRUInfo {
	return FRUInfo{
		Manufacturer: p.Manufacturer, Model: p.Model, PartNumber: p.PartNumber, Serial: serial, ChassisPart: p.PartNumber, ChassisSerial: serial,
	}
}

// uuid makes a UUID of 16 bytes, which it changes to be one (RFC 9562, version
// 4, which is what clients know: some guess by it how IPMI orders the bytes).
func uuid(sum *[sha256.Size]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	x := hex.EncodeToString(u)
	return fmt.Sprintf("%s-%s-%s-%s-%s", x[:8], x[8:12], x[12:16], x[16:20], x[20:])
}

// BMCUUID is the UUID of the server's BMC, which is not its own: the same must
// not be shown for different things.
func (id *Identity) BMCUUID() string {
	sum := sha256.Sum256([]byte("bmc/" + id.UUID))
	return uuid(&sum)
}

// BMCMAC is the MAC address of the server's BMC: beside those of the server's
// own ports, which the last byte counts.
func (id *Identity) BMCMAC() string {
	if len(id.NICs) > 0 {
		return id.NICs[0].MAC[:len(id.NICs[0].MAC)-2] + "fe"
	}
	u := strings.ReplaceAll(id.UUID, "-", "")
	return "02:" + u[0:2] + ":" + u[2:4] + ":" + u[4:6] + ":" + u[6:8] + ":fe"
}

// SerialOf is the serial number of the n-th part of a kind: "dimm", "cpu".
func (id *Identity) SerialOf(kind string, n int) string {
	return serial("P", drawn(id.Root, kind, n))
}

// UUIDOf is the UUID of the n-th part of a kind.
func (id *Identity) UUIDOf(kind string, n int) string {
	return uuid((*[sha256.Size]byte)(drawn(id.Root, "uuid/"+kind, n)))
}

func drawn(sum [sha256.Size]byte, kind string, n int) []byte {
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
