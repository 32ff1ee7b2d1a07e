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

// Snapshot is what a host shows at one time.
type Snapshot struct {
	Host    Host
	Dialect *dialect.Record
	Machine *machine.View
	BMC     *bmc.View
	Now     time.Time // of the lab; whole seconds
	// shift is, in what a view is made from, by how many places IDs have shifted.
	shift int
}

func TakeSnapshot(h Host) *Snapshot {
	return &Snapshot{Host: h, Dialect: h.Dialect(), Machine: h.Machine(), BMC: h.BMC(), Now: h.Now().Truncate(time.Second)}
}

// Parts is a set of parts of a host's state: those that a body depends on,
// beside the dialect and the profile, which all hosts of a model share.
type Parts uint64

// The parts of a host's state. A new piece of state is one line here.
var (
	PartIdentity         = part(compared(func(s *Snapshot) **machine.Identity { return &s.Machine.Identity }))                                                                                                                                                 // serial numbers, addresses: what never changes
	PartPower            = part(compared(func(s *Snapshot) **machine.Main { return &s.Machine.Main }), derived(func(s *Snapshot) *machine.Power { return &s.Machine.Power }), derived(func(s *Snapshot) **machine.Source { return &s.Machine.CurrentSource })) // power, boot and what runs
	PartAsset            = part(compared(func(s *Snapshot) **machine.Asset { return &s.Machine.Asset }))
	PartBoot             = part(compared(func(s *Snapshot) **machine.BootSettings { return &s.Machine.Boot }), derived(func(s *Snapshot) **machine.BootOptionCache { return &s.Machine.BootOptionCache })) // boot order, and how else it boots
	PartPolicy           = part(compared(func(s *Snapshot) **machine.PowerPolicy { return &s.Machine.Policy }))                                                                                            // how power comes on
	PartCabling          = part(compared(func(s *Snapshot) **machine.Cabling { return &s.Machine.Cabling }))                                                                                               // which NICs have a link
	PartFirmware         = part(compared(func(s *Snapshot) *firmware.View { return &s.Machine.Firmware }))                                                                                                 // BIOS settings, versions and updates
	PartThermal          = part(compared(func(s *Snapshot) *thermal.View { return &s.Machine.Thermal }))                                                                                                   // what heats, cools and feeds it; with PartTime what sensors read
	PartSecureBoot       = part(compared(func(s *Snapshot) **machine.SecureBoot { return &s.Machine.SecureBoot }))                                                                                         // secure boot and its keys
	PartWatchdog         = part(compared(func(s *Snapshot) **machine.Watchdog { return &s.Machine.Watchdog }))
	PartPhysicalSecurity = part(compared(func(s *Snapshot) **machine.PhysicalSecurity { return &s.Machine.PhysicalSecurity }))
	PartTelemetry        = part(compared(func(s *Snapshot) **machine.Telemetry { return &s.Machine.Telemetry })) // reports that are and are to be
	PartStorage          = part(viewField{
		same: func(a, b *Snapshot) bool { return a.Machine.Storage.Same(b.Machine.Storage) },
		copy: func(to, from *Snapshot) { to.Machine.Storage = from.Machine.Storage },
	}) // with PartIdentity
	PartAccess        = part(compared(func(s *Snapshot) **bmc.Access { return &s.BMC.Access })) // accounts and their policy
	PartMedia         = part(compared(func(s *Snapshot) **bmc.Media { return &s.BMC.Media }))
	PartSessions      = part(compared(func(s *Snapshot) **bmc.Logins { return &s.BMC.Logins }))
	PartLog           = part(compared(func(s *Snapshot) **bmc.Log { return &s.BMC.Log }))
	PartTasks         = part(compared(func(s *Snapshot) **bmc.Tasks { return &s.BMC.Tasks }))
	PartLoginFailures = part(compared(func(s *Snapshot) **bmc.LoginFailures { return &s.BMC.LoginFailures })) // failed logins
	PartAudit         = part(compared(func(s *Snapshot) **bmc.Log { return &s.BMC.Audit }))
	PartDumps         = part(compared(func(s *Snapshot) **bmc.Dumps { return &s.BMC.Dumps }))
	PartClock         = part(compared(func(s *Snapshot) **bmc.Clock { return &s.BMC.Clock }))
	PartSubscribers   = part(compared(func(s *Snapshot) **bmc.Subscribers { return &s.BMC.Subscribers }))   // subscriptions to events
	PartUpdates       = part(compared(func(s *Snapshot) **bmc.Updates { return &s.BMC.Updates }))           // how images are taken
	PartCertificates  = part(compared(func(s *Snapshot) **bmc.Certificates { return &s.BMC.Certificates })) // certificates that the BMC holds
	PartLife          = part(compared(func(s *Snapshot) **bmc.Life { return &s.BMC.Life }))
	PartNetwork       = part(compared(func(s *Snapshot) **bmc.Network { return &s.BMC.Net }), compared(func(s *Snapshot) **bmc.NetworkDefaults { return &s.BMC.NetworkDefaults }))
	PartJobs          = part(compared(func(s *Snapshot) **bmc.Jobs { return &s.BMC.Jobs }))
	PartConsole       = part(compared(func(s *Snapshot) **bmc.SOL { return &s.BMC.Serial }))    // how the serial console is offered; with PartNetwork
	PartOEM           = part(compared(func(s *Snapshot) **bmc.OEMValues { return &s.BMC.OEM })) // what the vendor's service remembers
	PartNICShift      = part(viewField{
		same: func(a, b *Snapshot) bool { return shiftOf(a) == shiftOf(b) },
		copy: func(to, from *Snapshot) { to.shift = shiftOf(from) },
	}) // by how much the IDs of network interfaces have shifted
	PartTime = part(viewField{
		same: func(a, b *Snapshot) bool { return a.Now.Equal(b.Now) },
		copy: func(to, from *Snapshot) { to.Now = from.Now },
	})
)

// parts are all of them, by the number of their bit.
var parts [][]viewField

// AllParts are all parts.
func AllParts() Parts { return 1<<len(parts) - 1 }

// ChangedParts are the parts that differ between two snapshots of a host, but for
// the time.
func ChangedParts(was, is *Snapshot) (changed Parts) {
	for i := range parts {
		if one := Parts(1) << i; one != PartTime && !one.Same(was, is) {
			changed |= one
		}
	}
	return changed
}

// viewField is a field of a snapshot's views.
type viewField struct {
	same func(a, b *Snapshot) bool // nil: it follows from the others of its part
	copy func(to, from *Snapshot)
}

// part makes a part of the state of some fields.
func part(fields ...viewField) Parts {
	parts = append(parts, fields)
	return 1 << (len(parts) - 1)
}

// compared is one that is compared: most are pointers to what never changes.
func compared[T comparable](at func(s *Snapshot) *T) viewField {
	f := derived(at)
	f.same = func(a, b *Snapshot) bool { return *at(a) == *at(b) }
	return f
}

// derived is a field that follows from the others of its part.
func derived[T any](at func(s *Snapshot) *T) viewField {
	return viewField{copy: func(to, from *Snapshot) { *at(to) = *at(from) }}
}

// Same says whether two snapshots show the same as far as a body can tell.
func (s Parts) Same(a, b *Snapshot) bool {
	switch {
	case s == 0:
		return a.Dialect == b.Dialect && a.Machine.Profile == b.Machine.Profile
	case a.Machine == b.Machine && a.BMC == b.BMC && s&PartTime == 0: // nothing has changed at all
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

// View is all that a body may depend on: of a snapshot the parts that its row
// shows, so that a body that was made from the same parts is the same, which
// is what lets bodies be kept. To look at another part is a nil dereference.
type View struct {
	Host    Host // to be asked for what never changes
	Dialect *dialect.Record
	Machine *machine.View
	BMC     *bmc.View
	Tree    *Tree
	Now     time.Time         // whole seconds; zero for a resource that does not show time
	shift   int               // of IDs of network interfaces
	URI     string            // of the resource
	IDs     map[string]string // the variables of its pattern
}

// View is what a resource can see of a snapshot.
func (m *Match) View(at *Snapshot) View {
	if m.Uncached {
		return View{Host: at.Host, Tree: m.Tree, Dialect: at.Dialect, Machine: at.Machine, BMC: at.BMC, Now: at.Now, shift: shiftOf(at), URI: m.URI, IDs: m.IDs}
	}
	to := Snapshot{Dialect: at.Dialect, Machine: &machine.View{Profile: at.Machine.Profile}, BMC: &bmc.View{Spec: at.BMC.Spec}}
	for rest := m.DependsOn; rest != 0; rest &= rest - 1 {
		for _, f := range parts[mathbits.TrailingZeros64(uint64(rest))] {
			f.copy(&to, at)
		}
	}
	return View{Host: at.Host, Tree: m.Tree, Dialect: to.Dialect, Machine: to.Machine, BMC: to.BMC, Now: to.Now, shift: to.shift, URI: m.URI, IDs: m.IDs}
}

// Members says what each variable of a pattern can stand for. A collection
// lists them, and nothing else exists.
var Members = map[string]func(v View) []string{
	"auditentry":    func(v View) []string { return entryIDs(v.BMC.Audit) },
	"entry":         func(v View) []string { return entryIDs(v.BMC.Log) },
	"plan":          func(v View) []string { return Map(v.BMC.Jobs.All(), func(p bmc.Job) string { return p.ID }) },
	"managernic":    func(View) []string { return []string{ManagerNICID} },
	"hostinterface": func(View) []string { return []string{HostInterfaceID} },
	"managerlog":    func(v View) []string { return []string{v.Dialect.Logs.Manager} },
	"systemlog":     func(v View) []string { return []string{v.Dialect.Logs.System} },
	"webcert":       webMembers,
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
	"adapter":    func(v View) []string { return Map(adapters(v), cardID) },
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
	"made":       madeIDs,
	"trigger":    triggerIDs,
	"database":   databaseIDs,
	"keycert":    keyIDs(true),
	"signature":  keyIDs(false),
	"chassis":    only("chassis"),
	"controller": func(v View) []string { return []string{"0"} },
	"drive": func(v View) []string {
		return Map(v.storage().Drives, func(d storage.DriveView) string { return d.ID })
	},
	"file":    func(v View) []string { return v.storeFiles() },
	"manager": only("manager"),
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
	"software": func(v View) []string { return Map(v.stored(), func(s stored) string { return s.id }) },
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
	"system": only("system"),
	"volume": func(v View) []string { return Map(v.storage().Volumes, volumeID) },
}

// theOnly are the variables that stand for one thing alone.
var theOnly = map[string]func(d *dialect.Record) string{
	"system":  func(d *dialect.Record) string { return d.SystemID },
	"manager": func(d *dialect.Record) string { return d.ManagerID },
	"chassis": func(d *dialect.Record) string { return d.ChassisID },
}

// only lists what one of them stands for.
func only(name string) func(v View) []string {
	return func(v View) []string { return []string{theOnly[name](v.Dialect)} }
}

// lookups say whether something is there where listing all of its kind would
// take long.
var lookups = map[string]func(v View, id string) bool{
	"auditentry": func(v View, id string) bool { return hasEntry(v.BMC.Audit, id) },
	"entry":      func(v View, id string) bool { return hasEntry(v.BMC.Log, id) },
}

// Has says whether what a variable stands for is there.
func (v View) Has(name, id string) bool {
	if h, ok := lookups[name]; ok {
		return h(v, id)
	}
	if only := theOnly[name]; only != nil {
		return id == only(v.Dialect)
	}
	return slices.Contains(Members[name](v), id)
}

// Map is what of returns for each element.
func Map[T, S any](all []T, of func(T) S) []S {
	out := make([]S, len(all))
	for i := range all {
		out[i] = of(all[i])
	}
	return out
}

// Find is the element whose ID is id, or a zero one.
func Find[T any](all []T, id string, of func(T) string) (found T) {
	for _, t := range all {
		if of(t) == id {
			return t
		}
	}
	return found
}

// The addresses of what there is one of.
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

// Ref is a link to a resource (DSP0266, "Reference properties").
func Ref(uri string) Object { return Object{"@odata.id": uri} }

// Refs are links to resources.
func Refs(uris ...string) []Object { return Map(uris, Ref) }

// status is a Resource.Status.
func status(state string) Object { return Object{"State": state, "Health": "OK"} }

// rolledUp is a Resource.Status that speaks for what is below, too.
func rolledUp(state string) Object {
	return Object{"State": state, "Health": "OK", "HealthRollup": "OK"}
}

// serviceUUID identifies the service, and with it the BMC.
func (v View) serviceUUID() string { return v.Machine.Identity.BMCUUID() }

// Snapshot is what a view of all that there is was made from.
func (v View) Snapshot() *Snapshot {
	return &Snapshot{Host: v.Host, Dialect: v.Dialect, Machine: v.Machine, BMC: v.BMC, Now: v.Now.Truncate(time.Second)}
}

// OEMValue is what a vendor's service remembers under a name.
func (v View) OEMValue(name string) (any, bool) { return OEMValueIn(v.BMC, name) }

func OEMValueIn(b *bmc.View, name string) (any, bool) {
	raw, ok := b.OEM.All()[name]
	if !ok {
		return nil, false
	}
	return Decode(slices.Concat([]byte(`{"x":`), raw, []byte("}")))["x"], true
}

// Fill puts the variables of an address, and what there is one of, into a text.
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
