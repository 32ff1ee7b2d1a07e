package resource

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// originPatterns maps each part of a server that an event can be about to the URI pattern
// of its resource. The last variable of the pattern is the ID of the part, and the one
// before it, where there is one, the ID of what contains the part. A part that is not
// listed has no resource.
var originPatterns = map[event.Part]string{
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

// OriginOfCondition returns the URI of the resource that an event is about (DSP2046,
// OriginOfCondition). It returns false when that resource does not exist, or no longer
// exists. A row that calls it sets linksToOrigins, so that its body depends on what those
// resources depend on.
func (v View) OriginOfCondition(s event.Subject) (string, bool) {
	pattern, ok := originPatterns[s.Part]
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

// subjectName returns the name of the part that an event is about, as messages show it.
func (v View) subjectName(s event.Subject) string {
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

// addOriginParts makes every row with linksToOrigins depend on the parts that decide
// whether an origin exists.
func addOriginParts(tree []Row) {
	var all Parts
	for i := range tree {
		for _, pattern := range originPatterns {
			if tree[i].URI == pattern {
				all |= tree[i].DependsOn &^ partTime // no resource appears or vanishes with time
			}
		}
	}
	for i := range tree {
		if tree[i].linksToOrigins {
			tree[i].DependsOn |= all
		}
	}
}
