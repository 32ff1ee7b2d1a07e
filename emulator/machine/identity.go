package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// NIC is a network port of one server.
type NIC struct {
	*NICModel
	MAC string // lower case, colons
}

// Identity holds a server's unique identifiers. All derive from the rack's
// seed, the server's position and its name, so that Redfish, IPMI, SMBIOS and
// the agent agree, and a rack that is created again has the same ones.
type Identity struct {
	Name string
	FRUInfo
	UUID    string // lower case
	NICs    []NIC
	Storage []storage.Controller
	// Root is the seed of everything else that is derived on demand.
	Root [sha256.Size]byte
}

// NewIdentity derives the identity of the server with that index in its rack,
// counted from 0. MAC addresses and WWNs contain the index, so that they cannot
// collide in a rack of less than 2^24 servers; they are locally administered
// and belong to no vendor.
func NewIdentity(seed uint64, index int, name string, p *Profile) Identity {
	sum := sha256.Sum256(fmt.Appendf(nil, "metalab/%d/%s", seed, name))
	id := Identity{Name: name, FRUInfo: fruInfoOf(p, serial("ML", sum[16:])), UUID: uuid(&sum), Root: sum}
	var at [4]byte
	binary.BigEndian.PutUint32(at[:], uint32(index))
	for i := range p.NICs {
		mac := fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[24], at[1], at[2], at[3], i)
		id.NICs = append(id.NICs, NIC{NICModel: &p.NICs[i], MAC: mac})
	}
	n := 0
	for c := range p.Storage {
		model := &p.Storage[c]
		ctl := storage.Controller{ControllerModel: model, Serial: serial("C", deriveBytes(sum, "controller", c))}
		for b := range model.Bays {
			ctl.Drives = append(ctl.Drives, storage.Drive{
				Model:  &model.Bays[b],
				ID:     fmt.Sprintf("Disk.%d", n),
				Bay:    b,
				Serial: serial("D", deriveBytes(sum, "drive", n)),
				// NAA 3: locally assigned (T10 SPC-5, §7.7.6.4).
				WWN: fmt.Sprintf("3%05x%02x%06x%02x", binary.BigEndian.Uint32(sum[25:29])>>12, 0, index, n),
			})
			n++
		}
		id.Storage = append(id.Storage, ctl)
	}
	return id
}

// fruInfoOf returns the factory FRU information of a server with a serial
// number.
func fruInfoOf(p *Profile, serial string) FRUInfo {
	return FRUInfo{
		Manufacturer: p.Manufacturer, Model: p.Model, PartNumber: p.PartNumber, Serial: serial, ChassisPart: p.PartNumber, ChassisSerial: serial,
	}
}

// uuid formats 16 bytes as a UUID after setting its version (RFC 9562, version
// 4: some clients derive IPMI's byte order from the version).
func uuid(sum *[sha256.Size]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	x := hex.EncodeToString(u)
	return fmt.Sprintf("%s-%s-%s-%s-%s", x[:8], x[8:12], x[12:16], x[16:20], x[20:])
}

// BMCUUID returns the UUID of the server's BMC, which differs from the
// server's.
func (id *Identity) BMCUUID() string {
	sum := sha256.Sum256([]byte("bmc/" + id.UUID))
	return uuid(&sum)
}

// BMCMAC returns the MAC address of the server's BMC. It differs from the
// server's own ports, which the last byte numbers.
func (id *Identity) BMCMAC() string {
	if len(id.NICs) > 0 {
		return id.NICs[0].MAC[:len(id.NICs[0].MAC)-2] + "fe"
	}
	u := strings.ReplaceAll(id.UUID, "-", "")
	return "02:" + u[0:2] + ":" + u[2:4] + ":" + u[4:6] + ":" + u[6:8] + ":fe"
}

// SerialOf returns the serial number of the n-th part of a kind: "dimm", "cpu".
func (id *Identity) SerialOf(kind string, n int) string {
	return serial("P", deriveBytes(id.Root, kind, n))
}

// UUIDOf returns the UUID of the n-th part of a kind.
func (id *Identity) UUIDOf(kind string, n int) string {
	return uuid((*[sha256.Size]byte)(deriveBytes(id.Root, "uuid/"+kind, n)))
}

func deriveBytes(sum [sha256.Size]byte, kind string, n int) []byte {
	s := sha256.Sum256(fmt.Appendf(sum[:], "/%s/%d", kind, n))
	return s[:]
}

// serial returns a ten-character serial number without characters that look
// alike.
func serial(prefix string, from []byte) string {
	const digits = "0123456789ABCDEFGHJKLMNPQRSTVWXYZ"
	b := []byte(prefix)
	for i := 0; len(b) < 10; i++ {
		b = append(b, digits[int(from[i])%len(digits)])
	}
	return string(b)
}
