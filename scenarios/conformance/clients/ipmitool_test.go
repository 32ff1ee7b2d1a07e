package clients

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// IPMI has neither virtual media nor BIOS settings nor RAID.
func TestIpmitoolManagesEveryModel(t *testing.T) {
	program := prerequisites.Need(t, "ipmitool")
	runOnModels(t, "ipmitool", []string{"inventory", "power", "boot"}, func(b *testServer) client { return &ipmitoolClient{b: b, program: program} })
}

// ipmitoolClient implements client with ipmitool.
type ipmitoolClient struct {
	b       *testServer
	program string
}

func (x *ipmitoolClient) run(args string) (string, error) {
	var base []string // ipmitool's own retries: a BMC on a busy machine may take more than a second
	at, on := x.b.server.IPMI()
	if !on {
		at = x.b.server.Address() // where nothing listens on UDP
		base = []string{"-N", "1", "-R", "1"}
	}
	ctx, cancel := context.WithTimeout(x.b.Context(), patience.Limit())
	defer cancel()
	user, password := x.b.lab.Credentials(x.b.server)
	base = append(base, "-I", "lanplus", "-H", at.Addr().String(), "-p", fmt.Sprint(at.Port()), "-U", user, "-P", password)
	out, err := exec.CommandContext(ctx, x.program, append(base, strings.Fields(args)...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ipmitool %s: %w\n%.600s", args, err, out)
	}
	return string(out), nil
}

var (
	serials = regexp.MustCompile(`(?m)Serial +: (.+?) *$`)
	powered = regexp.MustCompile(`Chassis Power is (\w+)`)
)

func (x *ipmitoolClient) inventory() (inventory, error) {
	fru, err := x.run("fru print")
	if err != nil {
		return inventory{}, err
	}
	for _, more := range []string{"mc info", "sdr list", "lan print"} {
		if _, err := x.run(more); err != nil {
			return inventory{}, err
		}
	}
	power, err := x.run("chassis power status")
	if err != nil {
		return inventory{}, err
	}
	is := inventory{Power: map[string]string{"on": "On", "off": "Off"}[powered.FindStringSubmatch(power + " Chassis Power is unknown")[1]]}
	for _, s := range serials.FindAllStringSubmatch(fru, -1) {
		is.Serials = append(is.Serials, s[1])
	}
	return is, nil
}

// ipmiPowerCommands are ipmitool's chassis power commands, by ResetType (IPMI v2.0,
// Chassis Control).
var ipmiPowerCommands = map[string]string{
	"On": "on", "ForceOff": "off", "GracefulShutdown": "soft", "PushPowerButton": "soft", "ForceRestart": "reset", "GracefulRestart": "reset",
}

func (x *ipmitoolClient) reset(kind string) error {
	_, err := x.run("chassis power " + ipmiPowerCommands[kind])
	return err
}

var ipmiBootDevices = map[string]string{"Pxe": "pxe", "Hdd": "disk", "Cd": "cdrom"}

func (x *ipmitoolClient) boot(target, _ string) error {
	_, err := x.run("chassis bootdev " + ipmiBootDevices[target] + " options=efiboot")
	return err
}

func (x *ipmitoolClient) insert(string) error                             { return errNone }
func (x *ipmitoolClient) eject() error                                    { return errNone }
func (x *ipmitoolClient) settings() (map[string]any, error)               { return nil, errNone }
func (x *ipmitoolClient) set(string, string, string) error                { return errNone }
func (x *ipmitoolClient) createMirror(string) error                       { return errNone }
func (x *ipmitoolClient) deleteVolumes() error                            { return errNone }
func (x *ipmitoolClient) raw(string, string, any) (map[string]any, error) { return nil, errNone }

// ipmiEnabled enables IPMI over LAN at the BMC, as a user does on its web pages.
func ipmiEnabled(b *testServer, c client) client {
	n := b.server.BMC().Network()
	n.IPMI.On = true
	if _, err := b.server.ApplyBMC(b.Context(), bmc.SetNetwork{Network: n}); err != nil {
		b.Fatal(err)
	}
	b.lab.Settle()
	return c
}
