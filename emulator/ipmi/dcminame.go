package ipmi

import (
	"bytes"
	"regexp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/fru"
	"github.com/metalab-dev/metalab/emulator/machine"
)

const (
	maxTag  = 63 // bytes of an asset tag
	maxName = 64 // bytes of a controller's name, with the zero that ends it
)

// names are texts that come in pieces: what is there of them until they are
// whole.
type names struct {
	tag  []byte // as it was written
	text string // that this made
	id   []byte
}

// tag is the asset tag as DCMI has it: the bytes that a client wrote, if that is
// what the tag still is.
func (x *exchange) tag() []byte {
	text := x.machine().Asset.Tag
	if n := &x.side.names; n.tag != nil && n.text == text {
		return n.tag
	}
	b := fru.Text(text).Data
	if len(b) == 2 && b[1] == 0 {
		b = b[:1] // which FRUs have in two
	}
	return b
}

// coding is beside what code an asset tag is answered that the board's memory
// has in something else than English text (DCMI 1.5, §6.4.2).
func (x *exchange) coding() error {
	w := x.machine().Labels
	if w == nil || w.Memory == nil {
		return nil
	}
	image, err := fru.Parse(w.Memory)
	if err != nil || image.Product == nil || len(image.Product.Fields) <= fru.ProductTag {
		return nil
	}
	switch c, language := image.Product.Fields[fru.ProductTag].Coding, image.Product.Head[0]; {
	case c != fru.Latin:
		return beside(0x80 + Code(c))
	case language != fru.English && language != 0:
		return beside(0x83)
	}
	return nil
}

// assetTag is §6.4.2.
func assetTag(x *exchange) error {
	offset, count := int(x.data[0]), int(x.data[1])
	if count > dcmiPiece || offset >= maxTag || offset+count > maxTag {
		return OutOfRange
	}
	tag := x.tag()
	x.put(byte(len(tag)))
	x.put(tag[min(offset, len(tag)):min(offset+count, len(tag))]...)
	return x.coding()
}

// setAssetTag is §6.4.3.
func setAssetTag(x *exchange) error {
	offset, count, data := int(x.data[0]), int(x.data[1]), x.data[2:]
	tag := x.tag()
	switch {
	case count > dcmiPiece || offset >= maxTag || offset+count > maxTag || offset > len(tag):
		return OutOfRange
	case len(data) != count:
		return BadLength
	}
	tag = append(bytes.Clone(tag[:offset]), data...)
	asset := *x.machine().Asset
	asset.Tag = fru.Decode(tag)
	if err := x.do(machine.SetAsset{Asset: asset}); err != nil {
		return err
	}
	x.side.names.tag, x.side.names.text = tag, asset.Tag
	x.put(byte(len(tag)))
	return nil
}

// ownName is the BMC's host name, which is its identifier.
func (x *exchange) ownName() string {
	if n := x.bmc().Network(); n.HostName != "" {
		return n.HostName
	}
	return x.machine().Identity.Name + "-bmc"
}

// controllerName is §6.4.6.1. What is behind the name are zeros.
func controllerName(x *exchange) error {
	offset, count := int(x.data[0]), int(x.data[1])
	if count > dcmiPiece || offset+count > maxName {
		return OutOfRange
	}
	name := x.side.names.id
	if name == nil {
		name = []byte(x.ownName())
	}
	name = name[:min(len(name), maxName-1)]
	x.put(byte(len(name)))
	x.put(append(bytes.Clone(name), make([]byte, maxName-len(name))...)[offset : offset+count]...)
	return nil
}

// hostName is what can name a host (RFC 1123, §2.1); nothing is what it was
// called at first.
var hostName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*)?$`)

// setControllerName is §6.4.6.2. The zero at the end puts the name in force.
func setControllerName(x *exchange) error {
	offset, count, data := int(x.data[0]), int(x.data[1]), x.data[2:]
	id := x.side.names.id
	if id == nil {
		id = []byte(x.ownName())
	}
	switch {
	case count > dcmiPiece || count == 0 || offset+count > maxName || offset > len(id):
		return OutOfRange
	case len(data) != count:
		return BadLength
	case offset+count == maxName && data[count-1] != 0:
		return BadField // the last place is for the zero
	}
	id = append(bytes.Clone(id[:offset]), data...)
	name, _, whole := bytes.Cut(id, []byte{0})
	if !whole {
		x.side.names.id = id
		x.put(byte(offset + count))
		return nil
	}
	x.side.names.id = nil
	if !hostName.Match(name) {
		return BadField
	}
	n := x.bmc().Network()
	n.HostName = string(name)
	if n.HostName == x.machine().Identity.Name+"-bmc" {
		n.HostName = ""
	}
	if _, err := x.tell(bmc.SetNetwork{Network: n}); err != nil {
		return err
	}
	x.put(byte(offset + count))
	return nil
}
