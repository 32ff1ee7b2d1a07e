package rack_test

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/rack"
)

func TestFirmwareForNamesTheComponents(t *testing.T) {
	want := firmware.Image{Kind: firmware.KindBIOS, Vendor: "Metalab", Model: "Generic Server G1"}
	for _, name := range []string{"BIOS", "bios"} {
		if got, err := rack.FirmwareFor(nil, "generic", name); got != want || err != nil {
			t.Errorf("FirmwareFor(generic, %s) = %+v, %v, want %+v", name, got, err, want)
		}
	}
	if _, err := rack.FirmwareFor(nil, "generic", "Fan"); err == nil || !strings.Contains(err.Error(), "must be one of BIOS, BMC") {
		t.Errorf("FirmwareFor(generic, Fan) = %v, want the components that there are", err)
	}
	if _, err := rack.FirmwareFor(nil, "none", "BIOS"); err == nil {
		t.Error("FirmwareFor(none, BIOS) = nil")
	}
}
