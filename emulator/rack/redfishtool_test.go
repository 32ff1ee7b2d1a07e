package rack_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// The DMTF's redfishtool works with a BMC.
func TestRedfishtool(t *testing.T) {
	prerequisites.Need(t, "redfishtool")
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	user, password := l.Credentials(h)
	run := func(name, pw string, args ...string) (string, error) {
		base := []string{"-r", h.Address().String(), "-u", name, "-p", pw, "-n", "-S", "Always", "-T", "20"}
		out, err := exec.CommandContext(t.Context(), "redfishtool", append(base, args...)...).CombinedOutput()
		return string(out), err
	}
	logs := func(name, pw string) bool {
		_, ok := h.Login(bmc.Credentials{Name: name, Password: pw, To: bmc.ForRedfish})
		return ok
	}
	system := func() *machine.View { return h.Machine() }
	for _, tt := range []struct {
		args string
		want string      // in its output
		is   func() bool // checked afterwards, if not nil
	}{
		{args: "versions", want: `"v1": "/redfish/v1/"`},
		{args: "root", want: "ServiceRoot"},
		{args: "odata", want: `"@odata.context"`},
		{args: "metadata", want: "edmx:Edmx"},
		{args: "raw GET /redfish/v1/Systems", want: "ComputerSystemCollection"},
		{args: "Systems", want: "Members"},
		{args: "Systems list", want: `"Id": "1"`},
		{args: "Systems -1 get", want: h.Machine().Identity.Serial},
		{args: "Systems -F -P PowerState get", want: `"Off"`},
		{args: "Systems -1 setBootOverride Once Pxe", is: func() bool { return system().Override.Target == machine.Pxe }},
		{args: "Systems -1 setBootOverride Disabled", is: func() bool { return system().Override.Enabled == machine.Disabled }},
		{args: "Systems -1 setAssetTag rack-7", is: func() bool { return system().Asset.Tag == "rack-7" }},
		{args: "Systems -1 setIndicatorLed Lit", is: func() bool { return system().Asset.IndicatorLED == machine.IndicatorLit }},
		{args: `Systems -1 patch {"AssetTag":"rack-8"}`, is: func() bool { return system().Asset.Tag == "rack-8" }},
		{args: "Systems -1 reset On", is: func() bool { return system().Power != machine.PowerOff }},
		{args: "Systems -1 Processors", want: "ProcessorCollection"},
		{args: "Systems -1 Processors list", want: "Id"},
		{args: "Systems -1 Processors -a", want: "SerialNumber"},
		{args: "Systems -1 EthernetInterfaces list", want: `"Id": "1"`},
		{args: "Systems -1 EthernetInterfaces -i 1", want: h.Machine().Identity.NICs[0].MAC},
		{args: "Systems -1 Logs list", want: "Id"},
		{args: "Systems -1 reset ForceOff"},
		{args: "Chassis list", want: `"Id": "1"`},
		{args: "Chassis -1 get", want: h.Machine().Identity.Serial},
		{args: "Chassis -1 setAssetTag shelf-3"},
		{args: "Chassis -1 setIndicatorLed Off", is: func() bool { return system().Asset.IndicatorLED == machine.IndicatorOff }},
		{args: "Chassis -1 Power", want: "PowerControl"},
		{args: "Chassis -1 Thermal", want: "Temperatures"},
		{args: "Chassis -1 Sensors", want: "Reading"},
		{args: "Chassis -1 getPowerReading", want: "PowerConsumedWatts"},
		{args: "Chassis -1 getPowerReading consumed", want: "PowerConsumedWatts"},
		{args: "Chassis -1 setPowerLimit 400"},
		{args: "Managers list", want: "UUID"},
		{args: "Managers -1 get", want: "FirmwareVersion"},
		{args: "Managers -1 setDateTime 2031-02-03T04:05:06+00:00"},
		{args: "Managers -1 setTimeOffset offset=+01:00"},
		{args: "Managers -1 NetworkProtocol", want: "HTTPS"},
		{args: "Managers -1 EthernetInterfaces list", want: "Id"},
		{args: "Managers -1 Logs list", want: "Id"},
		{args: "AccountService get", want: "AccountService"},
		{args: "AccountService Accounts list", want: user},
		{args: "AccountService Roles list", want: "Operator"},
		{args: "AccountService adduser guest g-Secret-123 ReadOnly", is: func() bool { ok := logs("guest", "g-Secret-123"); return ok }},
		{args: "AccountService setpassword guest other-Secret-1", is: func() bool { ok := logs("guest", "other-Secret-1"); return ok }},
		{args: "AccountService useradmin guest disable", is: func() bool { ok := logs("guest", "other-Secret-1"); return !ok }},
		{args: "AccountService useradmin guest enable", is: func() bool { ok := logs("guest", "other-Secret-1"); return ok }},
		{args: "AccountService useradmin guest setRoleId Operator"},
		{args: "AccountService useradmin guest unlock"},
		{args: "AccountService deleteuser guest", is: func() bool { ok := logs("guest", "other-Secret-1"); return !ok }},
		{args: "SessionService get", want: "SessionTimeout"},
		{args: "SessionService setSessionTimeout 600", is: func() bool { return h.BMC().SessionTimeout == 10*time.Minute }},
		{args: "SessionService login", want: "X-Auth-Token", is: func() bool { return len(h.BMC().Sessions) == 1 }},
		{args: "SessionService Sessions list", want: user},
		{args: "SessionService logout -i 1", is: func() bool { return len(h.BMC().Sessions) == 0 }},
		{args: "-A Session Systems -1 get", want: h.Machine().Identity.Serial},
		{args: "Managers -1 reset GracefulRestart"},
	} {
		out, err := run(user, password, strings.Fields(tt.args)...)
		if err != nil || !strings.Contains(out, tt.want) || tt.is != nil && !tt.is() {
			t.Errorf("redfishtool %s: %v, want %q\n%.600s", tt.args, err, tt.want, out)
		}
	}
}
