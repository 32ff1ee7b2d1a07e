package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// sysChecks are the checks of the system.
var sysChecks = []Check{
	{
		ID: "SYS-001", Title: "exactly one usable System with a stable ID", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "the wrong system is provisioned", Remedy: "name the system's path in the BMC's address",
		After: []string{"AUTH-001"}, Run: oneSystem,
	},
	{
		ID: "SYS-002", Title: "Manufacturer, Model, SerialNumber and UUID", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "assets do not match", Remedy: "set the asset data in the firmware",
		After: []string{"SYS-001"}, Run: identityComplete,
	},
	{
		ID: "SYS-003", Title: "ManagedBy or a manager is found; a Chassis link exists", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "clients do not find the manager", Remedy: "use a client that reads Managers",
		After: []string{"SYS-001"}, Run: managerLinked,
	},
	{
		ID: "SYS-004", Title: "PowerState is valid and agrees with IPMI", Level: ReadOnly, Protocol: Both, Step: Register,
		Predicts: `"failed to get power state"`, Remedy: "update the firmware; reset the BMC",
		After: []string{"SYS-001"}, Run: powerStateTrue,
	},
	{
		ID: "SYS-005", Title: "processors and memory: summaries and members are plausible", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "inspection is wrong", Remedy: "inspect in-band",
		After: []string{"SYS-001"}, Run: inventoryPlausible,
	},
	{
		ID: "SYS-006", Title: "EthernetInterfaces have MAC addresses, which stay after a reset", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "bootMACAddress does not match", Remedy: "give the host its bootMACAddress by hand",
		After: []string{"SYS-001"}, Run: interfacesKnown,
	},
	{
		ID: "SYS-007", Title: "LLDP and port data, if offered", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "cabling is not checked", Remedy: "inspect in-band",
		After: []string{"SYS-001"}, Run: portsShown,
	},
	{
		ID: "SYS-008", Title: "HostName and AssetTag can be written", Level: Reversible, Protocol: Redfish, Step: Day2,
		Predicts: "labels are not written", Remedy: "none is needed for provisioning",
		After: []string{"SYS-001"}, Run: labelsWritable,
	},
	{
		ID: "SYS-009", Title: "the indicator LED can be switched", Level: Reversible, Protocol: Redfish, Step: Day2,
		Predicts: "the server is not found in the rack", Remedy: "none is needed for provisioning",
		After: []string{"SYS-001"}, Run: indicatorSwitches,
	},
}

// oneSystem reads the system three times, as a controller finds it.
func oneSystem(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	usable := 0
	for _, uri := range place.Systems {
		v, err := r.Page(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		if v.At("PowerState").TextOr("") != "" || v.At("Actions", "#ComputerSystem.Reset").Exists() {
			usable++
		}
	}
	id := place.System.At("Id").TextOr("")
	if id == "" {
		return Failed("%s has no Id", place.SystemURI)
	}
	for range 2 {
		again, _, err := r.Get(ctx, place.SystemURI)
		if err != nil {
			return Judge(err)
		}
		if now := again.At("Id").TextOr(""); now != id {
			return Failed("the Id of %s was %q and is %q", place.SystemURI, id, now)
		}
	}
	switch {
	case usable == 0:
		return Failed("no member of Systems has a PowerState or a Reset action")
	case usable > 1:
		return Warned("%d systems are usable: %s", usable, strings.Join(place.Systems, ", ")).With("system", "%s", place.SystemURI)
	}
	return Passed("").With("system", "%s", place.SystemURI)
}

// identityComplete reads what assets are matched by.
func identityComplete(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	o := Passed("")
	var missing []string
	names := []string{"Manufacturer", "Model", "SerialNumber", "UUID"}
	if strings.HasPrefix(place.System.At("Manufacturer").TextOr(""), "Dell") {
		names = append(names, "SKU") // the service tag
	}
	for _, n := range names {
		text := strings.TrimSpace(place.System.At(n).TextOr(""))
		if text == "" {
			missing = append(missing, n)
			continue
		}
		o = o.With(n, "%s", text)
	}
	if len(missing) > 0 {
		o.Verdict, o.Reason = Fail, place.SystemURI+" has no "+strings.Join(missing, ", ")
	}
	return o
}

// managerLinked follows the links from the system.
func managerLinked(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	if place.ManagerURI == "" {
		return Failed("%s has no Links/ManagedBy, and Managers no member", place.SystemURI)
	}
	var missing []string
	for _, link := range []struct{ name, uri string }{{"ManagedBy", place.ManagerURI}, {"Chassis", place.ChassisURI}} {
		uri, err := place.System.At("Links", link.name, "0").Link()
		switch {
		case err != nil:
			missing = append(missing, link.name)
			continue
		}
		if _, err := r.Page(ctx, uri); err != nil {
			return Judge(err)
		}
	}
	o := Passed("").With("manager", "%s", place.ManagerURI).With("BMC firmware", "%s", place.Manager.At("FirmwareVersion").TextOr("unknown")).
		With("BIOS", "%s", place.System.At("BiosVersion").TextOr("unknown"))
	if len(missing) > 0 {
		o.Verdict, o.Reason = Warn, "the system has no Links/"+strings.Join(missing, " and no Links/")
		if slices.Contains(missing, "ManagedBy") {
			q := Quirk{Name: "missing-links"}
			if place.System.At("EthernetInterfaces").Exists() {
				q.Values = map[string]string{"which": "ManagedBy"}
			}
			o.Quirks = append(o.Quirks, q)
		}
	}
	return o
}

// powerStates are the values of PowerState.
var powerStates = []string{"On", "Off", "PoweringOn", "PoweringOff", "Paused"}

// powerStateTrue reads the power state, by IPMI too where it is given.
func powerStateTrue(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	v, _, err := r.Get(ctx, place.SystemURI)
	if err != nil {
		return Judge(err)
	}
	state, err := v.At("PowerState").Text()
	if err != nil {
		return Judge(err)
	}
	if !slices.Contains(powerStates, state) {
		return Failed("PowerState is %q, not one of %s", state, strings.Join(powerStates, ", "))
	}
	o := Passed("").With("power", "%s", state)
	if r.Config().IPMI == "" || r.bmc.dry != nil {
		return o
	}
	on, err := r.ipmiPower(ctx)
	if err != nil {
		return o.With("IPMI", "not compared: %v", err) // IPMI-004 reports it
	}
	if on != (state == "On" || state == "PoweringOff") && (state == "On" || state == "Off") {
		return Failed("Redfish says that the system is %s, IPMI that it is %s", state, map[bool]string{true: "on", false: "off"}[on])
	}
	return o
}

// ipmiPower reads the power state by IPMI.
func (r *Run) ipmiPower(ctx context.Context) (on bool, err error) {
	s, err := r.IPMISession(ctx)
	if err != nil {
		return false, err
	}
	defer r.IPMIClose(ctx, s)
	data, err := r.IPMIDo(ctx, s, ipmi.GetChassisStatus)
	if err != nil {
		return false, err
	}
	if len(data) < 3 {
		return false, Findingf("Get Chassis Status has %d bytes, want 3", len(data))
	}
	return data[0]&1 != 0, nil
}

// inventoryPlausible compares the summaries of processors and memory with their
// members.
func inventoryPlausible(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	off := place.System.At("PowerState").TextOr("") != "On"
	cpus, cpuErr := place.System.At("ProcessorSummary", "Count").Number()
	memory, memErr := place.System.At("MemorySummary", "TotalSystemMemoryGiB").Number()
	if cpuErr != nil || memErr != nil || cpus <= 0 || memory <= 0 {
		problem := fmt.Sprintf("ProcessorSummary/Count is %s, MemorySummary/TotalSystemMemoryGiB is %s",
			abbreviate(place.System.At("ProcessorSummary", "Count").Raw()), abbreviate(place.System.At("MemorySummary", "TotalSystemMemoryGiB").Raw()))
		if off {
			return Warned("%s while the system is off", problem)
		}
		return Failed("%s", problem)
	}
	o := Passed("").With("processors", "%v", cpus).With("memory", "%v GiB", memory)
	uri, err := place.System.At("Processors").Link()
	if err != nil {
		return o
	}
	members, err := r.Members(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	sockets := 0
	for _, m := range members[:min(len(members), 64)] {
		v, err := r.Page(ctx, m)
		if err != nil {
			return Judge(err)
		}
		if kind := v.At("ProcessorType").TextOr("CPU"); kind == "CPU" && v.At("Status", "State").TextOr("") != "Absent" {
			sockets++
		}
	}
	if sockets != int(cpus) {
		o.Verdict, o.Reason = Warn, fmt.Sprintf("ProcessorSummary/Count is %v, and %d processors are listed", cpus, sockets)
	}
	return o
}

// nic holds the properties by which a client recognises an interface.
type nic struct {
	id, mac string
	virtual bool // such as a VLAN, which shares the address of its port
}

// systemMembers returns the URIs of the members of a collection that every system has.
func (r *Run) systemMembers(ctx context.Context, collection string) ([]string, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return nil, err
	}
	link := place.System.At(collection)
	if !link.Exists() {
		return nil, Findingf("%s has no %s", place.SystemURI, collection)
	}
	uri, err := link.Link()
	if err != nil {
		return nil, err
	}
	return r.Members(ctx, uri)
}

// nics reads the interfaces of the system with their MAC addresses.
func (r *Run) nics(ctx context.Context) ([]nic, error) {
	members, err := r.systemMembers(ctx, "EthernetInterfaces")
	if err != nil {
		return nil, err
	}
	var all []nic
	for _, m := range members[:min(len(members), 64)] {
		v, err := r.Page(ctx, m)
		if err != nil {
			return nil, err
		}
		mac := v.At("MACAddress").TextOr("")
		if mac == "" {
			mac = v.At("PermanentMACAddress").TextOr("")
		}
		vlan, _ := v.At("VLAN", "VLANEnable").Bool()
		virtual := vlan || v.At("EthernetInterfaceType").TextOr("") == "Virtual" || v.At("Links", "RelatedInterfaces").Exists()
		all = append(all, nic{v.At("Id").TextOr(m), mac, virtual})
	}
	return all, nil
}

// interfacesKnown looks at the MAC addresses, and at the disruptive level again
// after a restart.
func interfacesKnown(ctx context.Context, r *Run) Outcome {
	before, err := r.nics(ctx)
	if err != nil {
		o := Judge(err)
		place, _ := r.Place(ctx)
		if o.Verdict == Fail && place != nil && !place.System.At("EthernetInterfaces").Exists() && !place.System.At("Links", "ManagedBy").Exists() {
			o = o.Quirky("missing-links")
		}
		return o
	}
	if len(before) == 0 {
		return Failed("EthernetInterfaces has no member")
	}
	seen := map[string]string{}
	var macs []string
	for _, n := range before {
		mac, err := net.ParseMAC(n.mac)
		if err != nil {
			return Failed("interface %s has MACAddress %q", n.id, n.mac)
		}
		if other, twice := seen[mac.String()]; twice && !n.virtual {
			return Failed("interfaces %s and %s both have MACAddress %s", other, n.id, mac)
		}
		seen[mac.String()] = n.id
		macs = append(macs, mac.String())
	}
	o := Passed("").With("MAC addresses", "%s", strings.Join(macs, " "))
	if !r.Level().Allows(Disruptive) || r.bmc.dry != nil {
		return o
	}
	if err := r.restart(ctx); err != nil {
		return Judge(fmt.Errorf("restart: %w", err))
	}
	r.Forget()
	after, err := r.nics(ctx)
	if err != nil {
		return Judge(err)
	}
	if !slices.Equal(before, after) {
		return Failed("the interfaces were %v before a restart, and are %v", before, after).Quirky("ids-shift-on-reboot")
	}
	return o
}

// portsShown looks at the ports of network adapters.
func portsShown(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	uri, err := place.Chassis.At("NetworkAdapters").Link()
	if err != nil {
		return Skipped("the chassis has no NetworkAdapters")
	}
	adapters, err := r.Members(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	ports, lldp := 0, 0
	for _, a := range adapters[:min(len(adapters), 16)] {
		v, err := r.Page(ctx, a)
		if err != nil {
			return Judge(err)
		}
		collection, err := v.At("Ports").Link()
		if err != nil {
			continue
		}
		members, err := r.Members(ctx, collection)
		if err != nil {
			return Judge(err)
		}
		for _, m := range members[:min(len(members), 16)] {
			port, err := r.Page(ctx, m)
			if err != nil {
				return Judge(err)
			}
			ports++
			if status := port.At("LinkStatus"); !status.Null() {
				if _, err := status.Text(); err != nil {
					return Judge(err)
				}
			}
			if got := port.At("Ethernet", "LLDPReceive"); !got.Null() {
				if _, err := got.Names(); err != nil {
					return Judge(err)
				}
				lldp++
			}
		}
	}
	if ports == 0 {
		return Skipped("the network adapters have no ports")
	}
	return Passed("").With("ports", "%d, %d with LLDP", ports, lldp)
}

// settable writes a property of the system, reads it back and restores it. It
// reports false where the system has no such property.
func (r *Run) settable(ctx context.Context, name string, value any) (bool, error) {
	place, err := r.Place(ctx)
	if err != nil {
		return false, err
	}
	uri := place.SystemURI
	before := place.System.At(name)
	if !before.Exists() {
		return false, nil
	}
	resp, err := r.patch(ctx, Change{
		Request: Request{URI: uri, Body: map[string]any{name: value}},
		Undo:    []Undo{{Method: http.MethodPatch, URI: uri, Match: true, Body: jsonBody(map[string]any{name: before.Raw()})}},
	})
	if err != nil {
		return false, err
	}
	if resp.Status/100 != 2 {
		return true, Findingf("PATCH of %s: %s", name, resp.Problem())
	}
	if r.bmc.dry != nil {
		return true, nil
	}
	// Some BMCs need a moment, and show the old value until then.
	var now Value
	ok, err := r.Poll(ctx, time.Second, 10*time.Second, func() (bool, error) {
		v, _, err := r.Get(ctx, uri)
		now = v.At(name)
		return fmt.Sprint(now.Raw()) == fmt.Sprint(value), err
	})
	if err != nil {
		return true, err
	}
	if !ok {
		return true, Findingf("PATCH of %s is answered %d, and it stays %s", name, resp.Status, abbreviate(now.Raw()))
	}
	return true, r.Restore(ctx)
}

// labelsWritable writes AssetTag and HostName.
func labelsWritable(ctx context.Context, r *Run) Outcome {
	some := false
	for _, name := range []string{"AssetTag", "HostName"} {
		there, err := r.settable(ctx, name, "labctl-conformance")
		if err != nil {
			return Judge(err)
		}
		some = some || there
	}
	if !some {
		return Skipped("the system has neither AssetTag nor HostName")
	}
	return Passed("")
}

// indicatorSwitches switches the indicator by the newer property, or the older
// one.
func indicatorSwitches(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	if lit, err := place.System.At("LocationIndicatorActive").Bool(); err == nil {
		_, err := r.settable(ctx, "LocationIndicatorActive", !lit)
		return Judge(err)
	}
	if !place.System.At("IndicatorLED").Exists() {
		return Skipped("the system has neither LocationIndicatorActive nor IndicatorLED")
	}
	led := "Blinking"
	if place.System.At("IndicatorLED").TextOr("") == led {
		led = "Off"
	}
	_, err = r.settable(ctx, "IndicatorLED", led)
	return Judge(err)
}
