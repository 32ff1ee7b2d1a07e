package idrac

import (
	"cmp"
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// attribute is an attribute of an attribute group, with its initial value.
type attribute struct {
	name  string
	value any
	takes []string // allowable values; empty: any
	fixed bool     // clients cannot write it
}

var onOff = []string{"Disabled", "Enabled"}

// groupNames are the names of groups, in the order in which the manager links to them.
var groupNames = []string{"iDRAC.Embedded.1", "System.Embedded.1", "LifecycleController.Embedded.1"}

// groups are the attributes of the BMC, the system and the Lifecycle Controller, by the
// names of their groups. Of the real groups they have the attributes that clients set
// [V: the names].
var groups = map[string][]attribute{
	"iDRAC.Embedded.1": {
		{name: "Info.1.Product", value: "Integrated Dell Remote Access Controller", fixed: true},
		{name: "Info.1.Name", value: "iDRAC", fixed: true},
		{name: "IPMILan.1.PrivLimit", value: "Administrator", takes: []string{"Administrator", "Operator", "User"}},
		{name: "IPMISOL.1.Enable", value: "Enabled", takes: onOff},
		{name: "IPMISOL.1.BaudRate", value: "115200", takes: []string{"9600", "19200", "57600", "115200"}},
		{name: "IPBlocking.1.BlockEnable", value: "Enabled", takes: onOff},
		{name: "IPBlocking.1.FailCount", value: 3},
		{name: "IPBlocking.1.FailWindow", value: 60},
		{name: "IPBlocking.1.PenaltyTime", value: 600},
		{name: "IPBlocking.1.RangeEnable", value: "Disabled", takes: onOff},
		{name: "Lockdown.1.SystemLockdown", value: "Disabled", takes: onOff},
		// [V: libredfish, tests/mockups/dell]; NTPEnable and the servers are those of the
		// NetworkProtocol (ntp.go).
		{name: "NTPConfigGroup.1.NTPMaxDist", value: 16},
		{name: "NTPConfigGroup.1.NTP1SecurityType", value: "Disabled", fixed: true},
		{name: "NTPConfigGroup.1.NTP2SecurityType", value: "Disabled", fixed: true},
		{name: "NTPConfigGroup.1.NTP3SecurityType", value: "Disabled", fixed: true},
		{name: "OS-BMC.1.AdminState", value: "Disabled", takes: onOff},
		{name: "RFS.1.Status", value: "Not Connected", fixed: true},
		{name: "Redfish.1.Enable", value: "Enabled", takes: onOff},
		{name: "SerialRedirection.1.Enable", value: "Enabled", takes: onOff},
		{name: "SNMP.1.AgentEnable", value: "Enabled", takes: onOff},
		{name: "SNMP.1.AgentCommunity", value: "public"},
		{name: "SSH.1.Timeout", value: 1800},
		{name: "SysLog.1.SysLogEnable", value: "Disabled", takes: onOff},
		{name: "SysLog.1.Server1", value: ""},
		{name: "Time.1.Timezone", value: "UTC"},
		{name: "VirtualMedia.1.Attached", value: "AutoAttach", takes: []string{"Attached", "AutoAttach", "Detached"}},
		{name: "VirtualMedia.1.Enable", value: "Enabled", takes: onOff},
		{name: "VirtualMedia.1.EncryptEnable", value: "Enabled", takes: onOff},
		{name: "VNCServer.1.Enable", value: "Disabled", takes: onOff},
		{name: "WebServer.1.Enable", value: "Enabled", takes: onOff},
		{name: "WebServer.1.Timeout", value: 1800},
		{name: "WebServer.1.TLSProtocol", value: "TLS 1.2 and Higher", takes: []string{"TLS 1.1 and Higher", "TLS 1.2 and Higher", "TLS 1.3 Only"}},
	},
	"System.Embedded.1": {
		{name: "LCD.1.Configuration", value: "Service Tag", takes: []string{"None", "User Defined", "Model Name", "Service Tag", "IPv4 Address", "MAC Address"}},
		{name: "LCD.1.UserDefinedString", value: ""},
		{name: "ServerOS.1.HostName", value: ""},
		{name: "ServerPwr.1.PSRedPolicy", value: "A/B Grid Redundant", takes: []string{"Not Redundant", "A/B Grid Redundant"}},
		{name: "ServerPwr.1.PSRapidOn", value: "Disabled", takes: onOff},
		{name: "ServerTopology.1.DataCenterName", value: ""},
		{name: "ServerTopology.1.AisleName", value: ""},
		{name: "ServerTopology.1.RackName", value: ""},
		{name: "ServerTopology.1.RackSlot", value: 0},
		{name: "ThermalSettings.1.ThermalProfile", value: "Default Thermal Profile Settings", takes: []string{"Default Thermal Profile Settings", "Maximum Performance", "Minimum Power", "Sound Cap"}}, // [V: ansible, dellemc.openmanage, idrac_attributes: Sound Cap]
		{name: "ThermalSettings.1.FanSpeedOffset", value: "Off", takes: []string{"Off", "Low", "Medium", "High", "Max"}},
	},
	"LifecycleController.Embedded.1": {
		{name: "LCAttributes.1.LifecycleControllerState", value: "Enabled", takes: []string{"Disabled", "Enabled", "Recovery"}},
		{name: "LCAttributes.1.CollectSystemInventoryOnRestart", value: "Enabled", takes: onOff},
		{name: "LCAttributes.1.PartFirmwareUpdate", value: "Match firmware of replaced part", takes: []string{"Disabled", "Allow version upgrade only", "Match firmware of replaced part"}},
		{name: "LCAttributes.1.PartConfigurationUpdate", value: "Apply always", takes: []string{"Disabled", "Apply always", "Apply only if firmware match"}},
		{name: "LCAttributes.1.AutoUpdate", value: "Disabled", takes: onOff},
		{name: "LCAttributes.1.IgnoreCertWarning", value: "On", takes: []string{"Off", "On"}},
	},
}

// Attributes whose PATCH has an effect.
const (
	bootDevice = "ServerBoot.1.FirstBootDevice"
	bootOnce   = "ServerBoot.1.BootOnce"
	lanEnable  = "IPMILan.1.Enable"
)

// bootDevices maps values of FirstBootDevice to the standard's boot targets [V:
// sushy and badfish use VCD-DVD, PXE and HDD; the rest is K].
var bootDevices = []struct{ name, target string }{
	{"Normal", "None"}, {"PXE", "Pxe"}, {"HDD", "Hdd"}, {"BIOS", "BiosSetup"}, {"VCD-DVD", virtualCD}, {"CD-DVD", "Cd"}, {"VFDD", "Floppy"},
	{"SD", "SDCard"}, {"F10", "Utilities"}, {"UEFIDevicePath", "UefiTarget"},
}

// virtualCD is the FirstBootDevice that boots virtual media.
const virtualCD = "virtual CD"

// targetOf returns the boot target of a boot device; "" for none.
func (g generation) targetOf(device string) string {
	for _, d := range bootDevices {
		switch {
		case d.name != device:
		case d.target != virtualCD:
			return d.target
		case g.old:
			return "UsbCd"
		default:
			return "Cd"
		}
	}
	return ""
}

// groupURI returns the URI of a group of attributes [V].
func (g generation) groupURI(name string) string {
	if g.old {
		return "/redfish/v1/Managers/" + name + "/Attributes"
	}
	return attributes + "/" + name
}

// attributeGroups returns the groups of attributes as resources [V].
func (g generation) attributeGroups() []dialect.Resource {
	var out []dialect.Resource
	for _, name := range groupNames {
		r := dialect.Resource{
			URI: g.groupURI(name), Type: "DellAttributes.v1_0_0.DellAttributes", Name: "OEMAttributeRegistry",
			AllowableValues: map[string][]string{},
			Set: []dialect.PropertyRule{
				{Path: "Id", Value: name}, {Path: "AttributeRegistry", Value: "ManagerAttributeRegistry.v1_0_0"},
				{Path: "Description", Value: "Attributes of " + name + "."},
			},
		}
		for _, a := range groups[name] {
			at := "Attributes/" + a.name
			r.Set = append(r.Set, dialect.PropertyRule{Path: at, Value: a.value})
			if len(a.takes) > 0 {
				r.AllowableValues[at] = a.takes
			}
			if !a.fixed {
				r.Writable = append(r.Writable, at)
			}
		}
		if name == "iDRAC.Embedded.1" {
			r.Set = append(r.Set,
				dialect.PropertyRule{Path: "Attributes/Info.1.Version", From: manager + "#FirmwareVersion"},
				// "15G Monolithic", as Manager.Model is [V: libredfish, tests/mockups/dell].
				dialect.PropertyRule{Path: "Attributes/Info.1.Type", From: manager + "#Model"},
				dialect.PropertyRule{Path: "Attributes/Info.1.ServerGen", From: manager + "#Model", Match: `^(\d+G)`},
				dialect.PropertyRule{Path: "Attributes/" + ntpEnable, From: manager + "/NetworkProtocol#NTP/ProtocolEnabled", Map: map[string]any{"true": "Enabled"}, Value: "Disabled"},
				dialect.PropertyRule{Path: "Attributes/NIC.1.MACAddress", From: manager + "/EthernetInterfaces/1#MACAddress"},
				dialect.PropertyRule{Path: "Attributes/" + bootDevice, Value: "Normal"},
				dialect.PropertyRule{Path: "Attributes/" + bootDevice, From: "=" + bootDevice},
				dialect.PropertyRule{Path: "Attributes/" + bootOnce, Value: "Disabled"},
				dialect.PropertyRule{Path: "Attributes/" + bootOnce, From: "=" + bootOnce},
				dialect.PropertyRule{Path: "Attributes/" + lanEnable, From: manager + "/NetworkProtocol#IPMI/ProtocolEnabled", Map: map[string]any{"true": "Enabled"}, Value: "Disabled"},
			)
			r.Read = readTimeServers
			if g.hardware != "" {
				r.Set = append(r.Set, dialect.PropertyRule{Path: "Attributes/Info.1.HWModel", Value: g.hardware})
			}
		}
		out = append(out, r)
	}
	return out
}

// attributeAliases returns the URIs at which iDRAC 9 has the groups too: those of
// iDRAC 8. iDRAC 10 has them no longer [V: ansible, community.general, idrac_redfish_config
// reads and writes Managers/…/Attributes of iDRAC 9].
func attributeAliases() []dialect.URIMapping {
	var all []dialect.URIMapping
	for _, name := range groupNames {
		all = append(all, dialect.URIMapping{From: "/redfish/v1/Managers/" + name + "/Attributes", To: attributes + "/" + name})
	}
	return all
}

// attributeWrites returns the attributes whose PATCH has an effect.
func (g generation) attributeWrites() []dialect.WritableProperty {
	of := func(name string, does ...dialect.Effect) dialect.WritableProperty {
		return dialect.WritableProperty{ResourceType: "DellAttributes", URI: g.groupURI("iDRAC.Embedded.1"), Path: "Attributes/" + name, Effects: does}
	}
	enable := func(service string) func(is string, on bool) dialect.Effect {
		return func(is string, on bool) dialect.Effect {
			return dialect.Effect{When: map[string][]string{"": {is}}, Requests: []dialect.StandardRequest{
				{Method: "PATCH", URI: manager + "/NetworkProtocol", Body: map[string]any{service: map[string]any{"ProtocolEnabled": on}}},
			}}
		}
	}
	lan, ntp := enable("IPMI"), enable("NTP")
	all := []dialect.WritableProperty{
		of(bootOnce, dialect.Effect{When: map[string][]string{"": onOff}, Store: map[string]any{bootOnce: "$"}}), // before FirstBootDevice, which reads it
		of(bootDevice, dialect.Effect{Hook: g.writeAttribute}),
		of(lanEnable, lan("Enabled", true), lan("Disabled", false)),
		of(ntpEnable, ntp("Enabled", true), ntp("Disabled", false)),
	}
	for _, name := range ntpServers {
		all = append(all, of(name, dialect.Effect{Hook: g.writeAttribute}))
	}
	return all
}

// writeAttribute carries out the write of an attribute: of a boot device, or of a time
// server.
func (g generation) writeAttribute(c dialect.ActionCall) (dialect.Effect, error) {
	all, _ := c.Body["Attributes"].(map[string]any)
	if device, ok := all[bootDevice].(string); ok {
		return g.bootFirst(c, device)
	}
	return writeTimeServers(c.HookContext, all), nil
}

// bootFirst sets the boot device of the system, once or continuously.
func (g generation) bootFirst(c dialect.ActionCall, device string) (dialect.Effect, error) {
	once, _ := c.Stored[bootOnce].(string)
	step, ok := g.bootRequest(device, cmp.Or(once, "Disabled"))
	if !ok {
		return dialect.Effect{}, &dialect.Rejection{Message: g.message("SYS428", "%1 is no device that the server can boot from."), Args: []string{device}}
	}
	return dialect.Effect{Store: map[string]any{bootDevice: device}, Requests: []dialect.StandardRequest{step}}, nil
}

// bootRequest returns the PATCH of the boot override for a boot device.
func (g generation) bootRequest(device, once string) (dialect.StandardRequest, bool) {
	boot := map[string]any{"BootSourceOverrideTarget": g.targetOf(device), "BootSourceOverrideEnabled": "Continuous"}
	switch {
	case g.targetOf(device) == "":
		return dialect.StandardRequest{}, false
	case device == "Normal":
		boot["BootSourceOverrideEnabled"] = "Disabled"
	case once == "Enabled":
		boot["BootSourceOverrideEnabled"] = "Once"
	}
	return dialect.StandardRequest{Method: "PATCH", URI: system, Body: map[string]any{"Boot": boot}}, true
}

// isAttribute returns a writable attribute of a group, and whether there is one.
func isAttribute(group, name string) (attribute, bool) {
	all := groups[group]
	i := slices.IndexFunc(all, func(a attribute) bool { return a.name == name && !a.fixed })
	if i < 0 {
		return attribute{}, false
	}
	return all[i], true
}
