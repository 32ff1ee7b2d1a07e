package lab_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/labtest"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
)

// TestBootOptionParametersOfPhosphorHostIPMId reads and writes the boot option parameters 0 to
// 7 of IPMI 2.0, table 28-14: phosphor-host-ipmid has 0, 3, 4 and 5 (chassishandler.cpp).
// pyghmi and ironic write parameter 3 before each boot device.
func TestBootOptionParametersOfPhosphorHostIPMId(t *testing.T) {
	const notSupported = 0x80 // §28.12 and §28.13: parameter not supported
	r := rack.Default(1)
	r.Hosts[0].Profile = "openbmc-tiogapass"
	l := labtest.Start(t, lab.Config{Rack: &r})
	ask := func(cmd byte, data ...byte) byte {
		t.Helper()
		code, _, ok := l.First().InBand().Execute(t.Context(), 0, 0, cmd, data)
		if !ok {
			t.Fatalf("command %#x is not answered", cmd)
		}
		return code
	}
	writes := [][]byte{{0}, {1}, {1}, {8}, {1, 1}, {0x80, 4, 0, 0, 0}, make([]byte, 9), make([]byte, 17)}
	for n, want := range []byte{0, notSupported, notSupported, 0, 0, 0, notSupported, notSupported} {
		if got := ask(0x08, append([]byte{byte(n)}, writes[n]...)...); got != want {
			t.Errorf("Set System Boot Options of parameter %d = %#x, want %#x", n, got, want)
		}
		if got := ask(0x09, byte(n), 0, 0); got != want {
			t.Errorf("Get System Boot Options of parameter %d = %#x, want %#x", n, got, want)
		}
	}
}
