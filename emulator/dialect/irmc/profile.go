package irmc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// eLCM reads and writes the configuration of a server as profiles: a client makes it
// store a profile, reads it and deletes it, or makes it apply another one. Both start
// eLCM sessions, which are tasks here [V] collection: irmc_profiles, irmc_raid,
// module_utils/irmc.py. Profiles have BIOS and RAID here. A real eLCM starts the
// server to apply BIOS settings; here the client has to start it.

const (
	elcm    = "/rest/v1/Oem/eLCM"
	store   = elcm + "/ProfileManagement"
	session = "/sessionInformation/{task}"
)

// profileStores has the names under which profiles are stored, by their paths.
var profileStores = map[string]string{
	"Server/SystemConfig/BiosConfig":                  "BiosConfig",
	"Server/HWConfigurationIrmc":                      "HWConfigurationIrmc",
	"Server/HWConfigurationIrmc/Adapters/RAIDAdapter": "RAIDAdapter",
}

func storedAs(name string) string { return "profile " + name }

// profiles returns the resources of profiles. The values of eLCMStatus are texts.
func profiles() []dialect.Resource {
	out := []dialect.Resource{
		{URI: elcm + "/eLCMStatus", Type: "eLCMStatus.v1_0_0.eLCMStatus", Name: "eLCM Status", Set: []dialect.PropertyRule{
			{Path: "eLCMStatus", Value: map[string]any{"EnabledAndLicenced": "true", "SDCardMounted": "true"}},
		}},
		{URI: store, Type: "ProfileManagement.v1_0_0.ProfileManagement", Name: "Profile Management", Read: storedProfiles},
		{URI: session + "/status", Type: "SessionInformation.v1_0_0.SessionInformation", Name: "Session Status", Set: []dialect.PropertyRule{
			{Path: "Session/Id", Value: "{task}"},
			{Path: "Session/Status", From: task + "#TaskState", Value: "activated", Map: map[string]any{
				"Completed": "terminated regularly", "Exception": "terminated with error", "Cancelled": "terminated with error",
			}},
		}},
		{URI: session + "/log", Type: "SessionLog.v1_0_0.SessionLog", Name: "Session Log", Set: []dialect.PropertyRule{
			{Path: "SessionLog/Id", Value: "{task}"}, {Path: "SessionLog/Entries/Entry", From: task + "#Messages"},
		}},
	}
	for _, path := range slices.Sorted(maps.Keys(profileStores)) {
		out = append(out, dialect.Resource{
			URI: store + "/" + profileStores[path], Type: "Profile.v1_0_0.Profile", StoredAs: storedAs(profileStores[path]), PassedMethods: []string{"DELETE"},
		})
	}
	return out
}

// profileActions returns the actions that make profiles and apply them.
func profileActions() []dialect.Action {
	return []dialect.Action{
		{ResourceURI: store, Name: "ProfileManagement.Get", Target: "/get", Hidden: true, Effects: []dialect.Effect{{Hook: makeProfile}}},
		{ResourceURI: store, Name: "ProfileManagement.Set", Target: "/set", Hidden: true,
			Parameters: []dialect.Parameter{{Name: "Server", Type: dialect.ObjectParameter, Required: true}}, Effects: []dialect.Effect{{Hook: applyProfile}}},
	}
}

// storedProfiles lists the profiles that are stored.
func storedProfiles(l dialect.HookContext) map[string]any {
	links := []any{}
	for _, name := range slices.Sorted(maps.Values(profileStores)) {
		if _, ok := l.Stored[storedAs(name)]; ok {
			links = append(links, map[string]any{"profile": strings.TrimPrefix(store, "/") + "/" + name})
		}
	}
	return map[string]any{"Links": map[string]any{"profileStore": links}}
}

func opened(e dialect.Effect, about string) dialect.Effect {
	e.Task = "eLCM: " + about
	e.Body = map[string]any{"Session": map[string]any{"Id": "{job}", "Status": "activated", "Tag": "", "WorkSequence": "obtainProfileParameters"}}
	return e
}

// makeProfile stores the present configuration of the server as a profile.
func makeProfile(c dialect.ActionCall) (dialect.Effect, error) {
	path := c.Query.Get("PARAM_PATH")
	name, ok := profileStores[path]
	if !ok {
		return dialect.Effect{}, &dialect.Rejection{Status: 404, Args: []string{path}, Message: baseMessage("ResourceMissingAtURI", "There is no profile of %1.")}
	}
	if _, ok := c.Stored[storedAs(name)]; ok {
		return dialect.Effect{}, &dialect.Rejection{Status: 409, Args: []string{name}, Message: baseMessage("ResourceAlreadyExists", "There is a profile %1 already.")}
	}
	server := map[string]any{"@Version": "1.01"}
	if name == "BiosConfig" {
		server["SystemConfig"] = map[string]any{"BiosConfig": biosConfig(c.HookContext)}
	} else {
		server["HWConfigurationIrmc"] = map[string]any{"@Version": "1.00", "Adapters": map[string]any{"RAIDAdapter": adapters(c.Machine)}}
	}
	return opened(dialect.Effect{Store: map[string]any{storedAs(name): map[string]any{"Server": server}}}, "read "+name), nil
}

// groups are the parts of a BIOS configuration, by the menus of the attributes.
var groups = []struct{ menu, name string }{
	{"./Advanced/CPU", "CpuConfig"}, {"./Advanced/Memory", "MemoryConfig"}, {"./Advanced/PCI", "PciConfig"}, {"./Advanced/Onboard", "OnboardDevicesConfig"},
	{"./Advanced/Console", "ConsoleRedirectionConfig"}, {"./Advanced/USB", "UsbConfig"}, {"./Advanced/Network", "NetworkStackConfig"},
	{"./Security", "SecurityConfig"}, {"./Power", "PowerConfig"}, {"./ServerMgmt", "ServerMgmtConfig"}, {"./Boot", "BootConfig"},
}

func biosConfig(l dialect.HookContext) map[string]any {
	out := map[string]any{"@Version": "1.03"}
	if l.Machine.Profile.Firmware.Model == nil {
		return out
	}
	is := map[string]any{}
	for _, s := range l.Machine.BIOSSettings() {
		is[s.Name] = s.Value.Any()
	}
	for _, a := range l.Machine.Profile.Firmware.Model.Registry().Attributes {
		v, ok := is[a.Name]
		if !ok || a.Type == firmware.PasswordType {
			continue
		}
		for _, g := range groups {
			if strings.HasPrefix(a.Menu, g.menu) {
				group, _ := out[g.name].(map[string]any)
				if group == nil {
					group = map[string]any{}
					out[g.name] = group
				}
				group[a.Name] = v
				break
			}
		}
	}
	return out
}

// adapters returns the RAID controllers with their drives and volumes.
func adapters(m *machine.View) []any {
	out := []any{}
	for _, c := range m.Storage.Controllers() {
		if c.RAID == nil {
			continue
		}
		levels, disks, arrays, volumes := []any{}, []any{}, []any{}, []any{}
		for _, t := range c.RAID.Types {
			levels = append(levels, strings.TrimPrefix(string(t.Type), "RAID"))
		}
		for _, d := range c.Drives {
			slot := strings.TrimPrefix(d.ID, "Disk.")
			disks = append(disks, map[string]any{"@Number": slot, "@Action": "None", "Slot": slot, "PDStatus": "Available",
				"Size": map[string]any{"@Unit": "GB", "#text": fmt.Sprint(d.Capacity / 1e9)}, "Interface": string(d.Protocol), "Product": d.Product})
		}
		for i, v := range c.Volumes {
			refs := []any{}
			for _, d := range c.Drives {
				if slices.Contains(d.Volumes, v.ID) {
					refs = append(refs, map[string]any{"@Number": strings.TrimPrefix(d.ID, "Disk.")})
				}
			}
			arrays = append(arrays, map[string]any{"@Number": i, "PhysicalDiskRefs": map[string]any{"PhysicalDiskRef": refs}})
			volumes = append(volumes, map[string]any{"@Number": v.ID, "@Action": "None", "RaidLevel": strings.TrimPrefix(string(v.Type), "RAID"), "Name": v.Name,
				"ArrayRefs": map[string]any{"ArrayRef": []any{map[string]any{"@Number": i}}}})
		}
		a := map[string]any{
			"@AdapterId": "RAIDAdapter" + c.ID, "@ConfigurationType": "Addressing", "Features": map[string]any{"RaidLevel": levels},
			"PhysicalDisks": map[string]any{"PhysicalDisk": disks},
		}
		if len(volumes) > 0 {
			a["Arrays"], a["LogicalDrives"] = map[string]any{"Array": arrays}, map[string]any{"LogicalDrive": volumes}
		}
		out = append(out, a)
	}
	return out
}

// lookup returns the value at a path in nested objects, or nil.
func lookup(v any, path ...string) any {
	for _, name := range path {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	return v
}

// applyProfile applies a profile.
func applyProfile(c dialect.ActionCall) (dialect.Effect, error) {
	server := c.Body["Server"]
	var steps []dialect.StandardRequest
	if config, ok := lookup(server, "SystemConfig", "BiosConfig").(map[string]any); ok {
		attributes := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(config)) {
			group, _ := config[name].(map[string]any)
			for attribute, v := range group {
				attributes[attribute] = v
			}
		}
		steps = append(steps, dialect.StandardRequest{Method: "PATCH", URI: settings, Body: map[string]any{"Attributes": attributes}})
	}
	all, _ := lookup(server, "HWConfigurationIrmc", "Adapters", "RAIDAdapter").([]any)
	for _, a := range all {
		more, err := adapterRequests(c, a)
		if err != nil {
			return dialect.Effect{}, err
		}
		steps = append(steps, more...)
	}
	if len(steps) == 0 {
		return dialect.Effect{}, &dialect.Rejection{Status: 406, Message: baseMessage("PropertyMissing", "The profile has nothing that could be set here.")}
	}
	return opened(dialect.Effect{Requests: steps}, "apply"), nil
}

// adapterRequests returns the requests that configure one controller as a profile asks.
// They delete volumes before they create others. A volume for which the profile names
// no drives gets unused ones.
func adapterRequests(c dialect.ActionCall, a any) ([]dialect.StandardRequest, error) {
	id, _ := lookup(a, "@AdapterId").(string)
	id = strings.TrimPrefix(id, "RAIDAdapter")
	controller, ok := c.Machine.Storage.Controller(id)
	if !ok || controller.RAID == nil {
		return nil, &dialect.Rejection{Status: 406, Args: []string{id}, Message: baseMessage("PropertyValueNotInList", "There is no RAID adapter %1.")}
	}
	system := strings.ReplaceAll(systems, "{system}", "0")
	under := system + "/Storage/" + id
	free := unusedDrives(controller)
	var gone, come []dialect.StandardRequest
	volumes, _ := lookup(a, "LogicalDrives", "LogicalDrive").([]any)
	for _, v := range volumes {
		switch lookup(v, "@Action") {
		case "Delete":
			number := fmt.Sprint(lookup(v, "@Number"))
			gone = append(gone, dialect.StandardRequest{Method: "DELETE", URI: under + "/Volumes/" + number})
			for _, d := range controller.Drives {
				if slices.Contains(d.Volumes, number) {
					free = append(free, d.ID)
				}
			}
		case "Create":
			level := storage.RAIDType("RAID" + fmt.Sprint(lookup(v, "RaidLevel")))
			rule, ok := controller.RAID.Rule(level)
			if !ok {
				return nil, &dialect.Rejection{Status: 406, Args: []string{string(level)}, Message: baseMessage("PropertyValueNotInList", "The adapter does not make %1.")}
			}
			bays := namedDrives(a, v)
			if bays == nil {
				need := rule.Min
				if level.Nested() {
					need *= 2
				}
				if len(free) < need {
					return nil, &dialect.Rejection{Status: 406, Message: baseMessage("InsufficientResources", "Too few drives are unused.")}
				}
				bays, free = free[:need], free[need:]
			}
			links := []any{}
			for _, bay := range bays {
				links = append(links, map[string]any{"@odata.id": under + "/Drives/" + bay})
			}
			body := map[string]any{"RAIDType": string(level), "Links": map[string]any{"Drives": links}}
			if name, ok := lookup(v, "Name").(string); ok && name != "" {
				body["DisplayName"] = name
			}
			come = append(come, dialect.StandardRequest{Method: "POST", URI: under + "/Volumes", Body: body})
		}
	}
	return append(gone, come...), nil
}

// namedDrives returns the bays of the drives that a profile names for a volume; nil
// when it names none.
func namedDrives(adapter, volume any) []string {
	refs, _ := lookup(volume, "ArrayRefs", "ArrayRef").([]any)
	arrays, _ := lookup(adapter, "Arrays", "Array").([]any)
	var out []string
	for _, r := range refs {
		for _, a := range arrays {
			if fmt.Sprint(lookup(a, "@Number")) != fmt.Sprint(lookup(r, "@Number")) {
				continue
			}
			disks, _ := lookup(a, "PhysicalDiskRefs", "PhysicalDiskRef").([]any)
			for _, d := range disks {
				out = append(out, "Disk."+fmt.Sprint(lookup(d, "@Number")))
			}
		}
	}
	return out
}
