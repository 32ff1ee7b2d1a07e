package ipmi

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Commands that identify the system and its BMC (IPMI v2.0 rev 1.1, §20.1, §22.14,
// §34).
var (
	getDevice = request{fn: types.NetFnAppRequest, cmd: 0x01, name: "Get Device ID"}
	getGUID   = request{fn: types.NetFnAppRequest, cmd: 0x37, name: "Get System GUID"}
	getInfo   = request{fn: types.NetFnAppRequest, cmd: 0x59, name: "Get System Info Parameters"}
	getFRU    = request{fn: types.NetFnStorageRequest, cmd: 0x10, name: "Get FRU Inventory Area Info"}
	readFRU   = request{fn: types.NetFnStorageRequest, cmd: 0x11, name: "Read FRU Data"}
)

// identity identifies a system and its BMC. It takes dozens of requests to read and
// does not change, so a client reads it once.
type identity struct {
	uuid         string
	bmcVersion   string
	enterprise   uint32 // IANA number of the BMC's manufacturer
	manufacturer string
	model        string
	serial       string
}

// supermicro reports whether the BMC has one of Supermicro's two enterprise
// numbers.
func (i identity) supermicro() bool { return i.enterprise == 10876 || i.enterprise == 47488 }

// identify returns the identity, which the client caches.
func (s *session) identify(ctx context.Context) (identity, error) {
	c := s.client
	c.mu.Lock()
	known := c.identity
	c.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	id, err := s.readIdentity(ctx)
	if err != nil {
		return identity{}, err
	}
	c.mu.Lock()
	c.identity = &id
	c.mu.Unlock()
	return id, nil
}

func (s *session) readIdentity(ctx context.Context) (identity, error) {
	var id identity
	b, err := s.command(ctx, getDevice)
	if err != nil {
		return identity{}, err
	}
	if len(b) < 11 {
		return identity{}, shortResponse(getDevice, b)
	}
	id.bmcVersion = fmt.Sprintf("%d.%02x", b[2]&0x7F, b[3])
	id.enterprise = uint32(b[6]) | uint32(b[7])<<8 | uint32(b[8]&0x0F)<<16
	if b, err = s.command(ctx, getGUID); err != nil && !isRefusal(err) {
		return identity{}, err
	}
	id.uuid = parseGUID(b)
	f, err := s.fru(ctx)
	if err != nil && !isRefusal(err) {
		return identity{}, err
	}
	id.manufacturer = firstNonEmpty(f.product(0), f.board(0))
	id.model = firstNonEmpty(f.product(1), f.board(1))
	id.serial = firstNonEmpty(f.product(4), f.chassis(1), f.board(2))
	return id, nil
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// parseGUID formats a GUID as a UUID. IPMI 2.0 wants the byte order of SMBIOS,
// earlier versions that of RFC 4122 or least significant byte first: the first
// order that gives a UUID of a known version is taken, as ipmitool does.
func parseGUID(b []byte) string {
	if len(b) != 16 || [16]byte(b) == [16]byte{} {
		return ""
	}
	for _, order := range [][16]int{
		{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15},
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
	} {
		var u [16]byte
		for i, at := range order {
			u[i] = b[at]
		}
		if version := u[6] >> 4; version >= 1 && version <= 5 && u[8]&0xC0 == 0x80 {
			return formatUUID(u)
		}
	}
	u := [16]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6]}
	copy(u[8:], b[8:])
	return formatUUID(u)
}

func formatUUID(u [16]byte) string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Inventory implements bmc.Inspector. IPMI identifies the system; it knows neither
// processors nor memory, NICs or disks.
func (c *client) Inventory(ctx context.Context) (out bmc.Inventory, err error) {
	if out.System, err = c.System(ctx); err != nil {
		return bmc.Inventory{}, err
	}
	err = c.do(ctx, "inventory", func(s *session) error {
		out.Hostname, err = s.systemInfo(ctx, infoSystemName)
		return err
	})
	return out, err
}

// System reads identity, power and boot flags.
func (c *client) System(ctx context.Context) (bmc.System, error) {
	var out bmc.System
	err := c.do(ctx, "system", func(s *session) error {
		now, err := s.chassis(ctx)
		if err != nil {
			return err
		}
		id, err := s.identify(ctx)
		if err != nil {
			return err
		}
		boot, err := s.bootFlags(ctx)
		if err != nil && !isRefusal(err) {
			return err
		}
		bios, err := s.biosVersion(ctx)
		if err != nil {
			return err
		}
		out = bmc.System{
			ID: "chassis", UUID: id.uuid, Manufacturer: id.manufacturer, Model: id.model, Serial: id.serial,
			BIOSVersion: bios, BMCVersion: id.bmcVersion, Power: bmc.Off, Identify: now.lit, Health: "OK", Boot: boot.boot(id), BootOnce: c.bootOnce(),
		}
		if now.on {
			out.Power = bmc.On
		}
		if now.fault {
			out.Health = "Critical"
		}
		return nil
	})
	return out, err
}

// System info parameters (IPMI v2.0 rev 1.1, table 22-16c).
const (
	infoFirmwareVersion = 1
	infoSystemName      = 2
)

// biosVersion reads the version of the system firmware, if the firmware has stored
// it in the BMC.
func (s *session) biosVersion(ctx context.Context) (string, error) {
	return s.systemInfo(ctx, infoFirmwareVersion)
}

// systemInfo reads a text that the system has stored in the BMC; "" if there is none.
func (s *session) systemInfo(ctx context.Context, parameter byte) (string, error) {
	const blocks = 4 // each block has 16 bytes; the first begins with encoding and length
	var text []byte
	length := 0
	for block := range byte(blocks) {
		b, err := s.command(ctx, getInfo, 0, parameter, block, 0)
		if isRefusal(err) {
			break
		}
		if err != nil {
			return "", err
		}
		if len(b) < 2 || b[1] != block {
			break
		}
		b = b[2:] // skip revision and block number
		if block == 0 {
			if len(b) < 2 {
				break
			}
			length, b = int(b[1]), b[2:]
		}
		if text = append(text, b...); len(text) >= length {
			break
		}
	}
	return strings.TrimRight(string(text[:min(length, len(text))]), " \x00"), nil
}
