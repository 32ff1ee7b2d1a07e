package redfish

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

// object is a JSON object of a body.
type object = map[string]any

// snapshot is what a host shows at one time.
type snapshot struct {
	h   Host
	d   *dialect.Record
	m   *machine.View
	b   *bmc.View
	now time.Time // of the lab; whole seconds
	// shift is, in what a view is made from, by how many places IDs have shifted.
	shift int
}

func look(h Host) *snapshot {
	return &snapshot{h: h, d: h.Dialect(), m: h.Machine(), b: h.BMC(), now: h.Now().Truncate(time.Second)}
}

// shows is a set of parts of a host's state: those that a body depends on,
// beside the dialect and the profile, which all hosts of a model share.
type shows uint64

// The parts of a host's state. A new piece of state is one line here.
var (
	PartIdentity         = part(compared(func(s *snapshot) **machine.Identity { return &s.m.Identity }))                                                                                                                                     // serial numbers, addresses: what never changes
	PartPower            = part(compared(func(s *snapshot) **machine.Main { return &s.m.Main }), derived(func(s *snapshot) *machine.Power { return &s.m.Power }), derived(func(s *snapshot) **machine.Source { return &s.m.CurrentSource })) // power, boot and what runs
	PartAsset            = part(compared(func(s *snapshot) **machine.Asset { return &s.m.Asset }))
	PartBoot             = part(compared(func(s *snapshot) **machine.BootSettings { return &s.m.Boot }), derived(func(s *snapshot) **machine.BootOptionCache { return &s.m.BootOptionCache })) // boot order, and how else it boots
	PartPolicy           = part(compared(func(s *snapshot) **machine.PowerPolicy { return &s.m.Policy }))                                                                                      // how power comes on
	PartCabling          = part(compared(func(s *snapshot) **machine.Cabling { return &s.m.Cabling }))                                                                                         // which NICs have a link
	PartFirmware         = part(compared(func(s *snapshot) *firmware.View { return &s.m.Firmware }))                                                                                           // BIOS settings, versions and updates
	PartThermal          = part(compared(func(s *snapshot) *thermal.View { return &s.m.Thermal }))                                                                                             // what heats, cools and feeds it; with PartTime what sensors read
	PartSecureBoot       = part(compared(func(s *snapshot) **machine.SecureBoot { return &s.m.SecureBoot }))                                                                                   // secure boot and its keys
	PartWatchdog         = part(compared(func(s *snapshot) **machine.Watchdog { return &s.m.Watchdog }))
	PartPhysicalSecurity = part(compared(func(s *snapshot) **machine.PhysicalSecurity { return &s.m.PhysicalSecurity }))
	PartTelemetry        = part(compared(func(s *snapshot) **machine.Telemetry { return &s.m.Telemetry })) // reports that are and are to be
	PartStorage          = part(viewField{
		same: func(a, b *snapshot) bool { return a.m.Storage.Same(b.m.Storage) },
		copy: func(to, from *snapshot) { to.m.Storage = from.m.Storage },
	}) // with PartIdentity
	PartAccess        = part(compared(func(s *snapshot) **bmc.Access { return &s.b.Access })) // accounts and their policy
	PartMedia         = part(compared(func(s *snapshot) **bmc.Media { return &s.b.Media }))
	PartSessions      = part(compared(func(s *snapshot) **bmc.Logins { return &s.b.Logins }))
	PartLog           = part(compared(func(s *snapshot) **bmc.Log { return &s.b.Log }))
	PartTasks         = part(compared(func(s *snapshot) **bmc.Tasks { return &s.b.Tasks }))
	PartLoginFailures = part(compared(func(s *snapshot) **bmc.LoginFailures { return &s.b.LoginFailures })) // failed logins
	PartAudit         = part(compared(func(s *snapshot) **bmc.Log { return &s.b.Audit }))
	PartDumps         = part(compared(func(s *snapshot) **bmc.Dumps { return &s.b.Dumps }))
	PartClock         = part(compared(func(s *snapshot) **bmc.Clock { return &s.b.Clock }))
	PartSubscribers   = part(compared(func(s *snapshot) **bmc.Subscribers { return &s.b.Subscribers }))   // subscriptions to events
	PartUpdates       = part(compared(func(s *snapshot) **bmc.Updates { return &s.b.Updates }))           // how images are taken
	PartCertificates  = part(compared(func(s *snapshot) **bmc.Certificates { return &s.b.Certificates })) // certificates that the BMC holds
	PartLife          = part(compared(func(s *snapshot) **bmc.Life { return &s.b.Life }))
	PartNetwork       = part(compared(func(s *snapshot) **bmc.Network { return &s.b.Net }), compared(func(s *snapshot) **bmc.NetworkDefaults { return &s.b.NetworkDefaults }))
	PartJobs          = part(compared(func(s *snapshot) **bmc.Jobs { return &s.b.Jobs }))
	PartConsole       = part(compared(func(s *snapshot) **bmc.SOL { return &s.b.Serial }))    // how the serial console is offered; with PartNetwork
	PartOEM           = part(compared(func(s *snapshot) **bmc.OEMValues { return &s.b.OEM })) // what the vendor's service remembers
	PartNICShift      = part(viewField{
		same: func(a, b *snapshot) bool { return shiftOf(a) == shiftOf(b) },
		copy: func(to, from *snapshot) { to.shift = shiftOf(from) },
	}) // by how much the IDs of network interfaces have shifted
	PartTime = part(viewField{
		same: func(a, b *snapshot) bool { return a.now.Equal(b.now) },
		copy: func(to, from *snapshot) { to.now = from.now },
	})
)

// parts are all of them, by the number of their bit.
var parts [][]viewField

// allParts are all parts.
func allParts() shows { return 1<<len(parts) - 1 }

// changedParts are the parts that differ between two snapshots of a host, but for
// the time.
func changedParts(was, is *snapshot) (changed shows) {
	for i := range parts {
		if one := shows(1) << i; one != PartTime && !one.same(was, is) {
			changed |= one
		}
	}
	return changed
}

// viewField is a field of a snapshot's views.
type viewField struct {
	same func(a, b *snapshot) bool // nil: it follows from the others of its part
	copy func(to, from *snapshot)
}

// part makes a part of the state of some fields.
func part(fields ...viewField) shows {
	parts = append(parts, fields)
	return 1 << (len(parts) - 1)
}

// compared is one that is compared: most are pointers to what never changes.
func compared[T comparable](at func(s *snapshot) *T) viewField {
	f := derived(at)
	f.same = func(a, b *snapshot) bool { return *at(a) == *at(b) }
	return f
}

// derived is a field that follows from the others of its part.
func derived[T any](at func(s *snapshot) *T) viewField {
	return viewField{copy: func(to, from *snapshot) { *at(to) = *at(from) }}
}

// same says whether two snapshots show the same as far as a body can tell.
func (s shows) same(a, b *snapshot) bool {
	switch {
	case s == 0:
		return a.d == b.d && a.m.Profile == b.m.Profile
	case a.m == b.m && a.b == b.b && s&PartTime == 0: // nothing has changed at all
		return a.d == b.d
	}
	for rest := s; rest != 0; rest &= rest - 1 {
		for _, f := range parts[mathbits.TrailingZeros64(uint64(rest))] {
			if f.same != nil && !f.same(a, b) {
				return false
			}
		}
	}
	return a.d == b.d
}

// view is all that a body may depend on: of a snapshot the parts that its row
// shows, so that a body that was made from the same parts is the same, which
// is what lets bodies be kept. To look at another part is a nil dereference.
type view struct {
	host  Host // to be asked for what never changes
	d     *dialect.Record
	m     *machine.View
	b     *bmc.View
	tree  *Tree
	now   time.Time         // whole seconds; zero for a resource that does not show time
	shift int               // of IDs of network interfaces
	uri   string            // of the resource
	ids   map[string]string // the variables of its pattern
}

// view is what a resource can see of a snapshot.
func (m *match) view(at *snapshot) view {
	if m.fresh {
		return view{host: at.h, tree: m.tree, d: at.d, m: at.m, b: at.b, now: at.now, shift: shiftOf(at), uri: m.uri, ids: m.ids}
	}
	to := snapshot{d: at.d, m: &machine.View{Profile: at.m.Profile}, b: &bmc.View{Spec: at.b.Spec}}
	for rest := m.shows; rest != 0; rest &= rest - 1 {
		for _, f := range parts[mathbits.TrailingZeros64(uint64(rest))] {
			f.copy(&to, at)
		}
	}
	return view{host: at.h, tree: m.tree, d: to.d, m: to.m, b: to.b, now: to.now, shift: to.shift, uri: m.uri, ids: m.ids}
}

// things says what each variable of a pattern can stand for. A collection
// lists them, and nothing else exists.
var things = map[string]func(v view) []string{
	"auditentry":    func(v view) []string { return entryIDs(v.b.Audit) },
	"entry":         func(v view) []string { return entryIDs(v.b.Log) },
	"plan":          func(v view) []string { return list(v.b.Jobs.All(), func(p bmc.Job) string { return p.ID }) },
	"managernic":    func(view) []string { return []string{managerNICID} },
	"hostinterface": func(view) []string { return []string{hostInterfaceID} },
	"managerlog":    func(v view) []string { return []string{v.d.Logs.Manager} },
	"systemlog":     func(v view) []string { return []string{v.d.Logs.System} },
	"webcert":       webMembers,
	"slotcert":      storeMembers("slotcert"),
	"bootcert":      storeMembers("bootcert"),
	"usercert":      storeMembers("usercert"),
	"subcert":       storeMembers("subcert"),
	"account":       func(v view) []string { return list(v.b.Accounts, func(a bmc.Account) string { return a.ID }) },
	"option": func(v view) []string {
		return list(v.m.BootOptions(), func(b machine.BootOption) string { return b.ID })
	},
	"processor":  func(v view) []string { return cpuIDs(v.m.Profile) },
	"dimm":       func(v view) []string { return dimmIDs(v.m.Profile) },
	"card":       func(v view) []string { return list(v.m.Profile.Cards, cardID) },
	"function":   func(v view) []string { return list(v.functions(), functionID) },
	"adapter":    func(v view) []string { return list(adapters(v), cardID) },
	"port":       func(v view) []string { return v.adapter().NICs },
	"trusted":    trustedIDs,
	"sensor":     func(v view) []string { return list(v.m.Profile.Thermal.Sensors, sensorID) },
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
	"controller": func(v view) []string { return []string{"0"} },
	"drive": func(v view) []string {
		return list(v.storage().Drives, func(d storage.DriveView) string { return d.ID })
	},
	"file":    func(v view) []string { return v.storeFiles() },
	"manager": only("manager"),
	"monitor": func(v view) []string {
		var open []string
		for _, j := range v.b.Tasks.All() {
			if !j.Closed {
				open = append(open, j.ID)
			}
		}
		return open
	},
	"nic":      func(v view) []string { return list(v.m.Identity.NICs, func(n machine.NIC) string { return n.ID }) },
	"role":     func(v view) []string { return list(v.b.Roles(), func(r bmc.RoleSpec) string { return string(r.ID) }) },
	"firmware": view.components,
	"software": func(v view) []string { return list(v.stored(), func(s stored) string { return s.id }) },
	"registry": func(v view) []string { return slices.Sorted(maps.Keys(registries(v))) },
	"document": func(v view) []string {
		if registries(v)[v.ids["registry"]].document == nil {
			return nil
		}
		return []string{v.ids["registry"] + ".json"}
	},
	"schema":  func(v view) []string { return v.tree.schemas },
	"session": func(v view) []string { return list(v.b.Sessions, func(s bmc.Session) string { return s.ID }) },
	"slot":    func(v view) []string { return list(v.b.Slots, func(s bmc.Slot) string { return s.ID }) },
	"storage": func(v view) []string {
		return list(v.m.Identity.Storage, func(c storage.Controller) string { return c.ID })
	},
	"subscription": func(v view) []string {
		return list(v.b.Subscribers.List, func(s bmc.Subscription) string { return s.ID })
	},
	"task":   func(v view) []string { return list(v.b.Tasks.All(), func(j bmc.Task) string { return j.ID }) },
	"system": only("system"),
	"volume": func(v view) []string { return list(v.storage().Volumes, volumeID) },
}

// theOnly are the variables that stand for one thing alone.
var theOnly = map[string]func(d *dialect.Record) string{
	"system":  func(d *dialect.Record) string { return d.SystemID },
	"manager": func(d *dialect.Record) string { return d.ManagerID },
	"chassis": func(d *dialect.Record) string { return d.ChassisID },
}

// only lists what one of them stands for.
func only(name string) func(v view) []string {
	return func(v view) []string { return []string{theOnly[name](v.d)} }
}

// lookups say whether something is there where listing all of its kind would
// take long.
var lookups = map[string]func(v view, id string) bool{
	"auditentry": func(v view, id string) bool { return hasEntry(v.b.Audit, id) },
	"entry":      func(v view, id string) bool { return hasEntry(v.b.Log, id) },
}

// has says whether what a variable stands for is there.
func (v view) has(name, id string) bool {
	if h, ok := lookups[name]; ok {
		return h(v, id)
	}
	if only := theOnly[name]; only != nil {
		return id == only(v.d)
	}
	return slices.Contains(things[name](v), id)
}

// list is what of returns for each element.
func list[T, S any](all []T, of func(T) S) []S {
	out := make([]S, len(all))
	for i := range all {
		out[i] = of(all[i])
	}
	return out
}

// pick is the element whose ID is id, or a zero one.
func pick[T any](all []T, id string, of func(T) string) (found T) {
	for _, t := range all {
		if of(t) == id {
			return t
		}
	}
	return found
}

// The addresses of what there is one of.
func (v view) system(below ...string) string {
	return address("/redfish/v1/Systems", v.d.SystemID, below)
}
func (v view) manager(below ...string) string {
	return address("/redfish/v1/Managers", v.d.ManagerID, below)
}
func (v view) chassis(below ...string) string {
	return address("/redfish/v1/Chassis", v.d.ChassisID, below)
}

func address(collection, id string, below []string) string {
	return strings.Join(append([]string{collection, id}, below...), "/")
}

// ref is a link to a resource (DSP0266, "Reference properties").
func ref(uri string) object { return object{"@odata.id": uri} }

// refs are links to resources.
func refs(uris ...string) []object { return list(uris, ref) }

// status is a Resource.Status.
func status(state string) object { return object{"State": state, "Health": "OK"} }

// rolledUp is a Resource.Status that speaks for what is below, too.
func rolledUp(state string) object {
	return object{"State": state, "Health": "OK", "HealthRollup": "OK"}
}

// serviceUUID identifies the service, and with it the BMC.
func (v view) serviceUUID() string { return v.m.Identity.BMCUUID() }

// snapshot is what a view of all that there is was made from.
func (v view) snapshot() *snapshot {
	return &snapshot{h: v.host, d: v.d, m: v.m, b: v.b, now: v.now.Truncate(time.Second)}
}

// kept is what a vendor's service remembers under a name.
func (v view) kept(name string) (any, bool) { return keptIn(v.b, name) }

func keptIn(b *bmc.View, name string) (any, bool) {
	raw, ok := b.OEM.All()[name]
	if !ok {
		return nil, false
	}
	return decode(slices.Concat([]byte(`{"x":`), raw, []byte("}")))["x"], true
}

// fill puts the variables of an address, and what there is one of, into a text.
func (v view) fill(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	pairs := []string{"{self}", v.uri}
	for _, name := range slices.Sorted(maps.Keys(v.ids)) {
		pairs = append(pairs, "{"+name+"}", v.ids[name])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
