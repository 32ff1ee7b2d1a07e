package idrac

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// Names of jobs [V].
const (
	importJob = "Import Configuration"
	exportJob = "Export Configuration"
)

// Names with which the URIs of the actions of profiles begin.
const (
	oldProfile = "EID_674_Manager"
	newProfile = "OemManager"
)

// Components of a profile by their FQDDs.
const (
	biosFQDD = "BIOS.Setup.1-1"
	cardFQDD = "iDRAC.Embedded.1"
)

// profileTargets are the components that a client can ask for [V].
var profileTargets = []string{"ALL", "IDRAC", "BIOS", "NIC", "RAID"}

// profileActions returns the actions that export and import the server
// configuration profile. Their URIs begin with EID_674_Manager before firmware
// 6.00, and with OemManager from then on [V]. Clients send the earlier URIs to all
// iDRAC 9 [V: badfish, export_scp; ansible, dellemc.openmanage 6.3.0, idrac_redfish].
func (g generation) profileActions() []dialect.Action {
	all := g.profileActionsAt(g.profile)
	if g.profile == newProfile && g.hardware == nineHardware {
		for _, a := range g.profileActionsAt(oldProfile) {
			a.Name, a.Hidden = strings.Replace(a.Name, newProfile, oldProfile, 1), true
			all = append(all, a)
		}
	}
	return all
}

// profileActionsAt returns these actions at URIs that begin with that name.
func (g generation) profileActionsAt(name string) []dialect.Action {
	at := "/Actions/Oem/" + name + "."
	return []dialect.Action{
		{
			ResourceURI: manager, Name: "OemManager.ExportSystemConfiguration", Target: at + "ExportSystemConfiguration",
			Parameters: []dialect.Parameter{
				{Name: "ExportFormat", AllowableValues: []string{"XML", "JSON"}},
				{Name: "ExportUse", AllowableValues: []string{"Default", "Clone", "Replace"}},
				{Name: "IncludeInExport"}, // clients send several, separated by commas [V: sushy]
				// A list, or a text [V: issue 90 of Dell's scripts sends "ALL"; its help of
				// ExportSystemConfigurationLocalREDFISH.py separates several by commas].
				{Name: "ShareParameters/Target", Type: dialect.ArrayParameter, AcceptsSingle: true, AllowableValues: profileTargets, Required: true},
				{Name: "ShareParameters/ShareType", AllowableValues: []string{"LOCAL"}},
				// Names of a share are sent with LOCAL, too [V: dellemc.openmanage 6.3.0].
				{Name: "ShareParameters/ShareName"},
				{Name: "ShareParameters/FileName"},
			},
			Effects: []dialect.Effect{{Hook: g.exportProfile}},
		},
		{
			ResourceURI: manager, Name: "OemManager.ImportSystemConfiguration", Target: at + "ImportSystemConfiguration",
			Parameters: []dialect.Parameter{
				{Name: "ImportBuffer", Required: true, Secret: true},
				{Name: "ShutdownType", AllowableValues: []string{"Graceful", "Forced", "NoReboot"}},
				{Name: "HostPowerState", AllowableValues: []string{"On", "Off"}},
				{Name: "EndHostPowerState", AllowableValues: []string{"On", "Off"}}, // not read [V: dellemc.openmanage 6.3.0]
				{Name: "TimeToWait", Type: dialect.IntegerParameter},
				{Name: "ShareParameters/Target", Type: dialect.ArrayParameter, AcceptsSingle: true, AllowableValues: profileTargets},
				{Name: "ShareParameters/ShareType", AllowableValues: []string{"LOCAL"}},
				// Names of a share are sent with LOCAL, too [V: dellemc.openmanage 6.3.0].
				{Name: "ShareParameters/ShareName"},
				{Name: "ShareParameters/FileName"},
			},
			Effects: []dialect.Effect{
				// [V: sushy waits for pending settings and running jobs]
				{While: dialect.SettingsDue, Reject: new(g.message("LC068", "Settings wait to be applied: a profile can be imported once they are, or given up."))},
				{Hook: g.importProfile},
			},
		},
	}
}

// busy rejects a profile while a job of another one runs.
func (g generation) busy(c dialect.ActionCall) error {
	for _, j := range c.BMC.Tasks.All() {
		if !j.State.Ended() && (j.Name == importJob || j.Name == exportJob) {
			return &dialect.Rejection{Message: g.message("RAC0679", "A job of a profile is running: there can be one at a time.")}
		}
	}
	return nil
}

// targets returns a function that reports whether a client asks for a component.
func targets(c dialect.ActionCall) func(which string) bool {
	share, _ := c.Body["ShareParameters"].(map[string]any)
	of, _ := share["Target"].([]any)
	return func(which string) bool {
		return len(of) == 0 || slices.Contains(of, any("ALL")) || slices.Contains(of, any(which))
	}
}

// exportProfile exports the configuration of the server.
func (g generation) exportProfile(c dialect.ActionCall) (dialect.Effect, error) {
	if err := g.busy(c); err != nil {
		return dialect.Effect{}, err
	}
	p := &profile{Model: c.Machine.Identity.Model, Tag: c.Machine.Identity.Serial, Time: c.Now.UTC().Format(time.ANSIC)}
	asked := targets(c)
	if asked("IDRAC") {
		p.Components = append(p.Components, g.cardComponent(c))
	}
	if asked("BIOS") {
		p.Components = append(p.Components, biosComponent(c.Machine))
	}
	if asked("NIC") {
		p.Components = append(p.Components, nicComponents(c.Machine)...)
	}
	if asked("RAID") {
		p.Components = append(p.Components, raidComponents(c.Machine)...)
	}
	out := dialect.Effect{Task: exportJob, TaskDuration: 15 * time.Second}
	if c.Body["ExportFormat"] == "JSON" {
		out.TaskResult = p.json()
	} else {
		out.TaskResult = p.xml()
	}
	return out, nil
}

// cardComponent returns the writable attributes of the controller.
func (g generation) cardComponent(c dialect.ActionCall) component {
	out := component{FQDD: cardFQDD}
	written := g.storedAttributes(c, "iDRAC.Embedded.1")
	for _, a := range groups["iDRAC.Embedded.1"] {
		if a.fixed {
			continue
		}
		v := a.value
		if is, ok := written["Attributes/"+a.name]; ok {
			v = is
		}
		out.set(profileName(a.name), text(v))
	}
	for i, server := range timeServers(c.HookContext) {
		out.set(profileName(ntpServers[i]), server)
	}
	for _, name := range []string{bootDevice, bootOnce} {
		is, _ := c.Stored[name].(string)
		out.set(profileName(name), cmp.Or(is, map[string]string{bootDevice: "Normal", bootOnce: "Disabled"}[name]))
	}
	return out
}

// storedAttributes returns the attributes of a group that clients have written, by
// their paths.
func (g generation) storedAttributes(c dialect.ActionCall, group string) map[string]any {
	all, _ := c.Stored[g.storedName(group)].(map[string]any)
	return all
}

// storedName returns the name under which the written attributes of a group are stored:
// its URI, with the manager's ID filled in.
func (g generation) storedName(group string) string {
	return strings.Replace(g.groupURI(group), "{manager}", "iDRAC.Embedded.1", 1)
}

// profileName returns the name of an attribute as profiles have it:
// ServerBoot.1#BootOnce.
func profileName(name string) string {
	i := strings.LastIndexByte(name, '.')
	return name[:i] + "#" + name[i+1:]
}

// attributeName is the inverse of profileName.
func attributeName(name string) string { return strings.Replace(name, "#", ".", 1) }

func biosComponent(m *machine.View) component {
	out := component{FQDD: biosFQDD}
	for _, s := range m.BIOSSettings() {
		a := m.Profile.Firmware.Model.Registry().Attribute(s.Name)
		if a.Type == firmware.PasswordType || a.Fact != "" {
			continue
		}
		out.set(s.Name, s.Value.String())
	}
	return out
}

// nicComponents returns the network ports with the setting that makes them boot by
// PXE, which ironic reads [V: sushy].
func nicComponents(m *machine.View) []component {
	var out []component
	for _, n := range m.Identity.NICs {
		c := component{FQDD: n.ID}
		boots := slices.ContainsFunc(m.EffectiveBootOrder(), func(o machine.BootOption) bool { return o.Kind == machine.Pxe && o.Device == n.ID })
		c.set("LegacyBootProto", map[bool]string{true: "PXE", false: "NONE"}[boots])
		c.set("VirtMacAddr", strings.ToUpper(n.MAC))
		c.set("WakeOnLan", "Disabled")
		out = append(out, c)
	}
	return out
}

// importProfile applies a profile to the server. BIOS settings wait for a reset, which
// the job performs unless the request leaves it to the client.
func (g generation) importProfile(c dialect.ActionCall) (dialect.Effect, error) {
	if err := g.busy(c); err != nil {
		return dialect.Effect{}, err
	}
	buffer, _ := c.Body["ImportBuffer"].(string)
	p, err := parseProfile(buffer)
	if err != nil {
		return dialect.Effect{}, &dialect.Rejection{Message: g.message("SYS051", "The profile cannot be read: %1."), Args: []string{err.Error()}}
	}
	out := dialect.Effect{Task: importJob, TaskDuration: 10 * time.Second, Store: map[string]any{}}
	asked := targets(c)
	due := false // whether a reset is needed
	for _, x := range p.Components {
		switch {
		case x.FQDD == biosFQDD && asked("BIOS"):
			if set := biosChanges(c.Machine, x); len(set) > 0 {
				due = true
				out.Requests = append(out.Requests, dialect.StandardRequest{Method: "PATCH", URI: biosSettings, Body: map[string]any{
					"Attributes": set, "@Redfish.SettingsApplyTime": map[string]any{"ApplyTime": "OnReset"},
				}})
			}
		case groups[x.FQDD] != nil && asked("IDRAC"):
			steps, err := g.cardChanges(c, x, out.Store)
			if err != nil {
				return dialect.Effect{}, err
			}
			out.Requests = append(out.Requests, steps...)
		case isController(c.Machine, x.FQDD) && asked("RAID"):
			out.Requests = append(out.Requests, raidChanges(c.Machine, x)...)
		}
	}
	shutdown, _ := c.Body["ShutdownType"].(string)
	if due && shutdown != "NoReboot" {
		kind := "GracefulRestart"
		switch {
		case c.Machine.Power == machine.PowerOff:
			kind = "On"
		case shutdown == "Forced" && !g.old: // iDRAC 8 has no ForceRestart
			kind = "ForceRestart"
		}
		out.Requests = append(out.Requests, dialect.StandardRequest{Method: "POST", URI: system + "/Actions/ComputerSystem.Reset", Body: map[string]any{"ResetType": kind}})
	}
	return out, nil
}

// biosChanges returns the BIOS attributes whose values change, with their types.
// The BIOS rejects unknown attributes by name.
func biosChanges(m *machine.View, x component) map[string]any {
	is := map[string]string{}
	for _, s := range m.BIOSSettings() {
		is[s.Name] = s.Value.String()
	}
	set := map[string]any{}
	for _, a := range x.Attributes {
		now, known := is[a.Name]
		if known && now == a.Value {
			continue
		}
		set[a.Name] = a.Value
		of := m.Profile.Firmware.Model.Registry().Attribute(a.Name)
		switch n, err := strconv.ParseInt(a.Value, 10, 64); {
		case of == nil:
		case of.Type == firmware.IntegerType && err == nil:
			set[a.Name] = n
		case of.Type == firmware.BooleanType:
			set[a.Name] = strings.EqualFold(a.Value, "true")
		}
	}
	return set
}

// cardChanges returns the requests that set attributes of a group.
func (g generation) cardChanges(c dialect.ActionCall, x component, keep map[string]any) ([]dialect.StandardRequest, error) {
	written := maps.Clone(g.storedAttributes(c, x.FQDD))
	if written == nil {
		written = map[string]any{}
	}
	device, once := "", ""
	servers := map[string]string{}
	var steps []dialect.StandardRequest
	for _, a := range x.Attributes {
		name := attributeName(a.Name)
		switch of, ok := isAttribute(x.FQDD, name); {
		case name == bootDevice:
			device = a.Value
		case name == bootOnce:
			once = a.Value
		case slices.Contains(ntpServers, name):
			servers[name] = a.Value
		case serviceOf[name] != "" && slices.Contains(onOff, a.Value):
			steps = append(steps, dialect.StandardRequest{Method: "PATCH", URI: manager + "/NetworkProtocol", Body: map[string]any{
				serviceOf[name]: map[string]any{"ProtocolEnabled": a.Value == "Enabled"},
			}})
		case !ok:
			return nil, &dialect.Rejection{Message: g.message("SYS428", "%1 is no attribute that can be set."), Args: []string{a.Name}}
		case len(of.takes) > 0 && !slices.Contains(of.takes, a.Value):
			return nil, &dialect.Rejection{Message: g.message("SYS428", "%1 does not take the value %2."), Args: []string{a.Name, a.Value}}
		default:
			written["Attributes/"+name] = a.Value
			if _, number := of.value.(int); number {
				n, _ := strconv.Atoi(a.Value)
				written["Attributes/"+name] = n
			}
		}
	}
	if len(written) > 0 {
		keep[g.storedName(x.FQDD)] = written
	}
	if once != "" {
		keep[bootOnce] = once
	}
	if len(servers) > 0 {
		stored, step := setTimeServers(c.HookContext, servers)
		keep[storedServers] = stored
		steps = append(steps, step)
	}
	if device == "" {
		return steps, nil
	}
	was, _ := c.Stored[bootOnce].(string)
	step, ok := g.bootRequest(device, cmp.Or(once, was, "Disabled"))
	if !ok {
		return nil, &dialect.Rejection{Message: g.message("SYS428", "%1 is no device that the server can boot from."), Args: []string{device}}
	}
	keep[bootDevice] = device
	return append(steps, step), nil
}

// serviceOf has the services that attributes of the controller switch on and off, by the
// attributes' names.
var serviceOf = map[string]string{lanEnable: "IPMI", ntpEnable: "NTP"}

// text returns a value in the form of profiles.
func text(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case int:
		return strconv.Itoa(x)
	case interface{ String() string }: // a JSON number
		return x.String()
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	}
	return ""
}
