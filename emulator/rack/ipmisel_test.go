package rack_test

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// events returns what ipmitool prints of the event log.
func (c tool) events() (out []string) {
	c.t.Helper()
	text, ok := c.run("sel", "elist")
	if !ok {
		c.t.Errorf("sel elist fails:\n%s", text)
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.SplitN(line, "|", 4) // number, date, time and event
		if len(fields) == 4 {
			out = append(out, strings.Join(strings.Fields(fields[3]), " "))
		}
	}
	return out
}

const selEntries = "/redfish/v1/Systems/1/LogServices/SEL/Entries"

func TestIpmitoolSELList(t *testing.T) {
	l, tools := startTool(t, "- {count: 1}\n")
	c, h := tools[0], l.First()
	hot, none := 43.0, (*float64)(nil)
	do := func(x thermal.Command) { apply(t, h, machine.Thermal{Command: x}) }
	do(thermal.Force{Sensor: "InletTemp", Reading: &hot})
	do(thermal.Force{Sensor: "InletTemp", Reading: none})
	do(thermal.SetSupply{ID: "PSU1", Fault: thermal.Failed})
	do(thermal.SetSupply{ID: "PSU1", Fault: thermal.NoInput})
	do(thermal.SetSupply{ID: "PSU1", Fault: thermal.Absent})
	power(t, h, machine.ResetOn)
	l.Advance(20 * time.Second)
	want := []string{
		"Temperature Inlet Temp | Upper Non-critical going high | Asserted | Reading 43 > Threshold 38 degrees C",
		"Temperature Inlet Temp | Upper Critical going high | Asserted | Reading 43 > Threshold 42 degrees C",
		"Temperature Inlet Temp | Upper Critical going high | Deasserted | Reading 22 < Threshold 42 degrees C",
		"Temperature Inlet Temp | Upper Non-critical going high | Deasserted | Reading 22 < Threshold 38 degrees C",
		"Power Supply PSU 1 Status | Failure detected | Asserted",
	}
	got := c.events()
	for i, line := range want {
		if i >= len(got) || got[i] != line {
			t.Errorf("event %d is\n%s, want\n%s", i+1, strings.Join(got, "\n"), line)
			break
		}
	}
	for _, part := range []string{
		"Power Supply PSU 1 Status | Failure detected | Deasserted", "Power Supply PSU 1 Status | Power Supply AC lost | Asserted",
		"Power Supply PSU 1 Status | Presence detected | Deasserted", "System ACPI Power State", "Redundancy Lost",
	} {
		if !strings.Contains(strings.Join(got, "\n"), part) {
			t.Errorf("no event %q in\n%s", part, strings.Join(got, "\n"))
		}
	}

	// An entry that one protocol removes is gone for the other too, and entries have
	// the same number in both.
	_, body := call(t, l, h, "GET", selEntries, "")
	if n := body["Members@odata.count"]; n != float64(len(got)) {
		t.Errorf("Redfish shows %v entries, ipmitool %d", n, len(got))
	}
	c.want("Deleted entry", "sel", "delete", "2")
	if status, _ := call(t, l, h, "GET", selEntries+"/2", ""); status != 404 {
		t.Errorf("entry 2 is still there: %d", status)
	}
	if out, ok := c.run("sel", "delete", "2"); ok && !strings.Contains(out, "not found") {
		t.Errorf("deleted twice: %s", out)
	}
	if status, _ := call(t, l, h, "DELETE", selEntries+"/1", ""); status != 204 {
		t.Errorf("DELETE entry 1 = %d", status)
	}
	if now := c.events(); len(now) != len(got)-2 || now[0] != got[2] {
		t.Errorf("ipmitool shows\n%s", strings.Join(now, "\n"))
	}
	c.want("Upper Critical", "event", "1")
	_, body = call(t, l, h, "GET", fmt.Sprintf("%s/%d", selEntries, len(got)+1), "")
	if body["SensorType"] != "Temperature" || body["EntryCode"] != "Upper Critical - going high" || body["Severity"] != "Critical" || body["EntryType"] != "SEL" {
		t.Errorf("Redfish shows %v", body)
	}
	c.want("Clearing SEL", "sel", "clear")
	if now := c.events(); len(now) != 1 || !strings.Contains(now[0], "Log area reset/cleared") {
		t.Errorf("after clearing ipmitool shows\n%s", strings.Join(now, "\n"))
	}
	if status, _ := call(t, l, h, "POST", "/redfish/v1/Systems/1/LogServices/SEL/Actions/LogService.ClearLog", "{}"); status != 204 {
		t.Errorf("ClearLog = %d", status)
	}
	if now := c.events(); len(now) != 0 {
		t.Errorf("after clearing by Redfish ipmitool shows\n%s", strings.Join(now, "\n"))
	}
	c.want("", "sel", "time", "set", "02/03/31 04:05:06")
	_, body = call(t, l, h, "GET", "/redfish/v1/Managers/1", "")
	if at := fmt.Sprint(body["DateTime"]); !strings.HasPrefix(at, "2031-02-03T") {
		t.Errorf("Redfish shows the time %v", at)
	}
}

func TestIpmitoolBridgesToASatellite(t *testing.T) {
	_, tools := startTool(t, "- {count: 1}\n")
	c := tools[0]
	c.want("50 01", "-t", "0x2c", "raw", "6", "1")
	c.want("Device ID                 : 80", "-t", "0x2c", "mc", "info")
	c.want("Device ID                 : 32", "-T", "0x2c", "-B", "0", "-t", "0x20", "-b", "0", "mc", "info")
	c.refused("-t", "0x30", "raw", "6", "1")
	c.want("Power-cycle", "pef", "info")
	c.want("OS critical stop", "pef", "filter", "list")
	out, ok := c.run("firewall", "info")
	if !ok || strings.Contains(out, "rror") || !regexp.MustCompile(`00,06 support: +fe3f`).MatchString(out) {
		t.Errorf("firewall info (%t):\n%s", ok, out)
	}
}

// An event filter that matches sends a trap from the address of the BMC
// (statement I45).
func TestAlertsArriveAsSNMPTraps(t *testing.T) {
	prerequisites.Need(t, "ipmitool")
	station, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = station.Close() }()
	r := rackfile.Default(1)
	r.Accounts[0].Password = "secret-1234"
	l := racktest.Start(t, rack.Config{Rack: &r, Traps: station.LocalAddr().(*net.UDPAddr).AddrPort().Port()})
	h := l.First()
	at, _ := h.IPMI()
	c := tool{t: t, at: at, kind: "lanplus", user: r.Accounts[0].Name, pass: r.Accounts[0].Password}
	for _, raw := range []string{
		"4 0x12 1 1", "4 0x12 2 1", "4 0x12 9 1 0x18 0x11 0", "0xc 1 1 0x13 1 0 0 127 0 0 1 0 0 0 0 0 0",
	} {
		c.want("", append([]string{"raw"}, strings.Fields(raw)...)...)
	}
	hot := 43.0
	apply(t, h, machine.Thermal{Command: thermal.Force{Sensor: "InletTemp", Reading: &hot}})
	if err := station.SetReadDeadline(time.Now().Add(patience.Of(10 * time.Second))); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	for range 2 { // across two thresholds
		n, from, err := station.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatal(err)
		}
		if from.Addr() != at.Addr() || !strings.Contains(string(b[:n]), "public") {
			t.Errorf("%q from %v, want one from %v", b[:n], from, at.Addr())
		}
	}
	c.want("PEF | Alert", "pef", "status")
}
