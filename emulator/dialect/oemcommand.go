package dialect

import (
	"fmt"
	"slices"
)

// OEMCommand is a command of IPMI that a vendor has added. What it answers, and
// what it keeps, is data.
type OEMCommand struct {
	NetFn, Cmd byte
	Name       string
	Privilege  byte // privilege level, as it goes over the wire
	// Match are bytes that the request begins with: of several commands with
	// the same numbers it is the first that fits.
	Prefix               []byte
	MinLength, MaxLength int  // bytes of the request, with Match; Most -1 is any number
	StoreAs              byte // number that the bytes behind Match are kept under; 0: they are not
	Response             []OEMField
}

// OEMInfo is a parameter that a vendor has added to Get System Info Parameters
// (IPMI v2.0 rev 1.1, §22.14b).
type OEMInfo struct {
	Param    byte
	Text     OEMText    // in blocks, as the parameters of the standard are; or
	NICs     bool       // a list of the server's network ports, read in pieces; or
	Response []OEMField // a record
}

// OEMField is a piece of an answer: bytes as they are, or a number, or what a
// command has kept.
type OEMField struct {
	Bytes  []byte
	Value  OEMValue
	Size   int  // bytes of Value, the least first
	Stored byte // number; as long as nothing was kept, Bytes stands for it
}

// OEMText is a text of the server.
type OEMText string

// The texts.
const (
	OEMSerial OEMText = "serial number"
	OEMModel  OEMText = "model"
	OEMAsset  OEMText = "asset tag"
)

// OEMValue is a number of the server.
type OEMValue string

// The numbers. Times are in seconds since 1970, by the BMC's clock.
const (
	OEMEnergy       OEMValue = "energy"        // Wh since it is counted
	OEMEnergySince  OEMValue = "energy since"  // time
	OEMPeak         OEMValue = "peak power"    // W, of the last minute
	OEMPeakAmps     OEMValue = "peak current"  // 0.1 A
	OEMPeakSince    OEMValue = "peak since"    // time
	OEMNow          OEMValue = "now"           // time
	OEMPower        OEMValue = "power"         // W
	OEMHeadroom     OEMValue = "headroom"      // W that the supplies could give beyond what is drawn
	OEMPeakHeadroom OEMValue = "peak headroom" // W beyond the peak
)

var (
	oemTexts  = []OEMText{"", OEMSerial, OEMModel, OEMAsset}
	oemValues = []OEMValue{"", OEMEnergy, OEMEnergySince, OEMPeak, OEMPeakAmps, OEMPeakSince, OEMNow, OEMPower, OEMHeadroom, OEMPeakHeadroom}
)

func validateFields(list string, fields []OEMField, need func(ok bool, field, fix string)) {
	for i, f := range fields {
		at := item(list, i)
		need(slices.Contains(oemValues, f.Value), at+".value", fmt.Sprintf("%q: must be one of %q", f.Value, oemValues))
		need(f.Value == "" || f.Size >= 1 && f.Size <= 4, at+".size", fmt.Sprintf("%d: must be 1 to 4 where value is given", f.Size))
		need(f.Value != "" || f.Stored != 0 || len(f.Bytes) > 0, at, "needs bytes, value or stored")
	}
}
