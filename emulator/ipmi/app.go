package ipmi

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

var appCommands = []command{
	{fn: wire.App, cmd: 0x01, name: "Get Device ID", privilege: wire.User, run: getDeviceID},
	{fn: wire.App, cmd: 0x02, name: "Cold Reset", privilege: wire.Administrator, mutates: true, run: resetBMC(bmc.ForceRestart)},
	{fn: wire.App, cmd: 0x03, name: "Warm Reset", privilege: wire.Administrator, mutates: true, run: resetBMC(bmc.GracefulRestart)},
	{fn: wire.App, cmd: 0x04, name: "Get Self Test Results", privilege: wire.User, run: getSelfTestResults},
	{fn: wire.App, cmd: 0x05, name: "Manufacturing Test On", privilege: wire.Administrator, most: -1, run: manufacturingTest},
	{fn: wire.App, cmd: 0x08, name: "Get Device GUID", privilege: wire.User, run: getDeviceGUID},
	{fn: wire.App, cmd: 0x58, name: "Set System Info Parameters", privilege: wire.Administrator, least: 1, most: -1, mutates: true, run: setSystemInfo},
	{fn: wire.App, cmd: 0x59, name: "Get System Info Parameters", privilege: wire.User, least: 4, most: 6, run: getSystemInfo},
}

// getDeviceID is §20.1.
func getDeviceID(x *request) error {
	const (
		ipmi20 = 0x02 // the last digit comes first
		// functions are chassis device, event generator and receiver, FRU
		// inventory, SEL, SDR repository and sensor device.
		functions = 0xbf
	)
	i := x.host.Dialect().IPMI
	major, minor, aux := firmwareVersion(x.machine().BMCVersion())
	x.put(i.DeviceID, i.Revision, major, minor, ipmi20, functions)
	x.put24(i.Manufacturer)
	x.put16(i.Product)
	x.put(aux[:]...)
	return nil
}

// versionNumber is where a versionNumber begins in a text.
var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]`)

// firmwareVersion is a version as Get Device ID has it: the first number in 7
// bits, the second as two decimal digits, and what follows as bytes.
func firmwareVersion(text string) (major, minor byte, aux [4]byte) {
	if at := versionNumber.FindStringIndex(text); at != nil { // and not a number of the product
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

// resetBMC is §20.2 and §20.3. The BMC goes down a little later, as it does when
// Redfish asks for it, so that there is an answer. A BMC that is reset cold
// is so by force.
func resetBMC(kind bmc.ResetKind) func(x *request) error {
	return func(x *request) error {
		_, err := x.applyBMC(bmc.Restart{Kind: kind})
		return err
	}
}

// getSelfTestResults is §20.4.
func getSelfTestResults(x *request) error {
	result := bmc.SelfTest{Result: bmc.SelfTestPassed}
	if t := x.bmc().SelfTest; t != nil {
		result = *t
	}
	x.put(result.Result, result.Detail)
	return nil
}

// manufacturingTest is §20.5: no BMC in the field lets anybody in there.
func manufacturingTest(*request) error { return SubFunctionDisabled }

// getDeviceGUID is §20.8: the BMC's UUID, which Redfish's Manager has, the last
// byte first (table 20-10). That of the server is Get System GUID's, and in the
// order of SMBIOS.
func getDeviceGUID(x *request) error {
	b, err := hex.DecodeString(strings.ReplaceAll(x.machine().Identity.BMCUUID(), "-", ""))
	slices.Reverse(b)
	x.put(b...)
	return err
}
