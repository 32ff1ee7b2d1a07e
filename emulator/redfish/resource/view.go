package resource

import (
	"maps"
	mathbits "math/bits"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// Object is a JSON object of a body.
type Object = map[string]any

// Snapshot is the state of a host at one time.
type Snapshot struct {
	Host    Host
	Dialect *dialect.Record
	Machine *machine.View
	BMC     *bmc.View
	Now     time.Time // lab time in whole seconds
	// shift is by how many places the IDs of EthernetInterfaces have shifted (nicShift); only View sets it.
	shift int
}

// TakeSnapshot returns the present state of a host.
func TakeSnapshot(h Host) *Snapshot {
	return &Snapshot{Host: h, Dialect: h.Dialect(), Machine: h.Machine(), BMC: h.BMC(), Now: h.Now().Truncate(time.Second)}
}

// Parts is a set of parts of a host's state: those that a body depends on, in addition to
// the dialect and the profile, which all hosts of a model share.
type Parts uint64

// The parts of a host's state. A new piece of state is one line here. Package vendor
// reads PartOEM; the others are named by rows alone.
var (
	partIdentity         = part(compared(func(s *Snapshot) **machine.Identity { return &s.Machine.Identity }))                                                                                                                                                 // serial numbers and addresses, which never change
	partPower            = part(compared(func(s *Snapshot) **machine.Main { return &s.Machine.Main }), derived(func(s *Snapshot) *machine.Power { return &s.Machine.Power }), derived(func(s *Snapshot) **machine.Source { return &s.Machine.CurrentSource })) // power, boot and the running system
	partAsset            = part(compared(func(s *Snapshot) **machine.Asset { return &s.Machine.Asset }))
	partBoot             = part(compared(func(s *Snapshot) **machine.BootSettings { return &s.Machine.Boot }), derived(func(s *Snapshot) **machine.BootOptionCache { return &s.Machine.BootOptionCache })) // boot order, boot override and boot mode
	partPolicy           = part(compared(func(s *Snapshot) **machine.PowerPolicy { return &s.Machine.Policy }))                                                                                            // power restore policy
	partCabling          = part(compared(func(s *Snapshot) **machine.Cabling { return &s.Machine.Cabling }))                                                                                               // which NICs have a link
	partFirmware         = part(compared(func(s *Snapshot) *firmware.View { return &s.Machine.Firmware }))                                                                                                 // BIOS settings, versions and updates
	partThermal          = part(compared(func(s *Snapshot) *thermal.View { return &s.Machine.Thermal }))                                                                                                   // heat, fans and power supplies; with partTime the sensor readings
	partSecureBoot       = part(compared(func(s *Snapshot) **machine.SecureBoot { return &s.Machine.SecureBoot }))                                                                                         // secure boot and its keys
	partWatchdog         = part(compared(func(s *Snapshot) **machine.Watchdog { return &s.Machine.Watchdog }))
	partPhysicalSecurity = part(compared(func(s *Snapshot) **machine.PhysicalSecurity { return &s.Machine.PhysicalSecurity }))
	partTelemetry        = part(compared(func(s *Snapshot) **machine.Telemetry { return &s.Machine.Telemetry })) // metric reports and their definitions
	partStorage          = part(viewField{
		same: func(a, b *Snapshot) bool { return a.Machine.Storage.Same(b.Machine.Storage) },
		copy: func(to, from *Snapshot) { to.Machine.Storage = from.Machine.Storage },
	}) // with partIdentity
	partAccess        = part(compared(func(s *Snapshot) **bmc.Access { return &s.BMC.Access })) // accounts and their policy
	partMedia         = part(compared(func(s *Snapshot) **bmc.Media { return &s.BMC.Media }))
	partSessions      = part(compared(func(s *Snapshot) **bmc.Logins { return &s.BMC.Logins }))
	partLog           = part(compared(func(s *Snapshot) **bmc.Log { return &s.BMC.Log }))
	partTasks         = part(compared(func(s *Snapshot) **bmc.Tasks { return &s.BMC.Tasks }))
	partLoginFailures = part(compared(func(s *Snapshot) **bmc.LoginFailures { return &s.BMC.LoginFailures })) // failed logins
	partAudit         = part(compared(func(s *Snapshot) **bmc.Log { return &s.BMC.Audit }))
	partDumps         = part(compared(func(s *Snapshot) **bmc.Dumps { return &s.BMC.Dumps }))
	partClock         = part(compared(func(s *Snapshot) **bmc.Clock { return &s.BMC.Clock }))
	partSubscribers   = part(compared(func(s *Snapshot) **bmc.Subscribers { return &s.BMC.Subscribers }))   // subscriptions to events
	partUpdates       = part(compared(func(s *Snapshot) **bmc.Updates { return &s.BMC.Updates }))           // settings of the UpdateService
	partCertificates  = part(compared(func(s *Snapshot) **bmc.Certificates { return &s.BMC.Certificates })) // certificates that the BMC holds
	partLife          = part(compared(func(s *Snapshot) **bmc.Life { return &s.BMC.Life }))
	partNetwork       = part(compared(func(s *Snapshot) **bmc.Network { return &s.BMC.Net }), compared(func(s *Snapshot) **bmc.NetworkDefaults { return &s.BMC.NetworkDefaults }))
	partJobs          = part(compared(func(s *Snapshot) **bmc.Jobs { return &s.BMC.Jobs }))
	partConsole       = part(compared(func(s *Snapshot) **bmc.SOL { return &s.BMC.Serial }))    // serial over LAN; with partNetwork
	PartOEM           = part(compared(func(s *Snapshot) **bmc.OEMValues { return &s.BMC.OEM })) // values that OEM resources store
	partNICShift      = part(viewField{
		same: func(a, b *Snapshot) bool { return nicShift(a) == nicShift(b) },
		copy: func(to, from *Snapshot) { to.shift = nicShift(from) },
	}) // shift of the IDs of EthernetInterfaces
	partTime = part(viewField{
		same: func(a, b *Snapshot) bool { return a.Now.Equal(b.Now) },
		copy: func(to, from *Snapshot) { to.Now = from.Now },
	})
)

// parts holds the fields of each part, by the number of its bit.
var parts [][]viewField

// AllParts returns the set of all parts.
func AllParts() Parts { return 1<<len(parts) - 1 }

// ChangedParts returns the parts that differ between two snapshots of a host, except
// partTime.
func ChangedParts(was, is *Snapshot) (changed Parts) {
	for i := range parts {
		if one := Parts(1) << i; one != partTime && !one.Same(was, is) {
			changed |= one
		}
	}
	return changed
}

// viewField is a field of a snapshot that a part consists of.
type viewField struct {
	same func(a, b *Snapshot) bool // nil: the field follows from the others of its part
	copy func(to, from *Snapshot)
}

// part registers a part of the state that consists of some fields.
func part(fields ...viewField) Parts {
	parts = append(parts, fields)
	return 1 << (len(parts) - 1)
}

// compared returns a field whose values are compared. Most are pointers to immutable
// values.
func compared[T comparable](at func(s *Snapshot) *T) viewField {
	f := derived(at)
	f.same = func(a, b *Snapshot) bool { return *at(a) == *at(b) }
	return f
}

// derived returns a field that follows from the other fields of its part.
func derived[T any](at func(s *Snapshot) *T) viewField {
	return viewField{copy: func(to, from *Snapshot) { *at(to) = *at(from) }}
}

// Same reports whether the parts are equal in two snapshots, so that a body which depends
// on them is the same.
func (s Parts) Same(a, b *Snapshot) bool {
	switch {
	case s == 0:
		return a.Dialect == b.Dialect && a.Machine.Profile == b.Machine.Profile
	case a.Machine == b.Machine && a.BMC == b.BMC && s&partTime == 0: // no part has changed
		return a.Dialect == b.Dialect
	}
	for rest := s; rest != 0; rest &= rest - 1 {
		for _, f := range parts[mathbits.TrailingZeros64(uint64(rest))] {
			if f.same != nil && !f.same(a, b) {
				return false
			}
		}
	}
	return a.Dialect == b.Dialect
}

// View is everything that a body may depend on: the parts of a snapshot that its row
// declares in DependsOn. Bodies can be cached because a body rendered from the same parts
// is the same. Reading a part that the row does not declare dereferences nil.
type View struct {
	Host    Host // only for what never changes
	Dialect *dialect.Record
	Machine *machine.View
	BMC     *bmc.View
	Tree    *Tree
	Now     time.Time         // whole seconds; zero for a row without partTime
	shift   int               // shift of the IDs of EthernetInterfaces
	URI     string            // URI of the resource
	IDs     map[string]string // the variables of its pattern
}

// View returns the part of a snapshot that the row of the match declares.
func (m *Match) View(at *Snapshot) View {
	if m.Uncached {
		return View{Host: at.Host, Tree: m.Tree, Dialect: at.Dialect, Machine: at.Machine, BMC: at.BMC, Now: at.Now, shift: nicShift(at), URI: m.URI, IDs: m.IDs}
	}
	to := Snapshot{Dialect: at.Dialect, Machine: &machine.View{Profile: at.Machine.Profile}, BMC: &bmc.View{Spec: at.BMC.Spec}}
	for rest := m.DependsOn; rest != 0; rest &= rest - 1 {
		for _, f := range parts[mathbits.TrailingZeros64(uint64(rest))] {
			f.copy(&to, at)
		}
	}
	return View{Host: at.Host, Tree: m.Tree, Dialect: to.Dialect, Machine: to.Machine, BMC: to.BMC, Now: to.Now, shift: to.shift, URI: m.URI, IDs: m.IDs}
}

// Members maps each URI variable to a function that lists its IDs. A collection lists them,
// and no other ID exists.
var Members = map[string]func(v View) []string{
	"auditentry":    func(v View) []string { return entryIDs(v.BMC.Audit) },
	"entry":         func(v View) []string { return entryIDs(v.BMC.Log) },
	"plan":          func(v View) []string { return Map(v.BMC.Jobs.All(), func(p bmc.Job) string { return p.ID }) },
	"managernic":    func(View) []string { return []string{ManagerNICID} },
	"hostinterface": func(View) []string { return []string{HostInterfaceID} },
	"managerlog":    func(v View) []string { return []string{v.Dialect.Logs.Manager} },
	"systemlog":     func(v View) []string { return []string{v.Dialect.Logs.System} },
	"webcert":       httpsCertificateIDs,
	"slotcert":      storeMembers("slotcert"),
	"bootcert":      storeMembers("bootcert"),
	"usercert":      storeMembers("usercert"),
	"subcert":       storeMembers("subcert"),
	"account":       func(v View) []string { return Map(v.BMC.Accounts, func(a bmc.Account) string { return a.ID }) },
	"option": func(v View) []string {
		return Map(v.Machine.BootOptions(), func(b machine.BootOption) string { return b.ID })
	},
	"processor":  func(v View) []string { return cpuIDs(v.Machine.Profile) },
	"dimm":       func(v View) []string { return dimmIDs(v.Machine.Profile) },
	"card":       func(v View) []string { return Map(v.Machine.Profile.Cards, cardID) },
	"function":   func(v View) []string { return Map(v.functions(), functionID) },
	"adapter":    func(v View) []string { return Map(networkAdapters(v), cardID) },
	"port":       func(v View) []string { return v.adapter().NICs },
	"trusted":    trustedIDs,
	"sensor":     func(v View) []string { return Map(v.Machine.Profile.Thermal.Sensors, sensorID) },
	"supply":     supplyIDs,
	"fan":        fanIDs,
	"control":    controlIDs,
	"integrity":  integrityIDs,
	"rootcert":   rootCertificates,
	"metric":     metricIDs,
	"report":     reportIDs,
	"made":       metricReportIDs,
	"trigger":    triggerIDs,
	"database":   databaseIDs,
	"keycert":    keyIDs(true),
	"signature":  keyIDs(false),
	"chassis":    singleton("chassis"),
	"controller": func(v View) []string { return []string{"0"} },
	"drive": func(v View) []string {
		return Map(v.storage().Drives, func(d storage.DriveView) string { return d.ID })
	},
	"file":    func(v View) []string { return v.schemaFiles() },
	"manager": singleton("manager"),
	"monitor": func(v View) []string {
		var open []string
		for _, j := range v.BMC.Tasks.All() {
			if !j.Closed {
				open = append(open, j.ID)
			}
		}
		return open
	},
	"nic":      func(v View) []string { return Map(v.Machine.Identity.NICs, func(n machine.NIC) string { return n.ID }) },
	"role":     func(v View) []string { return Map(v.BMC.Roles(), func(r bmc.RoleSpec) string { return string(r.ID) }) },
	"firmware": View.components,
	"software": func(v View) []string { return Map(v.inactiveImages(), func(s inactiveImage) string { return s.id }) },
	"registry": func(v View) []string { return slices.Sorted(maps.Keys(registries(v))) },
	"document": func(v View) []string {
		if registries(v)[v.IDs["registry"]].document == nil {
			return nil
		}
		return []string{v.IDs["registry"] + ".json"}
	},
	"schema":  func(v View) []string { return v.Tree.Schemas },
	"session": func(v View) []string { return Map(v.BMC.Sessions, func(s bmc.Session) string { return s.ID }) },
	"slot":    func(v View) []string { return Map(v.BMC.Slots, func(s bmc.Slot) string { return s.ID }) },
	"storage": func(v View) []string {
		return Map(v.Machine.Identity.Storage, func(c storage.Controller) string { return c.ID })
	},
	"subscription": func(v View) []string {
		return Map(v.BMC.Subscribers.List, func(s bmc.Subscription) string { return s.ID })
	},
	"task":   func(v View) []string { return Map(v.BMC.Tasks.All(), func(j bmc.Task) string { return j.ID }) },
	"system": singleton("system"),
	"volume": func(v View) []string { return Map(v.storage().Volumes, volumeID) },
}

// singletonIDs maps the URI variables that have a single ID to it.
var singletonIDs = map[string]func(d *dialect.Record) string{
	"system":  func(d *dialect.Record) string { return d.SystemID },
	"manager": func(d *dialect.Record) string { return d.ManagerID },
	"chassis": func(d *dialect.Record) string { return d.ChassisID },
}

// singleton returns a function that lists the one ID of a variable.
func singleton(name string) func(v View) []string {
	return func(v View) []string { return []string{singletonIDs[name](v.Dialect)} }
}

// lookups maps URI variables to functions that find an ID faster than listing all IDs.
var lookups = map[string]func(v View, id string) bool{
	"auditentry": func(v View, id string) bool { return hasEntry(v.BMC.Audit, id) },
	"entry":      func(v View, id string) bool { return hasEntry(v.BMC.Log, id) },
}

// Has reports whether a URI variable can have an ID.
func (v View) Has(name, id string) bool {
	if h, ok := lookups[name]; ok {
		return h(v, id)
	}
	if only := singletonIDs[name]; only != nil {
		return id == only(v.Dialect)
	}
	return slices.Contains(Members[name](v), id)
}

// Map returns the results of a function for each element.
func Map[T, S any](all []T, of func(T) S) []S {
	out := make([]S, len(all))
	for i := range all {
		out[i] = of(all[i])
	}
	return out
}

// Find returns the element with an ID, or the zero value when there is none.
func Find[T any](all []T, id string, of func(T) string) (found T) {
	for _, t := range all {
		if of(t) == id {
			return t
		}
	}
	return found
}

// system, manager and chassis return the URI of the one System, Manager or Chassis, or of a resource below it.
func (v View) system(below ...string) string {
	return address("/redfish/v1/Systems", v.Dialect.SystemID, below)
}
func (v View) manager(below ...string) string {
	return address("/redfish/v1/Managers", v.Dialect.ManagerID, below)
}
func (v View) chassis(below ...string) string {
	return address("/redfish/v1/Chassis", v.Dialect.ChassisID, below)
}

func address(collection, id string, below []string) string {
	return strings.Join(append([]string{collection, id}, below...), "/")
}

// Ref returns a link to a resource (DSP0266, "Reference properties").
func Ref(uri string) Object { return Object{"@odata.id": uri} }

// refs returns links to resources.
func refs(uris ...string) []Object { return Map(uris, Ref) }

// status returns a Resource.Status with the health OK.
func status(state string) Object { return Object{"State": state, "Health": "OK"} }

// rolledUp returns a Resource.Status with the health OK and the HealthRollup OK.
func rolledUp(state string) Object {
	return Object{"State": state, "Health": "OK", "HealthRollup": "OK"}
}

// serviceUUID returns the UUID of the service, which is that of the BMC.
func (v View) serviceUUID() string { return v.Machine.Identity.BMCUUID() }

// Snapshot returns the snapshot that an uncached view was made from.
func (v View) Snapshot() *Snapshot {
	return &Snapshot{Host: v.Host, Dialect: v.Dialect, Machine: v.Machine, BMC: v.BMC, Now: v.Now.Truncate(time.Second)}
}

// OEMValue returns the value that an OEM resource stored under a name, and whether there is
// one.
func (v View) OEMValue(name string) (any, bool) { return OEMValueIn(v.BMC, name) }

// OEMValueIn is OEMValue for a view of a BMC.
func OEMValueIn(b *bmc.View, name string) (any, bool) {
	raw, ok := b.OEM.All()[name]
	if !ok {
		return nil, false
	}
	return Decode(slices.Concat([]byte(`{"x":`), raw, []byte("}")))["x"], true
}

// Fill replaces {self} and the URI variables in a text by their values.
func (v View) Fill(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	pairs := []string{"{self}", v.URI}
	for _, name := range slices.Sorted(maps.Keys(v.IDs)) {
		pairs = append(pairs, "{"+name+"}", v.IDs[name])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
