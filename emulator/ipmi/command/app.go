package command

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

var appCommands = []Row{
	{fn: wire.App, cmd: 0x01, name: "Get Device ID", privilege: wire.User, run: getDeviceID},
	{fn: wire.App, cmd: 0x02, name: "Cold Reset", privilege: wire.Administrator, mutates: true, run: resetBMC(bmc.ForceRestart)},
	{fn: wire.App, cmd: 0x03, name: "Warm Reset", privilege: wire.Administrator, mutates: true, run: resetBMC(bmc.GracefulRestart)},
	{fn: wire.App, cmd: 0x04, name: "Get Self Test Results", privilege: wire.User, run: getSelfTestResults},
	{fn: wire.App, cmd: 0x05, name: "Manufacturing Test On", privilege: wire.Administrator, most: -1, run: manufacturingTest},
	{fn: wire.App, cmd: 0x08, name: "Get Device GUID", privilege: wire.User, run: getDeviceGUID},
	{fn: wire.App, cmd: 0x58, name: "Set System Info Parameters", privilege: wire.Administrator, least: 1, most: -1, mutates: true, run: setSystemInfo},
	{fn: wire.App, cmd: 0x59, name: "Get System Info Parameters", privilege: wire.User, least: 4, most: 6, run: getSystemInfo},
}

// getDeviceID handles Get Device ID (§20.1).
func getDeviceID(x *Request) error {
	const (
		ipmi20 = 0x02 // BCD, least digit first
		// functions: chassis device, event generator, event receiver, FRU
		// inventory, SEL, SDR repository, sensor device.
		functions = 0xbf
	)
	i := x.Host.Dialect().IPMI
	major, minor, aux := firmwareVersion(x.machine().BMCVersion())
	x.put(i.DeviceID, i.Revision, major, minor, ipmi20, functions)
	x.put24(i.Manufacturer)
	x.put16(i.Product)
	x.put(aux[:]...)
	return nil
}

// versionNumber finds the first version number in a text.
var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]`)

// firmwareVersion returns a version as Get Device ID encodes it: the first
// number in 7 bits, the second as two BCD digits, the rest as auxiliary bytes.
func firmwareVersion(text string) (major, minor byte, aux [4]byte) {
	if at := versionNumber.FindStringIndex(text); at != nil { // so that a number in the product's name is skipped
		text = text[at[0]:]
	}
	numbers := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	at := func(i, most int) int {
		if i >= len(numbers) {
			return 0
		}
		n, err := strconv.Atoi(numbers[i])
		if err != nil { // too many digits
			return most
		}
		return min(n, most)
	}
	second := at(1, 99)
	for i := range aux {
		aux[i] = byte(at(i+2, 255))
	}
	return byte(at(0, 127)), byte(second/10<<4 | second%10), aux
}

// resetBMC handles Cold Reset (§20.2) and Warm Reset (§20.3). The BMC goes
// down a little later, as with Redfish's Manager.Reset, so that the response is
// sent first. A cold reset is a forced one.
func resetBMC(kind bmc.ResetKind) func(x *Request) error {
	return func(x *Request) error {
		_, err := x.applyBMC(bmc.Restart{Kind: kind})
		return err
	}
}

// getSelfTestResults handles Get Self Test Results (§20.4).
func getSelfTestResults(x *Request) error {
	result := bmc.SelfTest{Result: bmc.SelfTestPassed}
	if t := x.bmc().SelfTest; t != nil {
		result = *t
	}
	x.put(result.Result, result.Detail)
	return nil
}

// manufacturingTest refuses Manufacturing Test On (§20.5): no BMC in the field
// enters that mode for a client.
func manufacturingTest(*Request) error { return SubFunctionDisabled }

// getDeviceGUID handles Get Device GUID (§20.8). It answers the BMC's UUID,
// which Redfish shows as the Manager's, last byte first (table 20-10). The
// server's UUID is Get System GUID's, in SMBIOS byte order.
func getDeviceGUID(x *Request) error {
	b, err := hex.DecodeString(strings.ReplaceAll(x.machine().Identity.BMCUUID(), "-", ""))
	slices.Reverse(b)
	x.put(b...)
	return err
}
