package command

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// oemCommand returns the vendor's OEM command that a request names; nil when
// its dialect record has none. The record describes the command completely: no
// handler here knows a vendor.
func oemCommand(h Host, req *wire.Request) *Row {
	all := h.Dialect().IPMI.OEMCommands
	for i := range all {
		c := &all[i]
		if wire.NetFn(c.NetFn) != req.NetFn || c.Cmd != req.Cmd || !bytes.HasPrefix(req.Data, c.Prefix) {
			continue
		}
		return oemRow(c)
	}
	return nil
}

// oemRow returns the row of a vendor's command.
func oemRow(c *dialect.OEMCommand) *Row {
	return &Row{
		fn: wire.NetFn(c.NetFn), cmd: c.Cmd, prefix: c.Prefix, name: c.Name, privilege: wire.Privilege(c.Privilege), least: c.MinLength, most: c.MaxLength, mutates: c.StoreAs != 0,
		run: func(x *Request) error { return oemRun(x, c) },
	}
}

func oemRun(x *Request, c *dialect.OEMCommand) error {
	if c.StoreAs != 0 {
		w := bmc.Parameter{Table: oemTable, Param: c.StoreAs, Data: x.data[len(c.Prefix):]}
		if _, err := x.applyBMC(bmc.SetParameter{Parameter: w}); err != nil {
			return err
		}
	}
	return putOEMFields(x, c.Response)
}

// putOEMFields appends the fields of a response.
func putOEMFields(x *Request, fields []dialect.OEMField) error {
	for _, f := range fields {
		switch stored := x.bmc().Channel.Parameter(oemTable, f.Stored, 0); {
		case f.Stored != 0 && stored != nil:
			x.put(stored...)
		case f.Text != "":
			text := make([]byte, f.Size)
			copy(text, oemTexts[f.Text](x))
			x.put(text...)
		case f.Value != "":
			n := oemValues[f.Value](x)
			for range f.Size {
				x.put(byte(n))
				n >>= 8
			}
		default:
			x.put(f.Bytes...)
		}
	}
	return nil
}

// oemValues maps the numbers that a dialect record can name to their values.
var oemValues = map[dialect.OEMValue]func(x *Request) uint64{
	dialect.OEMEnergy:      func(x *Request) uint64 { return uint64(x.machine().Thermal.Energy(x.Now) / 3600) },
	dialect.OEMEnergySince: func(x *Request) uint64 { return oemTime(x, x.machine().Thermal.Since().Unix()) },
	dialect.OEMPeak:        func(x *Request) uint64 { return uint64(powerUsage(x).Most) },
	dialect.OEMMean:        func(x *Request) uint64 { return uint64(powerUsage(x).Mean) },
	dialect.OEMLeast:       func(x *Request) uint64 { return uint64(powerUsage(x).Least) },
	dialect.OEMPeakAmps: func(x *Request) uint64 {
		if volts := x.machine().Thermal.Model.Supplies.Volts; volts > 0 {
			return uint64(10 * powerUsage(x).Most / volts)
		}
		return 0
	},
	dialect.OEMPeakSince:    func(x *Request) uint64 { return oemTime(x, x.Now.Add(-thermal.Window).Unix()) },
	dialect.OEMNow:          func(x *Request) uint64 { return oemTime(x, x.Now.Unix()) },
	dialect.OEMPower:        func(x *Request) uint64 { return uint64(powerUsage(x).Is) },
	dialect.OEMHeadroom:     func(x *Request) uint64 { return headroom(x, powerUsage(x).Is) },
	dialect.OEMPeakHeadroom: func(x *Request) uint64 { return headroom(x, powerUsage(x).Most) },
	dialect.OEMCapacity:     func(x *Request) uint64 { return headroom(x, 0) },
	dialect.OEMSupplies:     func(x *Request) uint64 { return uint64(x.machine().Thermal.Model.Supplies.Count) },
	dialect.OEMAddress:      func(x *Request) uint64 { return uint64(binary.LittleEndian.Uint32(x.address().AsSlice())) },
	dialect.OEMStatic:       func(x *Request) uint64 { return uint64(flag(x.bmc().Network().Static != nil)) },
}

func powerUsage(x *Request) thermal.Usage { return x.machine().Thermal.Usage(x.Now, thermal.Window) }

// oemTime returns a lab time by the BMC's clock.
func oemTime(x *Request, unix int64) uint64 {
	return uint64(max(0, unix+int64(x.clock().Sub(x.Now).Seconds())))
}

// headroom returns the watts that the power supplies could deliver beyond those
// drawn.
func headroom(x *Request, drawn float64) uint64 {
	s := &x.machine().Thermal.Model.Supplies
	return uint64(max(0, float64(s.Count)*s.Watts-drawn))
}

// oemParameter is a vendor's system info parameter.
type oemParameter dialect.OEMInfo

// oemInfo returns the vendor's system info parameter with that number; nil when
// there is none.
func oemInfo(x *Request, param byte) *oemParameter {
	all := x.Host.Dialect().IPMI.OEMSystemInfo
	for i := range all {
		if all[i].Param == param {
			return (*oemParameter)(&all[i])
		}
	}
	return nil
}

// get handles Get System Info Parameters (§22.14b) for a vendor's parameter.
func (p *oemParameter) get(x *Request) error {
	x.put(revision)
	switch {
	case x.data[0]&onlyRevision != 0:
		return nil
	case p.NICs:
		return oemNICs(x)
	case p.Short:
		text := oemTexts[p.Text](x)
		text = text[:min(len(text), infoBlock)]
		x.put(byte(len(text)))
		x.put([]byte(text)...)
		return nil
	case p.Text != "":
		return x.putInfoBlock(encodeInfo(oemTexts[p.Text](x)))
	}
	head := len(x.out)
	if err := putOEMFields(x, p.Response); err != nil || !p.Blocks {
		return err
	}
	all := bytes.Clone(x.out[head:])
	x.out = x.out[:head]
	return x.putInfoBlock(all)
}

// putInfoBlock appends the block of 16 bytes of a parameter that the set selector
// names, the last of which may be shorter.
func (x *Request) putInfoBlock(all []byte) error {
	set := int(x.data[2])
	if set*infoBlock >= len(all) {
		return ParameterOutOfRange
	}
	x.put(byte(set))
	x.put(all[set*infoBlock : min((set+1)*infoBlock, len(all))]...)
	return nil
}

// oemTexts maps the texts that a dialect record can name to their values.
var oemTexts = map[dialect.OEMText]func(x *Request) string{
	dialect.OEMSerial: func(x *Request) string { return x.machine().Identity.Serial },
	dialect.OEMModel:  func(x *Request) string { return x.machine().Profile.Model },
	dialect.OEMAsset:  func(x *Request) string { return x.machine().Asset.Tag },
	dialect.OEMBMC:    func(x *Request) string { return x.machine().BMCVersion() },
}

// oemNICs answers a list of network ports, 8 bytes each: kind and state,
// number, MAC address. Without offset and length, or with length 0, it answers
// the length of the list.
func oemNICs(x *Request) error {
	var list []byte
	for i, nic := range x.machine().Identity.NICs {
		mac, err := hex.DecodeString(strings.ReplaceAll(nic.MAC, ":", ""))
		if err != nil || len(mac) != 6 {
			return Unspecified
		}
		list = append(append(list, 0, byte(i)), mac...)
	}
	if len(x.data) < 6 || x.data[5] == 0 {
		x.put(byte(len(list)))
		return nil
	}
	from, n := int(x.data[4]), int(x.data[5])
	if from+n > len(list) {
		return ParameterOutOfRange
	}
	x.put(list[from : from+n]...)
	return nil
}
