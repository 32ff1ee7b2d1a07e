package ilo

import (
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// Clients write the boot order in a resource below the BIOS. The system's BootOrder is
// read-only [V table: PersistentBootConfigOrder; docs, HpeServerBootSettings and
// ComputerSystem.Boot.BootOrder]. A write takes effect at once, where a real iLO waits
// for a reset.

// bootURI returns the URI of the boot settings, which iLO 6 has moved [V docs,
// ilo6_adaptation].
func (g generation) bootURI() string {
	if g.n < 6 {
		return "/redfish/v1/systems/{system}/bios/boot"
	}
	return "/redfish/v1/systems/{system}/bios/oem/hpe/boot"
}

func bootSettings(g generation) []dialect.Resource {
	kind := g.oem + "ServerBootSettings.v2_0_0." + g.oem + "ServerBootSettings"
	at := g.bootURI()
	return []dialect.Resource{
		{URI: at, Type: kind, Name: "Boot Order Current Settings", Read: bootSources, Set: []propertyRule{
			{Path: "@Redfish.Settings", Value: dict{
				"@odata.type": "#Settings.v1_0_0.Settings", "ETag": "", "Time": "", "Messages": []any{dict{"MessageId": "Base.1.0.Success"}},
				"SettingsObject": dict{"@odata.id": at + "/settings"},
			}},
		}},
		// The default order of storage and of network ports is stored [V docs].
		{URI: at + "/settings", Type: kind, Name: "Boot Order Pending Settings", Read: bootSources, Writable: []string{"DefaultBootOrder"}, Privilege: "ConfigureComponents"},
	}
}

func bootWrites(g generation) dialect.WritableProperty {
	return dialect.WritableProperty{ResourceType: g.oem + "ServerBootSettings", Path: "PersistentBootConfigOrder", Type: dialect.ArrayParameter, Effects: []dialect.Effect{{Hook: writeBootOrder(g)}}}
}

// source is a boot option with iLO's name for it [V docs: StructuredBootString; K:
// the form of the name].
type source struct {
	id, name string
	option   dict
}

// bootStringPrefixes has the prefixes of these names, by the kind of boot source.
var bootStringPrefixes = map[string]string{
	"Hdd": "HD.EmbRAID.1.%d", "Pxe": "NIC.LOM.1.%d.IPv4", "UefiHttp": "NIC.LOM.1.%d.Httpv4", "Cd": "CD.Virtual.2.%d", "Usb": "Generic.USB.1.%d",
}

func sources(l dialect.HookContext) []source {
	var out []source
	count := map[string]int{}
	for _, at := range ids(l.Standard("/redfish/v1/Systems/" + l.Variables["system"] + "/BootOptions")["Members"]) {
		o := l.Standard(at)
		alias, _ := o["Alias"].(string)
		form := bootStringPrefixes[alias]
		if form == "" {
			form = "Other." + alias + ".1.%d"
		}
		count[alias]++
		out = append(out, source{at[strings.LastIndexByte(at, '/')+1:], fmt.Sprintf(form, count[alias]), o})
	}
	return out
}

// bootSources returns the boot sources and their order.
func bootSources(l dialect.HookContext) map[string]any {
	all := sources(l)
	list, sorted := []any{}, []any{}
	for _, s := range all {
		list = append(list, dict{
			"BootString": s.option["DisplayName"], "StructuredBootString": s.name, "UEFIDevicePath": s.option["UefiDevicePath"],
			"CorrelatableID": s.option["UefiDevicePath"], "BootOptionNumber": strings.TrimPrefix(s.id, "Boot"),
		})
	}
	boot, _ := l.Standard("/redfish/v1/Systems/" + l.Variables["system"])["Boot"].(dict)
	is, _ := boot["BootOrder"].([]any)
	for _, id := range is {
		for _, s := range all {
			if s.id == id {
				sorted = append(sorted, s.name)
			}
		}
	}
	return dict{
		"BootSources": list, "PersistentBootConfigOrder": sorted, "DesiredBootDevices": []any{},
		"DefaultBootOrder": []any{"Floppy", "Cd", "Usb", "EmbeddedStorage", "PcieSlotStorage", "EmbeddedFlexLOM", "PcieSlotNic", "UefiShell"},
	}
}

// writeBootOrder writes the boot order. Sources that are not named come after those
// that are, in their order.
func writeBootOrder(g generation) func(dialect.ActionCall) (dialect.Effect, error) {
	return func(c dialect.ActionCall) (dialect.Effect, error) {
		sent, _ := c.Body["PersistentBootConfigOrder"].([]any)
		all := sources(c.HookContext)
		out := []any{}
		named := map[string]bool{}
		for _, x := range sent {
			found := false
			for _, s := range all {
				if s.name == x && !named[s.id] {
					out, found = append(out, s.id), true
					named[s.id] = true
				}
			}
			if !found {
				return dialect.Effect{}, &dialect.Rejection{Message: g.message("PropertyValueBadParam", "There is no such boot source, or it is named twice.")}
			}
		}
		boot, _ := c.Standard("/redfish/v1/Systems/" + c.Variables["system"])["Boot"].(dict)
		is, _ := boot["BootOrder"].([]any)
		for _, id := range is {
			if text, _ := id.(string); !named[text] {
				out = append(out, text)
			}
		}
		return dialect.Effect{
			Requests: []dialect.StandardRequest{patch("/redfish/v1/Systems/"+c.Variables["system"], dict{"Boot": dict{"BootOrder": out}})},
			Status:   200, Body: g.errorBody("SystemResetRequired"),
		}, nil
	}
}
