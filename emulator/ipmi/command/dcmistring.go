package command

import (
	"bytes"
	"regexp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/fru"
	"github.com/metalab-dev/metalab/emulator/machine"
)

const (
	maxTag  = 63 // bytes of an asset tag
	maxName = 64 // bytes of a management controller identifier, including its terminating zero
)

// dcmiStrings holds DCMI strings that clients write in pieces, until the last
// piece has come.
type dcmiStrings struct {
	tag        []byte // the bytes as written
	text       string // the asset tag that they made
	identifier []byte
}

// assetTagBytes returns the asset tag as DCMI reads it: the bytes that a client
// wrote, if the tag has not changed since.
func (x *Request) assetTagBytes() []byte {
	text := x.machine().Asset.Tag
	if n := &x.State.dcmiStrings; n.tag != nil && n.text == text {
		return n.tag
	}
	b := fru.Text(text).Data
	if len(b) == 2 && b[1] == 0 {
		b = b[:1] // a single character, which FRU data holds in two bytes
	}
	return b
}

// assetTagEncoding returns the completion code that tells the encoding of an
// asset tag that is not English text in the FRU data (DCMI 1.5, §6.4.2).
func (x *Request) assetTagEncoding() error {
	w := x.machine().FRUOverrides
	if w == nil || w.Image == nil {
		return nil
	}
	image, err := fru.Parse(w.Image)
	if err != nil || image.Product == nil || len(image.Product.Fields) <= fru.ProductTag {
		return nil
	}
	switch c, language := image.Product.Fields[fru.ProductTag].Coding, image.Product.Head[0]; {
	case c != fru.Latin:
		return codeWithData(0x80 + Code(c))
	case language != fru.English && language != 0:
		return codeWithData(0x83)
	}
	return nil
}

// getAssetTag handles Get Asset Tag (§6.4.2).
func getAssetTag(x *Request) error {
	offset, count := int(x.data[0]), int(x.data[1])
	if count > dcmiChunk || offset >= maxTag || offset+count > maxTag {
		return ParameterOutOfRange
	}
	tag := bytes.TrimRight(x.assetTagBytes(), "\x00")
	x.put(byte(len(tag)))
	x.put(tag[min(offset, len(tag)):min(offset+count, len(tag))]...)
	return x.assetTagEncoding()
}

// setAssetTag handles Set Asset Tag (§6.4.3). Clients such as FreeIPMI fill the tag up with
// zeros, which are no part of it.
func setAssetTag(x *Request) error {
	offset, count, data := int(x.data[0]), int(x.data[1]), x.data[2:]
	tag := x.assetTagBytes()
	switch {
	case count > dcmiChunk || offset >= maxTag || offset+count > maxTag || offset > len(tag):
		return ParameterOutOfRange
	case len(data) != count:
		return DataLengthInvalid
	}
	tag = append(bytes.Clone(tag[:offset]), data...)
	asset := *x.machine().Asset
	asset.Tag = fru.Decode(bytes.TrimRight(tag, "\x00"))
	if err := x.applyMachine(machine.SetAsset{Asset: asset}); err != nil {
		return err
	}
	x.State.dcmiStrings.tag, x.State.dcmiStrings.text = tag, asset.Tag
	x.put(byte(len(tag)))
	return nil
}

// hostName returns the BMC's host name, which is its management controller
// identifier.
func (x *Request) hostName() string {
	if n := x.bmc().Network(); n.HostName != "" {
		return n.HostName
	}
	return x.machine().Identity.Name + "-bmc"
}

// getControllerID handles Get Management Controller Identifier String
// (§6.4.6.1). Bytes after the name are zero.
func getControllerID(x *Request) error {
	offset, count := int(x.data[0]), int(x.data[1])
	if count > dcmiChunk || offset+count > maxName {
		return ParameterOutOfRange
	}
	name := x.State.dcmiStrings.identifier
	if name == nil {
		name = []byte(x.hostName())
	}
	name = name[:min(len(name), maxName-1)]
	x.put(byte(len(name)))
	x.put(append(bytes.Clone(name), make([]byte, maxName-len(name))...)[offset : offset+count]...)
	return nil
}

// hostName matches a valid host name (RFC 1123, §2.1); an empty one restores
// the default name.
var hostName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*)?$`)

// setControllerID handles Set Management Controller Identifier String
// (§6.4.6.2). The terminating zero makes the name effective.
func setControllerID(x *Request) error {
	offset, count, data := int(x.data[0]), int(x.data[1]), x.data[2:]
	id := x.State.dcmiStrings.identifier
	if id == nil {
		id = []byte(x.hostName())
	}
	switch {
	case count > dcmiChunk || count == 0 || offset+count > maxName || offset > len(id):
		return ParameterOutOfRange
	case len(data) != count:
		return DataLengthInvalid
	case offset+count == maxName && data[count-1] != 0:
		return InvalidDataField // the last byte is for the terminating zero
	}
	id = append(bytes.Clone(id[:offset]), data...)
	name, _, terminated := bytes.Cut(id, []byte{0})
	if !terminated {
		x.State.dcmiStrings.identifier = id
		x.put(byte(offset + count))
		return nil
	}
	x.State.dcmiStrings.identifier = nil
	if !hostName.Match(name) {
		return InvalidDataField
	}
	n := x.bmc().Network()
	n.HostName = string(name)
	if n.HostName == x.machine().Identity.Name+"-bmc" {
		n.HostName = ""
	}
	if _, err := x.applyBMC(bmc.SetNetwork{Network: n}); err != nil {
		return err
	}
	x.put(byte(offset + count))
	return nil
}
