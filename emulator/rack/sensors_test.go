package rack_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// tooled is a host that is on, with the programs that read it.
type tooled struct {
	t *testing.T
	l *racktest.Rack
	h *rack.Host
}

func startTooled(t *testing.T, c rack.Config) tooled {
	t.Helper()
	for _, name := range []string{"ipmitool", "ipmi-sensors", "ipmi-fru", "ipmi-dcmi"} {
		prerequisites.Need(t, name)
	}
	l := racktest.Start(t, c)
	b := tooled{t, l, l.First()}
	if b.h.Machine().Power == machine.PowerOff {
		power(t, b.h, machine.ResetOn)
		l.Advance(10 * time.Minute)
	}
	return b
}

// says runs a program that must print some texts. ipmitool returns an error after it
// has edited a FRU, so only the output counts.
func (b tooled) says(line string, texts ...string) string {
	b.t.Helper()
	out, err := runTool(b.t, b.l, b.h, line)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			b.t.Errorf("%s = %v, want %q in\n%s", line, err, text, out)
		}
	}
	return out
}

// shows returns the value at a path of a resource.
func (b tooled) shows(uri, path string) string {
	b.t.Helper()
	status, body := call(b.t, b.l, b.h, "GET", uri, "")
	if status != 200 {
		b.t.Fatalf("GET %s = %d", uri, status)
	}
	return at(body, path)
}

func (b tooled) patch(uri, body string) {
	b.t.Helper()
	if status, answer := call(b.t, b.l, b.h, "PATCH", uri, body); status/100 != 2 {
		b.t.Errorf("PATCH %s %s = %d %v", uri, body, status, answer)
	}
}

const sensorsPath = chassisPath + "/Sensors/"

// ipmitool and Redfish show the same sensors with the same readings (statement F8).
func TestIPMIAndRedfishReadTheSameSensors(t *testing.T) {
	b := startTooled(t, rack.Config{})
	apply(t, b.h, machine.Thermal{Command: thermal.SetLoad{Load: new(0.7)}})
	b.l.Advance(40 * time.Second)
	lines := map[string][]string{} // by name
	for line := range strings.SplitSeq(b.says("ipmitool sdr elist full"), "\n") {
		if f := strings.Split(line, "|"); len(f) == 5 {
			lines[strings.TrimSpace(f[0])] = f
		}
	}
	numbers := map[string]string{}
	for _, list := range []string{"Thermal/Temperatures", "Thermal/Fans", "Power/Voltages"} {
		resource, name, _ := strings.Cut(list, "/")
		_, body := call(t, b.l, b.h, "GET", chassisPath+"/"+resource, "")
		all, _ := body[name].([]any)
		for _, one := range all {
			numbers[at(one.(map[string]any), "Name")] = at(one.(map[string]any), "SensorNumber")
		}
	}
	far := map[thermal.Kind]float64{thermal.Temperature: 0.5, thermal.Speed: 44, thermal.Voltage: 0.03, thermal.Power: 2}
	compared := 0
	for _, s := range b.h.Machine().Profile.Thermal.Sensors {
		if s.Kind == thermal.Energy {
			continue
		}
		name := strings.NewReplacer("Input", "In", "Output", "Out").Replace(s.Name)
		f := lines[name]
		if f == nil {
			t.Errorf("ipmitool shows no %s", name)
			continue
		}
		path := "Reading"
		if s.Kind == thermal.Speed {
			path = "SpeedRPM"
		}
		got, err := strconv.ParseFloat(strings.Fields(f[4])[0], 64)
		want, bad := strconv.ParseFloat(b.shows(sensorsPath+s.ID, path), 64)
		if err != nil || bad != nil || math.Abs(got-want) > far[s.Kind]*1.01 {
			t.Errorf("%s: ipmitool shows %q, Redfish %v", name, f[4], want)
		}
		if number, ok := numbers[s.Name]; ok {
			compared++
			if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(f[1]), "h"), 16, 0); err != nil || fmt.Sprint(n) != number {
				t.Errorf("%s has the number %s, in Redfish %s", name, f[1], number)
			}
		}
	}
	if compared < 18 {
		t.Errorf("only %d numbers were compared of %v", compared, numbers)
	}
}

// A threshold that one protocol sets is visible in the other, survives a restart of
// the rack, and is crossed by the reading (statement F8).
func TestIPMIAndRedfishHaveTheSameThresholds(t *testing.T) {
	dir := t.TempDir()
	b := startTooled(t, rack.Config{Dir: dir})
	const cpu = sensorsPath + "CPU1Temp"
	b.says("ipmitool raw 4 0x26 2 0x10 0 0 0 0 91 0")
	if got := b.shows(cpu, "Thresholds/UpperCritical/Reading"); got != "91" {
		t.Errorf("Redfish shows %s", got)
	}
	b.patch(cpu, `{"Thresholds":{"UpperCaution":{"Reading":80}}}`)
	b.says("ipmitool sensor list", "CPU 1 Temp       | 37.000     | degrees C  | ok    | na        | na        | na        | 80.000    | 91.000    | 103.000")
	b.l.Stop()
	b = startTooled(t, rack.Config{Dir: dir})
	b.says("ipmitool sensor list", "| 80.000    | 91.000    | 103.000")
	apply(t, b.h, machine.Thermal{Command: thermal.Force{Sensor: "CPU1Temp", Reading: new(91.0)}})
	if got := b.shows(cpu, "Status/Health"); got != "Critical" {
		t.Errorf("at 91 °C Redfish shows %s", got)
	}
	b.says("ipmitool sdr elist full", "CPU 1 Temp       | 02h | ucr")
	b.says("ipmitool sel elist", "Temperature CPU 1 Temp | Upper Critical going high | Asserted | Reading 91 > Threshold 91 degrees C")
	b.patch(cpu, `{"Enabled":false}`)
	b.says("ipmitool sdr elist full", "CPU 1 Temp       | 02h | ns")
}

// Serial numbers and asset data are the same in both protocols (statement F8).
func TestIPMIAndRedfishShowTheSameInventory(t *testing.T) {
	b := startTooled(t, rack.Config{})
	const system = "/redfish/v1/Systems/1"
	b.patch(system, `{"AssetTag":"by Redfish"}`)
	b.says("ipmitool fru print 0", "Product Serial        : "+b.shows(system, "SerialNumber"), "Chassis Serial        : "+b.shows(chassisPath, "SerialNumber"),
		"Product Name          : "+b.shows(system, "Model"), "Product Asset Tag     : by Redfish")
	b.says("ipmitool dcmi asset_tag", "by Redfish")
	b.says("ipmitool dcmi set_asset_tag rack-7-unit-12-which-is-long")
	if got := b.shows(system, "AssetTag"); got != "rack-7-unit-12-which-is-long" {
		t.Errorf("Redfish shows the tag %q", got)
	}
	for serial, tag := range map[string]string{"SERIAL-OF-MINE-IS-LONGER": "short", "X": "again a longer one"} {
		b.says("ipmitool fru edit 0 field p 4 "+serial, "Done")
		b.patch(system, fmt.Sprintf(`{"AssetTag":%q}`, tag))
		b.says("ipmitool fru print 0", "Product Serial        : "+serial, "Product Asset Tag     : "+tag)
		if got := b.shows(system, "SerialNumber"); got != serial {
			t.Errorf("Redfish shows the serial number %q, want %q", got, serial)
		}
		if out := b.says("ipmi-fru --sdr-cache-directory="+t.TempDir(), "FRU Product Asset Tag: "+tag, "FRU Inventory Device: DIMM 8"); strings.Contains(out, "rror") {
			t.Errorf("ipmi-fru:\n%s", out)
		}
	}
	b.says("ipmitool fru edit 0 field c 1 CHASSIS-1", "Done")
	if got := b.shows(chassisPath, "SerialNumber"); got != "CHASSIS-1" {
		t.Errorf("Redfish shows the chassis %q", got)
	}
	b.says("ipmitool fru print", "Product Serial        : "+b.shows(chassisPath+"/PowerSubsystem/PowerSupplies/PSU2", "SerialNumber"),
		"Product Serial        : "+b.shows(system+"/Memory/DIMM3", "SerialNumber"), "Board Serial          : "+b.shows(chassisPath+"/PCIeDevices/1", "SerialNumber"))
	b.says("ipmitool dcmi get_mc_id_string", b.shows("/redfish/v1/Managers/1/NetworkProtocol", "HostName"))
	b.says("ipmitool dcmi set_mc_id_string bmc-17-in-rack-7")
	if got := b.shows("/redfish/v1/Managers/1/NetworkProtocol", "HostName"); got != "bmc-17-in-rack-7" {
		t.Errorf("Redfish shows the host name %q", got)
	}
}

func TestIPMIAndRedfishHaveTheSamePowerLimit(t *testing.T) {
	b := startTooled(t, rack.Config{})
	apply(t, b.h, machine.Thermal{Command: thermal.SetLoad{Load: new(1.0)}})
	b.l.Advance(30 * time.Second)
	const control = chassisPath + "/Controls/PowerLimit"
	measured := func() {
		t.Helper()
		const metrics = "PowerControl/0/"
		_, body := call(t, b.l, b.h, "GET", chassisPath+"/Power", "")
		all, _ := body["PowerControl"].([]any)
		of := all[0].(map[string]any)
		out := b.says("ipmitool dcmi power reading", "activated")
		for text, path := range map[string]string{
			"Instantaneous power reading": "PowerConsumedWatts", "Minimum during sampling period": "PowerMetrics/MinConsumedWatts",
			"Maximum during sampling period": "PowerMetrics/MaxConsumedWatts", "Average power reading over sample period": "PowerMetrics/AverageConsumedWatts",
		} {
			m := regexp.MustCompile(text + `: +(\d+) Watts`).FindStringSubmatch(out)
			if m == nil || m[1] != at(of, path) {
				t.Errorf("%s%s is %s in Redfish, ipmitool shows\n%s", metrics, path, at(of, path), out)
			}
		}
	}
	measured()
	b.says("ipmitool dcmi power get_limit", "No Active Power Limit")
	b.says("ipmitool dcmi power set_limit limit 400")
	if got := b.shows(control, "ControlMode"); got != "Disabled" {
		t.Errorf("not yet activated, Redfish shows %s", got)
	}
	b.says("ipmitool dcmi power activate", "successfully activated")
	if got := b.shows(control, "SetPoint"); got != "400" {
		t.Errorf("Redfish shows %s W", got)
	}
	measured()
	b.patch(control, `{"SetPoint":350}`)
	b.says("ipmitool dcmi power get_limit", "Power Limit Active", "350 Watts")
	b.says("ipmi-dcmi --get-power-limit", "Power Limit Requested                             : 350 watts")
	b.says("ipmitool dcmi power deactivate", "successfully deactivated")
	if got := b.shows(control, "ControlMode"); got != "Disabled" {
		t.Errorf("deactivated, Redfish shows %s", got)
	}
	b.says("ipmi-dcmi --get-dcmi-capability-info", "DCMI Specification Conformance                     : 1.5")
	b.says("ipmi-dcmi --get-system-power-statistics", "Power Measurement                    : Active")
	b.says("ipmi-dcmi --get-enhanced-system-power-statistics", "Rolling Average Time Period 1 Minutes")
	b.says("ipmitool dcmi sensors", "CPU: 2 temperature sensors found", "Inlet Temp")
	b.says("ipmitool dcmi get_temp_reading", "CPU temperature sensors(41h)		2")
	b.says("ipmitool dcmi discover", "Power management available")
	b.says("ipmitool dcmi thermalpolicy set 0x40 1 nonvolatile poweroff sel 40 60", "successfully set")
	b.says("ipmitool dcmi thermalpolicy get 0x40 1", "40 degrees", "60 seconds")
	power(t, b.h, machine.ForceOff)
	b.l.Advance(time.Minute)
	b.says("ipmitool dcmi power reading", "Instantaneous power reading:                     0 Watts", "deactivated")
}

// FreeIPMI reports all sensors of a healthy server as nominal.
func TestFreeIPMIReportsAllSensorsNominal(t *testing.T) {
	b := startTooled(t, rack.Config{})
	out := b.says("ipmi-sensors --quiet-cache --sdr-cache-directory=" + t.TempDir() + " --output-sensor-state --no-header-output")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if f := strings.Split(line, "|"); len(f) < 6 || strings.TrimSpace(f[3]) != "Nominal" {
			t.Errorf("%s", line)
		}
	}
	if len(lines) < 45 {
		t.Errorf("%d sensors", len(lines))
	}
	apply(t, b.h, machine.Thermal{Command: thermal.SetSupply{ID: "PSU2", Fault: thermal.Failed}})
	out = b.says("ipmi-sensors --quiet-cache --sdr-cache-directory=" + t.TempDir() + " --output-sensor-state")
	if !regexp.MustCompile(`PSU 2 Status +\| Power Supply +\| Critical`).MatchString(out) || !regexp.MustCompile(`PSU Redundancy +\| Power Unit +\| (Warning|Critical)`).MatchString(out) {
		t.Errorf("with a broken power supply:\n%s", out)
	}
}
