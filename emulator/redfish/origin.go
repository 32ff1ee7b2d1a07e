package redfish

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// origins says which resource stands for a part of a server that something
// happened to: its row's pattern, of which the last variable is the part's ID,
// the one before it, where a part needs that, what it is in. A part that is not
// here has no resource.
var origins = map[event.Part]string{
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

// origin is the address of the resource of a part; false when there is none,
// or none any longer. Who asks for it must show what those resources do
// (resource.origins).
func (v view) origin(s event.Subject) (string, bool) {
	pattern, ok := origins[s.Part]
	if !ok {
		return "", false
	}
	vars := variables(pattern)
	ids := map[string]string{
		"system": v.d.SystemID, "manager": v.d.ManagerID, "chassis": v.d.ChassisID,
		"systemlog": v.d.Logs.System, "managerlog": v.d.Logs.Manager,
	}
	if s.ID != "" {
		ids[vars[len(vars)-1]] = s.ID
	}
	if s.In != "" && len(vars) > 1 {
		ids[vars[len(vars)-2]] = s.In
	}
	at := v
	at.ids = ids
	uri := pattern
	for _, name := range vars {
		if !at.has(name, ids[name]) {
			return "", false
		}
		uri = strings.Replace(uri, "{"+name+"}", ids[name], 1)
	}
	return uri, true
}

// subject names the part that something happened to.
func (v view) subject(s event.Subject) string {
	switch {
	case s.Part == event.Log && s.ID == string(bmc.AuditLog):
		return v.d.Logs.Manager
	case s.Part == event.Log:
		return v.d.Logs.System
	case s.ID != "":
		return s.ID
	case s.Part == event.System:
		return v.d.SystemID
	case s.Part == event.Chassis:
		return v.d.ChassisID
	case s.Part == event.BMC:
		return v.d.ManagerID
	}
	return string(s.Part)
}

// showOrigins makes the rows that link to what something happened to show what
// decides whether that is there.
func showOrigins(tree []resource) {
	var all shows
	for i := range tree {
		for _, pattern := range origins {
			if tree[i].uri == pattern {
				all |= tree[i].shows &^ PartTime // which nothing comes or goes by
			}
		}
	}
	for i := range tree {
		if tree[i].origins {
			tree[i].shows |= all
		}
	}
}
