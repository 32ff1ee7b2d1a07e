package dialect

import (
	"fmt"
	"slices"
)

// OEMCommand is an IPMI command that the vendor has added. Its response, and the
// bytes that it stores, are data.
type OEMCommand struct {
	NetFn, Cmd byte   // network function, even, from 0x2e to 0x3e (§5.1); command number
	Name       string // name in logs
	Privilege  byte   // privilege level as on the wire: 2 User, 3 Operator, 4 Administrator
	// Prefix has the bytes that the request begins with: of commands with the same
	// NetFn and Cmd the first whose prefix fits is carried out.
	Prefix               []byte
	MinLength, MaxLength int  // bytes of the request, Prefix included; a MaxLength of -1 is no limit
	StoreAs              byte // number under which the bytes behind Prefix are stored; 0: they are not
	Response             []OEMField
}

// OEMInfo is a parameter that the vendor has added to Get System Info Parameters
// (IPMI v2.0 rev 1.1, §22.14b). It has one of Text, NICs and Response.
type OEMInfo struct {
	Param    byte       // parameter selector, from 0xc0
	Text     OEMText    // a text, in blocks as the standard's parameters have them
	Short    bool       // Text is not in blocks: its length in one byte, and its characters
	NICs     bool       // a list of the network ports, which clients read in pieces
	Response []OEMField // a record
	Blocks   bool       // Response is read in blocks of 16 bytes, which the set selector names
}

// OEMField is a part of a response: constant bytes, a value or a text of the server,
// or bytes that an OEMCommand has stored.
type OEMField struct {
	Bytes  []byte // constant bytes
	Value  OEMValue
	Text   OEMText // followed by zeros up to Size
	Size   int     // length of Value in bytes, least significant first, or of Text
	Stored byte    // StoreAs of the command that stores the bytes; while nothing is stored, Bytes is sent
}

// OEMText is a text that describes the server.
type OEMText string

// The texts.
const (
	OEMSerial OEMText = "serial number" // serial number of the system
	OEMModel  OEMText = "model"         // model of the system
	OEMAsset  OEMText = "asset tag"     // asset tag of the system
	OEMBMC    OEMText = "bmc version"   // version of the BMC's firmware
)

// OEMValue is a measured or counted value of the server.
type OEMValue string

// The values. Times are in seconds since 1970 by the BMC's clock.
const (
	OEMEnergy       OEMValue = "energy"        // Wh since OEMEnergySince
	OEMEnergySince  OEMValue = "energy since"  // time
	OEMPeak         OEMValue = "peak power"    // W, of the last minute
	OEMMean         OEMValue = "mean power"    // W, of the last minute
	OEMLeast        OEMValue = "least power"   // W, of the last minute
	OEMPeakAmps     OEMValue = "peak current"  // 0.1 A
	OEMPeakSince    OEMValue = "peak since"    // time
	OEMNow          OEMValue = "now"           // time
	OEMPower        OEMValue = "power"         // W
	OEMHeadroom     OEMValue = "headroom"      // W that the power supplies can deliver beyond the present draw
	OEMPeakHeadroom OEMValue = "peak headroom" // W beyond the peak
	OEMCapacity     OEMValue = "capacity"      // W that the power supplies can deliver
	OEMSupplies     OEMValue = "supplies"      // number of power supplies
	OEMAddress      OEMValue = "address"       // IPv4 address of the BMC: its first byte is the least significant
	OEMStatic       OEMValue = "static"        // 1: the address is static, 0: of DHCP
)

var (
	oemTexts  = []OEMText{"", OEMSerial, OEMModel, OEMAsset, OEMBMC}
	oemValues = []OEMValue{"", OEMEnergy, OEMEnergySince, OEMPeak, OEMMean, OEMLeast, OEMPeakAmps, OEMPeakSince, OEMNow, OEMPower, OEMHeadroom, OEMPeakHeadroom, OEMCapacity, OEMSupplies, OEMAddress, OEMStatic}
)

func validateFields(list string, fields []OEMField, need func(ok bool, field, fix string)) {
	for i, f := range fields {
		at := item(list, i)
		need(slices.Contains(oemValues, f.Value), at+".value", fmt.Sprintf("%q: must be one of %q", f.Value, oemValues))
		need(f.Value == "" || f.Size >= 1 && f.Size <= 4, at+".size", fmt.Sprintf("%d: must be 1 to 4 where value is given", f.Size))
		need(slices.Contains(oemTexts, f.Text), at+".text", fmt.Sprintf("%q: must be one of %q", f.Text, oemTexts))
		need(f.Text == "" || f.Size >= 1 && f.Size <= 64, at+".size", fmt.Sprintf("%d: must be 1 to 64 where text is given", f.Size))
		need(f.Value != "" || f.Text != "" || f.Stored != 0 || len(f.Bytes) > 0, at, "needs bytes, value, text or stored")
	}
}
