package resource

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Origins says which resource stands for a part of a server that something
// happened to: its row's pattern, of which the last variable is the part's ID,
// the one before it, where a part needs that, what it is in. A part that is not
// here has no resource.
var Origins = map[event.Part]string{
	event.System:     "/redfish/v1/Systems/{system}",
	event.Chassis:    "/redfish/v1/Chassis/{chassis}",
	event.BMC:        "/redfish/v1/Managers/{manager}",
	event.Drive:      "/redfish/v1/Systems/{system}/Storage/{storage}/Drives/{drive}",
	event.Volume:     "/redfish/v1/Systems/{system}/Storage/{storage}/Volumes/{volume}",
	event.Controller: "/redfish/v1/Systems/{system}/Storage/{storage}",
	event.Component:  "/redfish/v1/UpdateService/FirmwareInventory/{firmware}",
	event.Media:      "/redfish/v1/Systems/{system}/VirtualMedia/{slot}",
	event.Account:    "/redfish/v1/AccountService/Accounts/{account}",
	event.Session:    "/redfish/v1/SessionService/Sessions/{session}",
	event.EventEntry: "/redfish/v1/Systems/{system}/LogServices/{systemlog}/Entries/{entry}",
	event.AuditEntry: "/redfish/v1/Managers/{manager}/LogServices/{managerlog}/Entries/{auditentry}",
	event.Job:        "/redfish/v1/TaskService/Tasks/{task}",
	event.Sensor:     "/redfish/v1/Chassis/{chassis}/Sensors/{sensor}",
	event.Fan:        "/redfish/v1/Chassis/{chassis}/ThermalSubsystem/Fans/{fan}",
	event.Supply:     "/redfish/v1/Chassis/{chassis}/PowerSubsystem/PowerSupplies/{supply}",
	event.NIC:        "/redfish/v1/Systems/{system}/EthernetInterfaces/{nic}",
}

// Origin is the address of the resource of a part; false when there is none,
// or none any longer. Who asks for it must show what those resources do
// (resource.origins).
func (v View) Origin(s event.Subject) (string, bool) {
	pattern, ok := Origins[s.Part]
	if !ok {
		return "", false
	}
	vars := Variables(pattern)
	ids := map[string]string{
		"system": v.Dialect.SystemID, "manager": v.Dialect.ManagerID, "chassis": v.Dialect.ChassisID,
		"systemlog": v.Dialect.Logs.System, "managerlog": v.Dialect.Logs.Manager,
	}
	if s.ID != "" {
		ids[vars[len(vars)-1]] = s.ID
	}
	if s.In != "" && len(vars) > 1 {
		ids[vars[len(vars)-2]] = s.In
	}
	at := v
	at.IDs = ids
	uri := pattern
	for _, name := range vars {
		if !at.Has(name, ids[name]) {
			return "", false
		}
		uri = strings.Replace(uri, "{"+name+"}", ids[name], 1)
	}
	return uri, true
}

// subject names the part that something happened to.
func (v View) subject(s event.Subject) string {
	switch {
	case s.Part == event.Log && s.ID == string(bmc.AuditLog):
		return v.Dialect.Logs.Manager
	case s.Part == event.Log:
		return v.Dialect.Logs.System
	case s.ID != "":
		return s.ID
	case s.Part == event.System:
		return v.Dialect.SystemID
	case s.Part == event.Chassis:
		return v.Dialect.ChassisID
	case s.Part == event.BMC:
		return v.Dialect.ManagerID
	}
	return string(s.Part)
}

// showOrigins makes the rows that link to what something happened to show what
// decides whether that is there.
func showOrigins(tree []Row) {
	var all Parts
	for i := range tree {
		for _, pattern := range Origins {
			if tree[i].URI == pattern {
				all |= tree[i].DependsOn &^ PartTime // which nothing comes or goes by
			}
		}
	}
	for i := range tree {
		if tree[i].origins {
			tree[i].DependsOn |= all
		}
	}
}
