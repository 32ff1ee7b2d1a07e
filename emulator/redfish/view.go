package redfish

import (
	"maps"
	mathbits "math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
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

// shows says which parts of a snapshot a body depends on, beside the dialect
// and the profile, which all hosts of a model share.
type shows uint64

const (
	showsIdentity  shows = 1 << 0 // serial numbers, addresses: what never changes
	showsPower     shows = 1 << 1 // power, boot and what runs
	showsAsset     shows = 1 << 2
	showsBoot      shows = 1 << 3  // boot order, and how else it boots
	showsPolicy    shows = 1 << 4  // how power comes on
	showsCabling   shows = 1 << 5  // which NICs have a link
	showsFirmware  shows = 1 << 6  // BIOS settings, versions and updates
	showsThermal   shows = 1 << 24 // what heats, cools and feeds it; with showsTime what sensors read
	showsSecure    shows = 1 << 25 // secure boot and its keys
	showsWatchdog  shows = 1 << 26
	showsLid       shows = 1 << 28
	showsConsole   shows = 1 << 29 // how the serial console is offered; with showsNetwork
	showsTelemetry shows = 1 << 27 // reports that are and are to be
	showsStorage   shows = 1 << 7  // with showsIdentity
	showsAccess    shows = 1 << 8  // accounts and their policy
	showsMedia     shows = 1 << 9
	showsSessions  shows = 1 << 10
	showsLog       shows = 1 << 11
	showsJobs      shows = 1 << 12
	showsLocks     shows = 1 << 13 // failed logins
	showsAudit     shows = 1 << 14
	showsDumps     shows = 1 << 15
	showsClock     shows = 1 << 16
	showsAudience  shows = 1 << 20 // subscriptions to events
	showsUpdates   shows = 1 << 18 // how images are taken
	showsCerts     shows = 1 << 17 // certificates that the BMC holds
	showsLife      shows = 1 << 21
	showsNetwork   shows = 1 << 22
	showsPlans     shows = 1 << 23
	showsTime      shows = 1 << 30
	showsKept      shows = 1 << 31 // what the vendor's service remembers
	showsShift     shows = 1 << 32 // by how much the IDs of network interfaces have shifted
)

// part is a part of the views. Both functions know nothing of the others.
type part struct {
	same func(a, b *snapshot) bool
	copy func(to, from *snapshot)
}

// byBit are the parts by the number of their bit: every request asks for some.
var byBit = func() (all [64]part) {
	for s, p := range parts {
		all[mathbits.TrailingZeros64(uint64(s))] = p
	}
	return all
}()

// parts are all that a body can show.
var parts = map[shows]part{
	showsIdentity: {
		func(a, b *snapshot) bool { return a.m.Identity == b.m.Identity },
		func(to, from *snapshot) { to.m.Identity = from.m.Identity },
	},
	showsPower: {
		func(a, b *snapshot) bool { return a.m.Main == b.m.Main },
		func(to, from *snapshot) {
			to.m.Main, to.m.Power, to.m.CurrentSource = from.m.Main, from.m.Power, from.m.CurrentSource
		},
	},
	showsAsset: {
		func(a, b *snapshot) bool { return a.m.Asset == b.m.Asset },
		func(to, from *snapshot) { to.m.Asset = from.m.Asset },
	},
	showsBoot: {
		func(a, b *snapshot) bool { return a.m.Boot == b.m.Boot },
		func(to, from *snapshot) { to.m.Boot, to.m.BootOptionCache = from.m.Boot, from.m.BootOptionCache },
	},
	showsPolicy: {
		func(a, b *snapshot) bool { return a.m.Policy == b.m.Policy },
		func(to, from *snapshot) { to.m.Policy = from.m.Policy },
	},
	showsCabling: {
		func(a, b *snapshot) bool { return a.m.Cabling == b.m.Cabling },
		func(to, from *snapshot) { to.m.Cabling = from.m.Cabling },
	},
	showsSecure: {
		func(a, b *snapshot) bool { return a.m.SecureBoot == b.m.SecureBoot },
		func(to, from *snapshot) { to.m.SecureBoot = from.m.SecureBoot },
	},
	showsWatchdog: {
		func(a, b *snapshot) bool { return a.m.Watchdog == b.m.Watchdog },
		func(to, from *snapshot) { to.m.Watchdog = from.m.Watchdog },
	},
	showsLid: {
		func(a, b *snapshot) bool { return a.m.PhysicalSecurity == b.m.PhysicalSecurity },
		func(to, from *snapshot) { to.m.PhysicalSecurity = from.m.PhysicalSecurity },
	},
	showsTelemetry: {
		func(a, b *snapshot) bool { return a.m.Telemetry == b.m.Telemetry },
		func(to, from *snapshot) { to.m.Telemetry = from.m.Telemetry },
	},
	showsThermal: {
		func(a, b *snapshot) bool { return a.m.Thermal == b.m.Thermal },
		func(to, from *snapshot) { to.m.Thermal = from.m.Thermal },
	},
	showsFirmware: {
		func(a, b *snapshot) bool { return a.m.Firmware == b.m.Firmware },
		func(to, from *snapshot) { to.m.Firmware = from.m.Firmware },
	},
	showsStorage: {
		func(a, b *snapshot) bool { return a.m.Storage.Same(b.m.Storage) },
		func(to, from *snapshot) { to.m.Storage = from.m.Storage },
	},
	showsUpdates: {
		func(a, b *snapshot) bool { return a.b.Updates == b.b.Updates },
		func(to, from *snapshot) { to.b.Updates = from.b.Updates },
	},
	showsAccess: {
		func(a, b *snapshot) bool { return a.b.Access == b.b.Access },
		func(to, from *snapshot) { to.b.Access = from.b.Access },
	},
	showsMedia: {
		func(a, b *snapshot) bool { return a.b.Media == b.b.Media },
		func(to, from *snapshot) { to.b.Media = from.b.Media },
	},
	showsSessions: {
		func(a, b *snapshot) bool { return a.b.Logins == b.b.Logins },
		func(to, from *snapshot) { to.b.Logins = from.b.Logins },
	},
	showsLog: {
		func(a, b *snapshot) bool { return a.b.Log == b.b.Log },
		func(to, from *snapshot) { to.b.Log = from.b.Log },
	},
	showsJobs: {
		func(a, b *snapshot) bool { return a.b.Tasks == b.b.Tasks },
		func(to, from *snapshot) { to.b.Tasks = from.b.Tasks },
	},
	showsLocks: {
		func(a, b *snapshot) bool { return a.b.LoginFailures == b.b.LoginFailures },
		func(to, from *snapshot) { to.b.LoginFailures = from.b.LoginFailures },
	},
	showsAudit: {
		func(a, b *snapshot) bool { return a.b.Audit == b.b.Audit },
		func(to, from *snapshot) { to.b.Audit = from.b.Audit },
	},
	showsDumps: {
		func(a, b *snapshot) bool { return a.b.Dumps == b.b.Dumps },
		func(to, from *snapshot) { to.b.Dumps = from.b.Dumps },
	},
	showsClock: {
		func(a, b *snapshot) bool { return a.b.Clock == b.b.Clock },
		func(to, from *snapshot) { to.b.Clock = from.b.Clock },
	},
	showsAudience: {
		func(a, b *snapshot) bool { return a.b.Subscribers == b.b.Subscribers },
		func(to, from *snapshot) { to.b.Subscribers = from.b.Subscribers },
	},
	showsCerts: {
		func(a, b *snapshot) bool { return a.b.Certificates == b.b.Certificates },
		func(to, from *snapshot) { to.b.Certificates = from.b.Certificates },
	},
	showsPlans: {
		func(a, b *snapshot) bool { return a.b.Jobs == b.b.Jobs },
		func(to, from *snapshot) { to.b.Jobs = from.b.Jobs },
	},
	showsNetwork: {
		func(a, b *snapshot) bool { return a.b.Net == b.b.Net && a.b.NetworkDefaults == b.b.NetworkDefaults },
		func(to, from *snapshot) { to.b.Net, to.b.NetworkDefaults = from.b.Net, from.b.NetworkDefaults },
	},
	showsConsole: {
		func(a, b *snapshot) bool { return a.b.Serial == b.b.Serial },
		func(to, from *snapshot) { to.b.Serial = from.b.Serial },
	},
	showsLife: {
		func(a, b *snapshot) bool { return a.b.Life == b.b.Life },
		func(to, from *snapshot) { to.b.Life = from.b.Life },
	},
	showsKept: {
		func(a, b *snapshot) bool { return a.b.OEM == b.b.OEM },
		func(to, from *snapshot) { to.b.OEM = from.b.OEM },
	},
	showsShift: {
		func(a, b *snapshot) bool { return shiftOf(a) == shiftOf(b) },
		func(to, from *snapshot) { to.shift = shiftOf(from) },
	},
	showsTime: {
		func(a, b *snapshot) bool { return a.now.Equal(b.now) },
		func(to, from *snapshot) { to.now = from.now },
	},
}

// same says whether two snapshots show the same as far as a body can tell.
func (s shows) same(a, b *snapshot) bool {
	switch {
	case s == 0:
		return a.d == b.d && a.m.Profile == b.m.Profile
	case a.m == b.m && a.b == b.b && s&showsTime == 0: // nothing has changed at all
		return a.d == b.d
	}
	for rest := s; rest != 0; rest &= rest - 1 {
		if !byBit[mathbits.TrailingZeros64(uint64(rest))].same(a, b) {
			return false
		}
	}
	return a.d == b.d
}

// view is all that a body may depend on: of a snapshot the parts that its row
// shows, so that a body that was made from the same parts is the same, which
// is what lets bodies be kept. To look at another part is a nil dereference.
type view struct {
	host   Host // to be asked for what never changes
	d      *dialect.Record
	m      *machine.View
	b      *bmc.View
	served *served
	now    time.Time         // whole seconds; zero for a resource that does not show time
	shift  int               // of IDs of network interfaces
	uri    string            // of the resource
	ids    map[string]string // the variables of its pattern
}

// view is what a resource can see of a snapshot.
func (m *match) view(at *snapshot) view { return m.see(m.shows, at) }

// see is what shows in some parts of a snapshot.
func (m *match) see(some shows, at *snapshot) view { return m.seeIn(new(sight), some, at) }

// sight is the room for what a view points at.
type sight struct {
	to snapshot
	m  machine.View
	b  bmc.View
}

// sights are those that are used again: a resource of pieces is seen anew for
// some of them whenever one changes, and a tenth of what a PATCH leaves to the
// collector would be this.
var sights = sync.Pool{New: func() any { return new(sight) }}

// seeIn is see in a room that is empty.
func (m *match) seeIn(all *sight, some shows, at *snapshot) view {
	if m.fresh {
		return view{host: at.h, served: m.served, d: at.d, m: at.m, b: at.b, now: at.now, shift: shiftOf(at), uri: m.uri, ids: m.ids}
	}
	all.m.Profile, all.b.Spec = at.m.Profile, at.b.Spec
	to := &all.to
	to.d, to.m, to.b = at.d, &all.m, &all.b
	for rest := some; rest != 0; rest &= rest - 1 {
		byBit[mathbits.TrailingZeros64(uint64(rest))].copy(to, at)
	}
	return view{host: at.h, served: m.served, d: to.d, m: to.m, b: to.b, now: to.now, shift: to.shift, uri: m.uri, ids: m.ids}
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
	"schema":  func(v view) []string { return v.served.schemas },
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
