package command

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/fru"
	"github.com/metalab-dev/metalab/emulator/ipmi/sdr"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// fruCommands are the FRU inventory device commands (§34).
var fruCommands = []Row{
	{fn: wire.Storage, cmd: 0x10, name: "Get FRU Inventory Area Info", privilege: wire.User, least: 1, most: 1, run: getFRUInventoryAreaInfo},
	{fn: wire.Storage, cmd: 0x11, name: "Read FRU Data", privilege: wire.User, least: 4, most: 4, run: readFRUData},
	{fn: wire.Storage, cmd: 0x12, name: "Write FRU Data", privilege: wire.Operator, least: 4, most: -1, mutates: true, run: writeFRUData},
}

const (
	boardSize  = 1024 // bytes of the baseboard's FRU device
	deviceSize = 512  // bytes of every other FRU device
	// maxRead is the most data that fits into one response: 255 bytes of a
	// message (§13.8), less the message's own bytes and the count.
	maxRead = 255 - 8 - 1
)

// fruDevice is a FRU inventory device. Only the baseboard's, which identifies
// the server, can be written.
type fruDevice struct {
	id     byte
	entity sdr.Entity
	name   string
	image  func(x *Request) (fru.Image, bool) // false: the part is not present
}

// First FRU device IDs by kind of part.
const (
	fruSupply = 0x01
	fruCard   = 0x10
	fruDIMM   = 0x20
	fruLast   = 0xfe
)

// fruDevices returns the FRU devices of a server model.
func fruDevices(p *machine.Profile) []fruDevice {
	all := []fruDevice{{entity: sdr.Entity{ID: entityBoard, Instance: 1}, name: "Mainboard", image: func(x *Request) (fru.Image, bool) { return x.boardImage(), true }}}
	add := func(id int, entity byte, n int, name string, image func(x *Request) (fru.Image, bool)) {
		if id <= fruLast {
			all = append(all, fruDevice{byte(id), sdr.Entity{ID: entity, Instance: byte(n + 1)}, shortName(name), image})
		}
	}
	s := p.Thermal.Supplies
	for n := range min(s.Count, fruCard-fruSupply) {
		add(fruSupply+n, entitySupply, n, fmt.Sprintf("PSU %d", n+1), func(x *Request) (fru.Image, bool) {
			v := x.machine()
			product := fru.NewProduct(s.Vendor, s.Product, s.PartNumber, v.Firmware.Version(s.Component), v.Identity.SerialOf("psu", n), "")
			// The ranges are the ones that Redfish shows.
			return fru.Image{Product: product, Records: []fru.Record{fru.Supply(s.Watts, 200, 240, 47, 63)}}, v.Thermal.SupplyFault(n) != thermal.Absent
		})
	}
	n := 0
	for _, c := range p.Cards {
		if c.SlotType == "" || n == fruDIMM-fruCard {
			continue // it is on the board
		}
		add(fruCard+n, entityCard, n, "Card "+c.Slot, func(x *Request) (fru.Image, bool) {
			id := x.machine().Identity
			return fru.Image{Board: fru.NewBoard(manufactured, c.Vendor, c.Product, id.SerialOf("card/"+c.ID, 0), c.PartNumber)}, true
		})
		n++
	}
	m := p.Memory
	for n := range m.Modules {
		add(fruDIMM+n, entityDIMM, n, fmt.Sprintf("DIMM %d", n+1), func(x *Request) (fru.Image, bool) {
			name := fmt.Sprintf("%d GiB %s %s %d MT/s", m.MiB/1024, m.Type, m.Form, m.MHz)
			return fru.Image{Product: fru.NewProduct(m.Vendor, name, m.PartNumber, "", x.machine().Identity.SerialOf("dimm", n), "")}, true
		})
	}
	return all
}

// manufactured is the manufacturing date of every board; the profile has none.
var manufactured = time.Date(2025, 1, 6, 8, 0, 0, 0, time.UTC)

// rackMount is the type of enclosure (SMBIOS 3, §7.4.1).
const rackMount = 0x17

// boardImage returns the FRU data of the server itself.
func (x *Request) boardImage() fru.Image {
	v := x.machine()
	id := v.Identity
	return fru.Image{
		Chassis: fru.NewChassis(rackMount, id.ChassisPart, id.ChassisSerial),
		Board:   fru.NewBoard(manufactured, id.Manufacturer, id.Model+" Mainboard", id.SerialOf("board", 0), id.PartNumber+"-MB"),
		Product: fru.NewProduct(id.Manufacturer, id.Model, id.PartNumber, "", id.Serial, v.Asset.Tag),
		Records: []fru.Record{fru.SystemID(guid(id.UUID))},
	}
}

// fruDevice returns the FRU device with the requested ID.
func (x *Request) fruDevice() (*fruDevice, error) {
	if x.data[0] == 0xff {
		return nil, InvalidDataField // reserved
	}
	all := x.repository().frus
	for i := range all {
		if all[i].id == x.data[0] && x.lun == 0 {
			return &all[i], nil
		}
	}
	return nil, NotPresent
}

// requestedFRU returns the FRU device with the requested ID, and its bytes.
func (x *Request) requestedFRU() (*fruDevice, []byte, error) {
	d, err := x.fruDevice()
	if err != nil {
		return nil, nil, err
	}
	b, err := x.fruData(d)
	return d, b, err
}

// fruData returns the bytes of a FRU device. Bytes that a client wrote are
// returned as written, except for the asset tag, which other commands can
// change.
func (x *Request) fruData(d *fruDevice) ([]byte, error) {
	if w := x.machine().FRUOverrides; d.id == 0 && w != nil && w.Image != nil {
		tag := x.machine().Asset.Tag
		image, err := fru.Parse(w.Image)
		if err != nil || image.Product.Text(fru.ProductTag) == fru.Text(tag).String() {
			return w.Image, nil
		}
		if b, err := image.With(fru.ProductTag, tag).Append(nil, boardSize); err == nil {
			return b, nil
		}
		return w.Image, nil // it does not fit
	}
	image, there := d.image(x)
	if !there {
		return nil, NotPresent
	}
	size := deviceSize
	if d.id == 0 {
		size = boardSize
	}
	return image.Append(nil, size)
}

// getFRUInventoryAreaInfo handles Get FRU Inventory Area Info (§34.1).
func getFRUInventoryAreaInfo(x *Request) error {
	_, b, err := x.requestedFRU()
	if err != nil {
		return err
	}
	x.put16(uint16(len(b)))
	x.put(0) // accessed by bytes
	return nil
}

// readFRUData handles Read FRU Data (§34.2). At the end it returns fewer bytes
// than requested.
func readFRUData(x *Request) error {
	_, b, err := x.requestedFRU()
	if err != nil {
		return err
	}
	offset, count := int(le16(x.data[1:])), int(x.data[3])
	switch {
	case offset >= len(b), count == 0:
		return ParameterOutOfRange
	case count > maxRead:
		return CannotReturnBytes
	}
	count = min(count, len(b)-offset)
	x.put(byte(count))
	x.put(b[offset : offset+count]...)
	return nil
}

// writeFRUData handles Write FRU Data (§34.3).
func writeFRUData(x *Request) error {
	d, old, err := x.requestedFRU()
	if err != nil {
		return err
	}
	offset, data := int(le16(x.data[1:])), x.data[3:]
	switch {
	case offset+len(data) > len(old):
		return ParameterOutOfRange
	case d.id != 0:
		return Code(0x80) // write-protected
	}
	b := bytes.Clone(old)
	copy(b[offset:], data)
	if !bytes.Equal(b, old) {
		if err := x.applyMachine(x.identityCommands(b)...); err != nil {
			return err
		}
	}
	x.put(byte(len(data)))
	return nil
}

// identityCommands returns the machine commands that store bytes written to the
// baseboard's FRU device. The server's identity follows them as soon as they
// parse.
func (x *Request) identityCommands(b []byte) []machine.Command {
	v := x.machine()
	set := machine.FRUOverrides{Image: b}
	image, err := fru.Parse(b)
	if err != nil { // only partly written so far
		if v.FRUOverrides != nil {
			set.FRUInfo = v.FRUOverrides.FRUInfo
		}
		return []machine.Command{machine.SetFRUOverrides{FRUOverrides: set}}
	}
	is := v.Identity
	over := func(area *fru.Area, place int, as string) string {
		if text := strings.TrimSpace(area.Text(place)); text != fru.Text(as).String() {
			return text
		}
		return as
	}
	set.FRUInfo = machine.FRUInfo{
		Manufacturer: over(image.Product, fru.ProductMaker, is.Manufacturer), Model: over(image.Product, fru.ProductName, is.Model),
		PartNumber: over(image.Product, fru.ProductPart, is.PartNumber), Serial: over(image.Product, fru.ProductSerial, is.Serial),
		ChassisPart: over(image.Chassis, fru.ChassisPart, is.ChassisPart), ChassisSerial: over(image.Chassis, fru.ChassisSerial, is.ChassisSerial),
	}
	out := []machine.Command{machine.SetFRUOverrides{FRUOverrides: set}}
	if tag := image.Product.Text(fru.ProductTag); image.Product != nil && tag != fru.Text(v.Asset.Tag).String() {
		asset := *v.Asset
		asset.Tag = tag
		out = append(out, machine.SetAsset{Asset: asset})
	}
	return out
}
