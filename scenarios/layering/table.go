package layering

import "slices"

// Patterns name packages as the go command does: "a/b" is that package alone,
// "a/b/..." that one and all below it. Packages of ours are named from the
// root of the module, all others by their import path.

// Row says what one package, or each package of a pattern, may import. The
// standard library and other people's modules are free but for Never and Only.
type Row struct {
	Package string
	May     []string // packages of ours; a test kit only by its full name
	Never   []string // what it must not import all the same, ours or not; test files may
	But     []string // what of Never it may
	Only    []string // when set, all that it may of other people's modules
	Tests   []string // packages of ours that its test files may import too
}

// Groups of packages that many rows forbid. net/netip and net/url are values,
// not sockets.
var (
	sockets    = []string{"net", "net/http/...", "net/rpc/...", "net/smtp", "net/textproto"}
	files      = []string{"os", "os/...", "syscall", "golang.org/x/sys/..."}
	kubernetes = []string{"k8s.io/...", "sigs.k8s.io/..."}

	// utilsClock is how code that runs anywhere is told the time.
	utilsClock = []string{"k8s.io/utils/clock"}
)

// What a machine is made of sees neither the network nor the system.
var (
	model    = []string{"emulator/machine/...", "emulator/fault", "emulator/yamlfile"}
	noWorld  = slices.Concat(sockets, files, []string{"emulator/clock"})
	ofVendor = []string{"emulator/dialect", "emulator/bmc", "emulator/machine/..."}
	noServer = []string{"net/http/...", "github.com/gorilla/mux"}

	// A vendor's record may begin with the template, but with no other dialect's
	// record, and have quirks for habits.
	oneVendor = slices.Concat(ofVendor, []string{"emulator/dialect/template", "emulator/dialect/quirk"})
	ofRack    = []string{"emulator/rack", "emulator/rack/rackfile"} // that vendors' tests run their record in
)

// What a service of an emulated BMC is made of: dialects reach it as records,
// never as a vendor's package.
var service = slices.Concat(model, []string{"emulator/clock", "emulator/dialect", "emulator/bmc"})

// ofRedfish is what each room of the Redfish service may know.
var ofRedfish = slices.Concat(model, []string{"emulator/bmc", "emulator/redfish/cache", "emulator/redfish/message"})

// Table is the architecture: a package without a row does not exist.
var Table = []Row{
	{Package: "version", Never: noWorld}, // which build a program is

	// The emulated servers.
	{Package: "emulator", May: []string{"emulator/...", "emulator/rack/racktest"}},
	{Package: "emulator/clock", Never: sockets},
	{Package: "emulator/suggest", Never: noWorld},
	{Package: "emulator/yamlfile", May: []string{"emulator/suggest"}, Never: noWorld},
	{Package: "emulator/natural", Never: noWorld},
	{Package: "emulator/fault", May: []string{"emulator/yamlfile"}, Never: slices.Concat(sockets, []string{"emulator/clock"})},
	{Package: "emulator/machine", May: model, Never: noWorld, Tests: []string{"fixtures"}},
	{Package: "emulator/machine/console", Never: noWorld},
	{Package: "emulator/machine/event", Never: noWorld},
	{Package: "emulator/machine/event/sel", May: []string{"emulator/machine/event"}, Never: noWorld},
	{Package: "emulator/machine/storage", May: []string{"emulator/machine/event"}, Never: noWorld},
	{Package: "emulator/machine/firmware", May: []string{"emulator/machine/event", "emulator/natural", "emulator/yamlfile"}, Never: noWorld, Tests: []string{"fixtures"}},
	{Package: "emulator/machine/thermal", May: []string{"emulator/machine/event"}, Never: noWorld},
	{Package: "emulator/bmc", May: []string{"emulator/machine/..."}, Never: []string{"net/http/...", "emulator/clock"}},
	{
		Package: "emulator/dialect", May: []string{"emulator/bmc", "emulator/machine/...", "emulator/yamlfile"}, Never: noServer,
		Tests: []string{"emulator/dialect/..."}, // that each vendor's record is valid
	},
	{Package: "emulator/dialect/template", May: ofVendor},
	{Package: "emulator/dialect/generic", May: slices.Concat(ofVendor, []string{"emulator/dialect/template"})},
	{Package: "emulator/dialect/quirk", May: slices.Concat(ofVendor, []string{"emulator/suggest", "emulator/yamlfile"}), Tests: []string{"emulator/dialect/generic"}},
	{
		Package: "emulator/dialect/file", May: slices.Concat(ofVendor, []string{"emulator/dialect/quirk", "emulator/suggest", "emulator/yamlfile"}),
		Never: noServer, Tests: []string{"emulator/dialect/generic"},
	},
	{
		Package: "emulator/dialect/ilo", May: oneVendor,
		Tests: []string{"emulator/dialect/...", "emulator/rack", "emulator/rack/racktest", "emulator/rack/rackfile", "fixtures"}, // what its clients see
	},
	{Package: "emulator/dialect/idrac", May: oneVendor, Tests: ofRack},
	{Package: "emulator/dialect/xcc", May: oneVendor},
	{Package: "emulator/dialect/supermicro", May: oneVendor},
	{Package: "emulator/dialect/openbmc", May: ofVendor},
	{Package: "emulator/dialect/irmc", May: ofVendor},
	{Package: "emulator/dialect/ibmc", May: ofVendor},
	{Package: "emulator/dialect/megarac", May: oneVendor},
	{
		Package: "emulator/redfish", May: slices.Concat(service, []string{"emulator/redfish/..."}),
		Never: []string{"emulator/dialect"},                 // emulator/redfish/vendor reads a record
		Tests: []string{"emulator/dialect/...", "fixtures"}, // a service needs a vendor and a server to show
	},
	{Package: "emulator/redfish/odata"},
	{Package: "emulator/redfish/message"},
	{Package: "emulator/redfish/cache"},
	// The rooms of the service, each of which knows those before it.
	{Package: "emulator/redfish/resource", May: slices.Concat(ofRedfish, []string{"emulator/dialect", "emulator/redfish/odata", "emulator/clock"})},
	{Package: "emulator/redfish/vendor", May: slices.Concat(ofRedfish, []string{"emulator/dialect", "emulator/redfish/odata", "emulator/redfish/resource"})},
	{Package: "emulator/redfish/render", May: slices.Concat(ofRedfish, []string{"emulator/redfish/resource", "emulator/redfish/vendor"})},
	{
		Package: "emulator/redfish/event",
		May:     slices.Concat(ofRedfish, []string{"emulator/redfish/resource", "emulator/redfish/vendor", "emulator/redfish/render"}),
	},
	{
		Package: "emulator/ipmi", May: slices.Concat(service, []string{"emulator/ipmi/..."}),
		Tests: []string{"emulator/dialect/...", "fixtures"},
	},
	{
		Package: "emulator/ipmi/command",
		May: slices.Concat(ofVendor, []string{
			"emulator/dialect", "emulator/ipmi/wire", "emulator/ipmi/session", "emulator/ipmi/fru", "emulator/ipmi/sdr",
		}),
		Never: slices.Concat(noServer, files, []string{"emulator/clock"}),
		Tests: []string{"emulator/dialect/...", "fixtures"},
	},
	{Package: "emulator/ipmi/wire", Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/fru", Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/sdr", Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/sol", May: []string{"emulator/ipmi/wire"}, Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/vm", Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/session", May: []string{"emulator/ipmi/wire"}, Never: slices.Concat(sockets, files)},
	{
		Package: "emulator/rack", May: []string{"emulator/...", "fixtures"},
		Never: []string{"emulator/rack/control", "emulator/rack/racktest"}, // they stand above it
	},
	{Package: "emulator/rack/rackfile", May: []string{"emulator/fault", "emulator/yamlfile"}},
	{Package: "emulator/rack/journal", May: []string{"emulator/fault"}, Never: slices.Concat(sockets, files)},
	{Package: "emulator/rack/exchange", Never: files}, // it wraps handlers, and knows no host
	{Package: "emulator/rack/snapshot", Never: sockets},
	{Package: "emulator/rack/integrity", Never: sockets},
	{Package: "emulator/rack/space", Never: sockets},
	{Package: "emulator/rack/statedir", Never: sockets},
	{Package: "emulator/rack/network", May: []string{"emulator/bmc", "emulator/clock", "emulator/fault"}},
	{
		Package: "emulator/rack/faults",
		May: []string{
			"emulator/clock", "emulator/fault", "emulator/rack/faulthttp", "emulator/rack/journal", "emulator/rack/store",
			"emulator/machine/event", "emulator/redfish/message", "emulator/suggest", "emulator/yamlfile",
		},
	},
	{Package: "emulator/rack/faulthttp", May: []string{"emulator/fault", "emulator/clock", "emulator/rack/network", "emulator/redfish/message"}},
	{Package: "emulator/rack/store", Tests: []string{"emulator/machine/storage"}}, // that a file is a Medium
	{Package: "emulator/rack/outbound", May: []string{"emulator/bmc", "emulator/clock"}},
	{
		Package: "emulator/rack/control",
		May:     []string{"emulator/rack", "emulator/rack/network", "emulator/rack/rackfile", "emulator/rack/journal", "emulator/rack/snapshot", "emulator/dialect/quirk", "emulator/fault", "emulator/bmc", "emulator/machine/...", "emulator/suggest", "version"},
		Tests:   []string{"emulator/clock"},
	},
	{Package: "emulator/rack/gateway", May: []string{"emulator/clock"}, Tests: []string{"emulator/fault", "emulator/rack", "emulator/rack/racktest", "emulator/rack/rackfile"}}, // it knows hosts by their names alone
	{Package: "emulator/rack/ssdp", May: []string{"emulator/clock"}},
	{Package: "emulator/rack/racktest", May: []string{"scenarios/patience", "emulator/rack", "emulator/rack/journal", "emulator/rack/rackfile", "emulator/rack/ssdp", "emulator/clock", "emulator/fault", "emulator/machine"}},

	// The controllers, which work on real servers.
	{Package: "controller/api/...", May: []string{"controller/api/..."}, Only: []string{"k8s.io/apimachinery/..."}},
	// It has references of Kubernetes' and conditions of Cluster API's own kinds.
	{Package: "controller/api/elemental/v1beta1", Only: []string{"k8s.io/apimachinery/...", "k8s.io/api/...", "sigs.k8s.io/cluster-api/api/..."}},
	{Package: "controller/config"},
	{Package: "controller/aliases", Never: slices.Concat(sockets, files, kubernetes)},
	{
		Package: "controller/kube", May: []string{"controller/api/...", "controller/config", "controller/kube/etcdquiet"},
		Tests: []string{"controller/bmc"}, // that policies read addresses as it does
	},
	{
		// It and scenarios/charts, which serves a repository, link Helm's SDK.
		Package: "controller/mosk/helm", May: []string{"controller/reconcile/events", "controller/reconcile/patch", "controller/api/...", "controller/mosk/helmcontroller", "controller/mosk/workload", "controller/reconcile/queue"},
		Tests: []string{"controller/config", "controller/kube"}, // whose API takes the charts' objects
	},
	{Package: "controller/mosk/helmcontroller"},                       // clusters have it whether Helm is linked or not
	{Package: "controller/drain", Tests: []string{"controller/kube"}}, // whose API evicts
	{Package: "controller/webhook", May: []string{"controller/api/...", "controller/config"}},
	{Package: "controller/reconcile/patch"},
	{Package: "controller/reconcile/watch"},
	{Package: "controller/reconcile/queue"},
	{Package: "controller/tracing", Never: kubernetes}, // it knows no host
	{Package: "controller/reconcile/events"},
	{Package: "controller/reconcile/readafterwrite"},
	{Package: "controller/metal3/dataimage", May: []string{"controller/reconcile/queue"}},
	{Package: "controller/metal3/preprovisioning", May: []string{"controller/reconcile/watch", "controller/reconcile/queue"}},
	{Package: "controller/metal3/subscription", May: []string{"controller/reconcile/watch", "controller/reconcile/queue", "controller/bmc"}},
	{Package: "controller/kube/etcdquiet"},
	{Package: "controller/bmc", Never: kubernetes, But: utilsClock},
	{Package: "controller/bmc/redfish", May: []string{"controller/bmc"}, Never: kubernetes, But: utilsClock},
	{Package: "controller/bmc/ipmi", May: []string{"controller/bmc"}, Never: kubernetes, But: utilsClock},
	{Package: "controller/bmc/bmctest", May: []string{"controller/bmc"}, Never: kubernetes, But: utilsClock},
	{Package: "controller/metal3/host", May: []string{"controller/aliases", "controller/reconcile/patch",
		"controller/api/...", "controller/bmc", "controller/inband", "controller/netboot",
		"controller/reconcile/events", "controller/metal3/host/phase", "controller/reconcile/queue", "controller/reconcile/readafterwrite", "controller/tracing", "agent/job",
	}},
	{
		// It decides on the verbs and values of BMC work, and does none.
		Package: "controller/metal3/host/phase", May: []string{"controller/bmc"},
		Never: slices.Concat(sockets, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
	},
	{
		// It is a part of what hosts are prepared with.
		Package: "controller/metal3/raid", May: []string{"controller/bmc", "controller/metal3/host", "controller/metal3/host/phase", "agent/job"},
		Tests: []string{"controller/inband"},
	},
	// It is a part of preparing a host: host knows it as one, not by name.
	{
		Package: "controller/metal3/firmware", May: []string{"controller/api/...", "controller/bmc", "controller/reconcile/events", "controller/metal3/host", "controller/metal3/host/phase", "controller/reconcile/queue", "controller/reconcile/readafterwrite"},
		Tests: []string{"controller/inband", "controller/netboot"}, // that a host is prepared with it
	},
	{Package: "controller/inband", May: []string{"agent/job"}},
	{
		// Media carry a boot's token, which inband's keys sign.
		Package: "controller/netboot", May: []string{"controller/inband", "controller/netboot/stub", "controller/netboot/cpio", "agent/job"},
	},
	{
		// It makes what agent/boot finds when a kernel starts it.
		Package: "controller/netboot/ramdisk",
		May:     []string{"controller/netboot", "controller/netboot/cpio", "agent/boot", "agent/job"},
		Tests:   []string{"controller/inband", "controller/netboot/stub"},
	},
	{Package: "controller/netboot/cpio", Never: slices.Concat(sockets, files)},
	{Package: "controller/netboot/stub", Never: slices.Concat(sockets, files)},
	// It links no Kubernetes server: it works with any.
	{
		Package: "controller/manager", May: []string{"controller/..."}, Never: []string{"controller/kube", "controller/config"},
		Tests: []string{"agent/job"}, // whose requests its servers answer
	},
	{Package: "controller/mosk/provider/clusters", May: []string{"controller/mosk/provider/unmanaged", "controller/reconcile/events", "controller/mosk/unapplied", "controller/reconcile/patch", "controller/reconcile/watch", "controller/api/...", "controller/mosk/helmcontroller", "controller/mosk/lcm/item", "controller/mosk/provider/iam", "controller/mosk/provider/loadbalancer", "controller/mosk/provider/release", "controller/mosk/workload", "controller/reconcile/queue"}},
	{Package: "controller/mosk/provider/loadbalancer", Never: kubernetes}, // it forwards bytes, and reads no object
	{Package: "controller/mosk/provider/iam", May: []string{"controller/reconcile/patch", "controller/api/..."}},
	{
		// It claims hosts, and knows no BMC.
		Package: "controller/mosk/provider/machines", May: []string{"controller/mosk/provider/unmanaged", "controller/reconcile/events", "controller/mosk/unapplied", "controller/reconcile/patch", "controller/reconcile/watch", "controller/api/...", "controller/mosk/lcm/item", "controller/mosk/provider/hostprofile", "controller/mosk/provider/network/layout", "controller/mosk/provider/release", "controller/mosk/provider/userdata", "controller/mosk/workload", "controller/reconcile/queue"},
		Tests: []string{"controller/mosk/lcm"}, // which assigns and deploys
	},
	{Package: "controller/mosk/provider/unmanaged", May: []string{"controller/api/..."}},
	{Package: "controller/mosk/provider/inventory", May: []string{"controller/mosk/provider/unmanaged", "controller/reconcile/patch", "controller/api/...", "controller/reconcile/queue"}},
	{Package: "controller/mosk/provider/network", May: []string{"controller/mosk/unapplied", "controller/reconcile/patch", "controller/reconcile/watch", "controller/api/...", "controller/mosk/provider/network/layout", "controller/mosk/provider/release", "controller/reconcile/queue"}},
	{
		Package: "controller/mosk/provider/network/layout", May: []string{"controller/aliases", "controller/api/..."},
		Never: slices.Concat(sockets, files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
		Tests: []string{"guest/cloudinit"}, // which reads its network data
	},
	{
		// It compares disks with a profile: it reads no object.
		Package: "controller/mosk/provider/hostprofile", May: []string{"controller/mosk/unapplied", "controller/api/..."},
		Never: slices.Concat(sockets, files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
	},
	{Package: "controller/mosk/provider/plans", May: []string{"controller/reconcile/patch", "controller/api/...", "controller/mosk/provider/release", "controller/reconcile/queue"}},
	{Package: "controller/mosk/provider/release", May: []string{"controller/api/..."}},
	{
		// Its documents are data: it reads no object.
		Package: "controller/mosk/provider/userdata", May: []string{"agent/unit", "controller/api/..."},
		Never: slices.Concat(sockets, files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
		Tests: []string{"guest/cloudinit", "guest/node", "agent/kubeapi", "agent/lcm"}, // which read them
	},
	{
		Package: "controller/mosk/provider/hoc", May: []string{"controller/reconcile/events", "controller/reconcile/patch", "controller/reconcile/watch", "controller/api/...", "controller/mosk/lcm/item", "controller/reconcile/queue", "controller/reconcile/readafterwrite"},
		Tests: []string{"controller/mosk/lcm"}, // which merges the overwrites
	},
	{Package: "controller/nodes", Tests: []string{"controller/config", "controller/kube"}},
	{Package: "controller/mosk/unapplied", May: []string{"controller/api/..."}, Tests: []string{"controller/config"}},
	{Package: "controller/mosk/lcm", May: []string{"controller/reconcile/patch", "controller/reconcile/watch", "controller/api/...", "controller/mosk/lcm/item", "controller/reconcile/queue", "controller/reconcile/readafterwrite"}},
	{Package: "controller/mosk/lcm/reboot", May: []string{"controller/reconcile/events", "controller/reconcile/patch", "controller/api/...", "controller/mosk/lcm/item", "controller/mosk/lcm/maintenance", "controller/reconcile/queue"}},
	{
		Package: "controller/mosk/lcm/deletion", May: []string{"controller/reconcile/patch", "controller/api/...", "controller/mosk/lcm/item", "controller/mosk/lcm/maintenance", "controller/mosk/workload", "controller/reconcile/queue"},
	},
	{
		Package: "controller/mosk/lcm/update", May: []string{"controller/reconcile/patch", "controller/api/...", "controller/mosk/lcm/item", "controller/mosk/lcm/maintenance", "controller/reconcile/queue", "controller/reconcile/readafterwrite"},
		Tests: []string{"controller/mosk/lcm"}, // which writes the items
	},
	{
		Package: "controller/mosk/lcm/maintenance", May: []string{"controller/api/...", "controller/drain", "controller/mosk/lcm/item", "controller/mosk/workload", "controller/reconcile/queue"},
		Tests: []string{"controller/config", "controller/kube"}, // whose API evicts
	},
	{Package: "controller/mosk/workload", May: []string{"controller/api/..."}, Tests: []string{"guest/node"}}, // whose annotation it reads
	{
		// What controllers and agents compute alike, without an API.
		Package: "controller/mosk/lcm/item", May: []string{"controller/api/..."},
		Never: slices.Concat(sockets, files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
	},
	{
		Package: "controller/mosk/hostos", May: []string{"controller/reconcile/events", "controller/reconcile/patch", "controller/reconcile/watch", "controller/api/...", "controller/mosk/hostos/module", "controller/mosk/lcm/item", "controller/reconcile/queue"},
		Tests: []string{"fixtures"}, // whose modules it loads
	},
	{Package: "controller/mosk/hostos/module", Never: kubernetes, Tests: []string{"fixtures"}}, // whose modules run
	{Package: "controller/machineconfig"},
	{Package: "controller/machineconfig/ignition", Never: slices.Concat(sockets, files, kubernetes)},
	{Package: "controller/machineconfig/render", May: []string{"controller/reconcile/patch", "controller/reconcile/watch", "controller/machineconfig", "controller/machineconfig/ignition", "controller/reconcile/queue"}},
	{Package: "controller/machineconfig/node", May: []string{"controller/reconcile/patch", "controller/reconcile/events", "controller/machineconfig", "controller/reconcile/queue", "controller/reconcile/readafterwrite"}},
	{
		// It keeps the handshake of the daemon; the drain itself is everybody's.
		Package: "controller/machineconfig/drain", May: []string{"controller/drain", "controller/reconcile/events", "controller/machineconfig", "controller/reconcile/queue", "controller/reconcile/readafterwrite"},
		Tests: []string{"controller/config", "controller/kube"}, // whose API evicts
	},
	{Package: "controller/machineconfig/build", May: []string{"controller/reconcile/patch", "controller/reconcile/watch", "controller/machineconfig", "controller/machineconfig/ignition", "controller/machineconfig/osimage", "controller/machineconfig/registry", "controller/reconcile/queue"}, Tests: []string{"controller/config"}},
	{
		// The content of a built image, from a configuration and a Containerfile, without an API.
		Package: "controller/machineconfig/osimage", May: []string{"controller/machineconfig", "controller/machineconfig/ignition"},
		Never: []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."},
	},
	{Package: "controller/machineconfig/registry", Never: kubernetes},
	{Package: "controller/machineconfig/builder", May: []string{"controller/reconcile/patch", "controller/machineconfig", "controller/machineconfig/build", "controller/machineconfig/osimage", "controller/machineconfig/registry", "controller/reconcile/queue"}, Tests: []string{"scenarios/prerequisites", "scenarios/registry"}},
	{Package: "controller/elemental", May: []string{"controller/reconcile/patch", "controller/api/...", "controller/elemental/...", "controller/reconcile/queue", "controller/reconcile/readafterwrite"}},
	// What agents ask for is answered from objects: no controller is behind it.
	{Package: "controller/elemental/registration", May: []string{"controller/api/...", "controller/elemental/condition", "controller/elemental/object", "controller/elemental/token", "controller/reconcile/readafterwrite"}},
	{Package: "controller/elemental/condition", Never: slices.Concat(sockets, files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."})},
	{Package: "controller/elemental/object"},
	{Package: "controller/elemental/token", Never: slices.Concat(sockets, files, kubernetes)},

	// The agent. Its time is a clock that it is handed.
	{
		Package: "agent", May: []string{"agent/job", "agent/sys", "agent/plugin/...", "agent/runner"},
		Never: kubernetes, But: utilsClock,
	},
	{Package: "agent/job", Never: kubernetes},
	{Package: "agent/boot", Never: kubernetes},
	{Package: "agent/sys", Never: kubernetes, But: utilsClock, Tests: []string{"agent/sys/hosttest"}},
	{Package: "agent/sys/hosttest", May: []string{"agent/sys"}, Never: kubernetes},
	{Package: "guest/sandbox/hostprograms", May: []string{"agent/sys"}, Never: slices.Concat([]string{"net", "net/http/..."}, files, kubernetes)},
	{Package: "guest/sandbox", May: []string{"agent/sys", "guest/sandbox/hostprograms"}, Tests: []string{"agent/sys/hosttest"}, Never: slices.Concat([]string{"net/http/..."}, kubernetes)},
	{Package: "agent/sys/systest", May: []string{"agent/gpt", "agent/sys"}, Never: kubernetes, But: utilsClock},
	{Package: "agent/gpt", Never: slices.Concat(sockets, files, kubernetes)},
	{Package: "agent/configdrive", May: []string{"agent/job"}, Never: slices.Concat(sockets, files, kubernetes)},
	{
		// What an installation leaves is data: the machine's part of it comes from the sandbox.
		Package: "guest/debian", May: []string{"guest/sandbox"}, Tests: []string{"scenarios/prerequisites"},
		Never: slices.Concat([]string{"net", "net/http/..."}, files, kubernetes),
	},
	{
		// It reads bytes of a disk, whoever has them.
		Package: "guest/rootfs", May: []string{"agent/gpt"}, Tests: []string{"scenarios/prerequisites"},
		Never: slices.Concat(sockets, kubernetes),
	},
	{Package: "guest/cloudinit", Never: slices.Concat([]string{"net", "net/http/..."}, files, kubernetes), Tests: []string{"guest/debian", "guest/sandbox", "scenarios/prerequisites", "scenarios/sample"}},
	{
		// What it reads is what a server's users have written: it has no file and no socket.
		Package: "guest/datasource", May: []string{"guest/cloudinit", "agent/configdrive", "agent/sys"}, Tests: []string{"agent/job", "agent/sys/systest", "scenarios/prerequisites"},
		Never: slices.Concat(sockets, files, kubernetes), But: utilsClock,
	},
	{Package: "agent/plugin/...", May: []string{"agent/job", "agent/sys"}, Never: kubernetes, But: utilsClock},
	{Package: "agent/plugin/disk", May: []string{"agent/job", "agent/sys", "agent/configdrive", "agent/gpt"}, Never: kubernetes, But: utilsClock},
	{Package: "agent/plugin/mdraid", May: []string{"agent/gpt", "agent/job", "agent/sys"}, Never: kubernetes, But: utilsClock},
	{
		// Plugins take the system as an argument: runner hands it on.
		Package: "agent/runner", May: []string{"agent/plugin/...", "agent/job", "agent/sys"},
		Never: kubernetes, But: utilsClock,
	},
	{
		// It is a part of a boot image: it links no client of Kubernetes and no Helm.
		Package: "agent/lcm", May: []string{"agent/unit", "agent/broker", "agent/job", "agent/kubeapi", "agent/lcm/play", "agent/ledger", "agent/sys", "controller/api/...", "controller/mosk/lcm/item", "controller/mosk/hostos/module"},
		Never: slices.Concat(files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "helm.sh/..."}),
		Tests: []string{"guest/debian", "guest/sandbox", "fixtures", "scenarios/prerequisites", "scenarios/sample"},
	},
	{Package: "agent/lcm/play", May: []string{"agent/sys"}, Never: slices.Concat(sockets, files, kubernetes)}, // it is data
	{
		// It is a part of a boot image: it links no client of Kubernetes.
		Package: "agent/elemental", May: []string{"agent/broker", "agent/sys"},
		Never: slices.Concat(files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
		Tests: []string{"guest/sandbox"},
	},
	{
		// The plugin that acts on the dummy's files: it writes disks and runs user data.
		Package: "guest/elementalsim", May: []string{"agent/elemental", "guest/cloudinit", "agent/job", "agent/plugin/...", "agent/sys"},
		Never: slices.Concat(files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
		Tests: []string{"guest/sandbox", "agent/sys/systest", "scenarios/images"},
	},
	{Package: "guest/node", May: []string{"agent/unit", "agent/kubeapi"}, Never: files, Tests: []string{"controller/config", "controller/drain", "controller/kube"}},
	// The lock of a host's operations knows no agent, and no host.
	{Package: "agent/broker", Never: slices.Concat(sockets, files)},
	{Package: "agent/unit", Never: slices.Concat(sockets, files)}, // what starts agents
	// Which files of a host a family owns knows no family.
	{Package: "agent/ledger", May: []string{"agent/sys"}, Never: slices.Concat(sockets, files, kubernetes)},
	// A client of the Kubernetes API without client-go, for agents of boot images.
	{Package: "agent/kubeapi", Never: slices.Concat(files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."})},
	{
		// It is a part of a boot image: it links no client of Kubernetes.
		Package: "agent/machineconfig", May: []string{"agent/unit", "agent/broker", "agent/kubeapi", "agent/ledger", "agent/machineconfig/deployment", "agent/machineconfig/registry", "agent/sys", "controller/machineconfig", "controller/machineconfig/ignition"},
		Never: slices.Concat(files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
		Tests: []string{"guest/staging", "guest/sandbox"},
	},
	{Package: "agent/machineconfig/registry", Never: slices.Concat(files, kubernetes)},
	{Package: "agent/machineconfig/deployment", May: []string{"agent/machineconfig/registry", "agent/sys"}, Never: slices.Concat(files, kubernetes)},
	{
		// The images of a lab's servers; on a real host rpm-ostree does its work.
		Package: "guest/staging", May: []string{"agent/machineconfig/deployment", "agent/machineconfig/registry", "guest/sandbox"}, Never: slices.Concat(files, kubernetes),
	},

	// The documents.
	{
		// Its tests generate what follows from the code.
		Package: "docs",
		Tests:   []string{"emulator", "emulator/dialect/...", "emulator/rack", "emulator/rack/rackfile", "emulator/machine", "emulator/yamlfile", "fixtures", "scenarios/conformance", "scenarios/conformance/ipmi", "scenarios/layering"},
	},
	{Package: "docs/statements", Tests: []string{"emulator/dialect/quirk"}}, // that each quirk is described

	// Where both meet.
	{
		// Its tests see to it that no dialect and no scheme is left out.
		Package: "features",
		May:     []string{"features/steps", "scenarios/...", "emulator/suggest"},
		Tests:   []string{"features/step/...", "docs/statements", "controller/bmc", "emulator/rack", "emulator/dialect", "emulator/machine", "fixtures"},
	},
	{Package: "features/step", Never: kubernetes},
	{Package: "features/step/falseclaim", Never: kubernetes},
	{Package: "features/rack", May: []string{"features/rack/steps"}, Tests: []string{"features/step/...", "docs/statements", "emulator/dialect/quirk"}},
	{Package: "features/conformance", May: []string{"features/conformance/steps"}, Tests: []string{"scenarios/conformance", "scenarios/sample", "scenarios/prerequisites"}, Never: kubernetes},
	{
		// These steps check an emulated BMC, with its quirks and faults, and any other.
		Package: "features/conformance/steps",
		May: []string{
			"scenarios/conformance", "scenarios/clientclock", "scenarios/sample", "emulator/rack", "emulator/rack/racktest", "emulator/rack/rackfile", "emulator/machine/...",
			"emulator/dialect/quirk", "emulator/clock", "emulator/fault",
		},
		Never: kubernetes, But: utilsClock,
	},
	{
		// These steps see BMCs over the wire, and of the lab what stands beside it.
		Package: "features/rack/steps",
		May:     []string{"features/step", "scenarios/patience", "scenarios/prerequisites", "emulator/rack/...", "emulator/rack/racktest", "emulator/machine/...", "emulator/dialect/quirk", "emulator/clock", "emulator/fault", "fixtures", "scenarios/conformance/ipmi"},
		Never:   kubernetes, But: utilsClock,
	},
	{
		// Steps do what operators do and look at what servers then are.
		Package: "features/steps",
		May: []string{
			"features/step", "lab", "scenarios/...", "emulator/rack/...", "emulator/machine/...", "emulator/bmc", "emulator/dialect/quirk", "emulator/fault", "fixtures",
			"emulator/rack/racktest",                                           // which ports no other test has
			"scenarios/patience",                                               // how long they wait
			"scenarios/prerequisites",                                          // what scenarios need
			"guest/elementalsim", "agent/lcm", "guest/node", "guest/cloudinit", // the units, files and configurations that user data install
			"controller/drain", "controller/reconcile/patch", // what evicts pods; patches that conflict
			"controller/elemental/condition",                                                                       // what conditions say
			"controller/api/...", "controller/config", "controller/mosk/hostos/module", "controller/mosk/lcm/item", // what agents do with the objects of day 2
			"controller/machineconfig", "controller/machineconfig/registry", // what builds and images are named
		},
		Tests: []string{"controller/inband"}, // whose tokens no console may show
	},
	{Package: "scenarios/registry", Never: kubernetes},
	{
		// An agent in process runs over systest, backed by a machine's disks.
		Package: "lab",
		May:     []string{"emulator/...", "controller/...", "agent/...", "guest/...", "agent/sys/systest", "version", "fixtures", "scenarios/charts", "scenarios/images", "scenarios/registry", "scenarios/view", "lab/clusterapi", "lab/helmpods", "lab/ownapi", "lab/pxe"},
		Tests:   []string{"scenarios/sample"},
	},
	{
		// It stands in for Cluster API's controllers, and knows no emulated server.
		Package: "lab/clusterapi",
		May:     []string{"guest/node", "controller/api/...", "controller/elemental/condition", "controller/elemental/object", "controller/reconcile/queue"},
	},
	{
		// It stands in for the cluster that runs the chart's pods, and installs no chart.
		Package: "lab/helmpods",
		May:     []string{"controller/mosk/helmcontroller", "controller/reconcile/queue"},
		Tests:   []string{"controller/config", "controller/kube", "scenarios/patience"},
	},
	{
		Package: "lab/ownapi",
		May:     []string{"controller/api/...", "controller/kube", "controller/mosk/workload", "controller/reconcile/queue"},
		Tests:   []string{"controller/config", "scenarios/patience"},
	},
	{
		// The firmware of a NIC, and the loader that it starts.
		Package: "lab/pxe", May: []string{"controller/netboot", "controller/netboot/cpio", "controller/netboot/stub", "agent/job"},
		Never: kubernetes,
		Tests: []string{"controller/inband"}, // whose keys sign what is booted
	},
	{
		// It knows a BMC by its address alone; its tests check the emulator.
		Package: "scenarios/conformance", May: []string{"scenarios/conformance/interop", "scenarios/conformance/ipmi"}, Never: kubernetes, But: utilsClock,
		Tests: []string{"emulator/clock", "emulator/rack", "emulator/rack/journal", "emulator/rack/racktest", "emulator/rack/rackfile", "emulator/dialect/quirk", "emulator/fault", "emulator/machine", "scenarios/prerequisites", "scenarios/sample", "fixtures", "scenarios/capture", "scenarios/record", "scenarios/conformance/report"},
	},
	{
		// It knows results and no BMC; its tests run the checks on the emulator.
		Package: "scenarios/conformance/report", May: []string{"scenarios/conformance"},
		Tests: []string{"emulator/rack", "emulator/rack/journal", "emulator/rack/racktest", "emulator/rack/rackfile"},
	},
	{
		// A program that runs the checks against servers in containers.
		Package: "scenarios/conformance/peers", May: []string{"scenarios/conformance"}, Never: kubernetes,
	},
	{
		// It evaluates documents, and reads none.
		Package: "scenarios/conformance/interop", Never: slices.Concat(sockets, files, kubernetes),
		Tests: []string{"scenarios/prerequisites"},
	},
	{
		// Its tests check the emulator, and the driver on it.
		Package: "scenarios/conformance/ipmi",
		Tests: []string{
			"emulator/clock", "emulator/ipmi", "emulator/rack", "emulator/rack/journal", "emulator/rack/racktest", "emulator/rack/rackfile", "emulator/bmc", "emulator/machine",
			"controller/bmc", "controller/bmc/ipmi", "controller/bmc/redfish",
		},
	},
	{
		// Its tests run the driver on the emulator.
		Package: "scenarios/conformance/firmware",
		Tests: []string{
			"emulator/rack", "emulator/rack/racktest", "emulator/rack/outbound", "emulator/rack/rackfile", "emulator/machine", "emulator/machine/firmware",
			"controller/bmc", "controller/bmc/redfish", "fixtures", "scenarios/sample",
		},
	},
	{
		// Its tests run public clients on BMCs of all dialects.
		Package: "scenarios/conformance/clients",
		Tests: []string{
			"emulator/bmc", "emulator/rack", "emulator/rack/racktest", "emulator/rack/outbound", "emulator/rack/rackfile", "emulator/machine",
			"emulator/machine/firmware", "emulator/machine/storage", "fixtures", "scenarios/sample",
		},
	},
	{
		// Its tests run the drivers on BMCs with quirks.
		Package: "scenarios/conformance/quirks",
		Tests: []string{
			"emulator/bmc", "emulator/rack", "emulator/rack/racktest", "emulator/rack/outbound", "emulator/rack/rackfile", "emulator/dialect/quirk",
			"emulator/machine", "emulator/machine/storage", "controller/bmc", "controller/bmc/ipmi", "controller/bmc/redfish", "fixtures",
		},
	},
	{
		// Its tests run the agent against the API, on this machine.
		Package: "scenarios/lcm",
		Tests: []string{
			"agent/job", "agent/lcm", "agent/sys", "controller/api/...", "controller/config", "controller/mosk/hostos/module", "controller/kube", "controller/mosk/lcm/item",
			"fixtures", "scenarios/prerequisites",
		},
	},
	{
		// Its tests are where both sides of RAID meet without Kubernetes.
		Package: "scenarios/raid",
		Tests: []string{
			"controller/bmc", "controller/bmc/redfish", "controller/bmc/bmctest", "controller/metal3/host", "controller/metal3/host/phase", "controller/metal3/raid",
			"emulator/bmc", "emulator/rack", "emulator/rack/control", "emulator/rack/racktest", "emulator/rack/rackfile", "emulator/machine/storage",
		},
	},
	{Package: "scenarios/capture", May: []string{"emulator/natural"}}, // it sees a BMC as any client does
	{
		// It serves what it makes, to see what of the BMC is missing still.
		Package: "scenarios/record",
		May: []string{
			"scenarios/capture", "emulator/natural", "emulator/clock", "emulator/rack", "emulator/rack/rackfile", "emulator/dialect", "emulator/dialect/file",
			"emulator/bmc", "emulator/machine/...", "emulator/yamlfile", "fixtures",
		},
	},
	{
		Package: "scenarios/images", May: []string{"agent/gpt", "controller/netboot/stub"},
		Tests: []string{"controller/netboot"}, // that its media boot, too
	},
	{Package: "scenarios/charts", May: []string{"controller/mosk/helmcontroller", "fixtures"}},
	{
		// It reads the objects of a cluster, and calls shards.
		Package: "scenarios/cluster", May: []string{"emulator/rack/control", "emulator/rack/rackfile"},
		Tests: []string{"scenarios/cluster/clustertest"},
	},
	{Package: "scenarios/cluster/clustertest", May: []string{"emulator/rack", "emulator/rack/control", "emulator/rack/racktest", "emulator/rack/rackfile"}},
	{
		Package: "scenarios/shards", // it runs programs, and links none of them
		May:     []string{"emulator/rack", "emulator/rack/control", "emulator/rack/network", "emulator/rack/rackfile"},
		Never:   kubernetes, But: utilsClock,
		Tests: []string{"emulator/clock"},
	},
	{
		// It shows the emulated lab, and gets objects of Kubernetes as texts.
		Package: "scenarios/view",
		May: []string{
			"emulator/rack", "emulator/rack/control", "emulator/rack/exchange", "emulator/rack/journal", "emulator/rack/network", "emulator/rack/snapshot", "emulator/machine", "emulator/machine/event", "emulator/machine/firmware",
			"emulator/machine/thermal", "emulator/bmc", "emulator/dialect", "emulator/dialect/quirk", "emulator/fault",
		},
		Never: kubernetes, But: utilsClock,
		Tests: []string{"emulator/rack/racktest", "emulator/rack/rackfile", "scenarios/prerequisites"},
	},
	{Package: "scenarios/containers"}, // it reads an image, and the output of its commands
	{Package: "scenarios/clientclock", May: []string{"emulator/clock"}, Tests: []string{"scenarios/patience"}, Never: kubernetes, But: utilsClock},
	{Package: "scenarios/patience", Never: slices.Concat(sockets, kubernetes)}, // it bounds waiting, and knows nothing that is waited for
	{Package: "scenarios/prerequisites", May: []string{"scenarios/patience"}},  // it finds programs, and knows no test
	{Package: "scenarios/prerequisites/missing", May: []string{"scenarios/prerequisites"}},
	{Package: "scenarios/loopdisk"},                                            // it attaches files, and knows no test
	{Package: "scenarios/smalldisk"},                                           // it mounts a file system, and knows no test
	{Package: "scenarios/smallroot", May: []string{"scenarios/prerequisites"}}, // it makes files
	{Package: "scenarios/leak"},                                                // it counts, and knows no lab
	{Package: "scenarios/sample"},                                              // it chooses among names, and knows no kind of name
	// It runs the go command, and knows packages by their names.
	{Package: "scenarios/suite", May: []string{"scenarios/leak", "scenarios/prerequisites", "scenarios/sample"}},
	{Package: "scenarios/mutants"}, // it reads sources and runs the go command
	{Package: "scenarios/layering"},
	{Package: "fixtures"},
	{Package: "cmd"}, // scripts
	{Package: "cmd/labctl/crash", May: []string{"emulator/rack/statedir"}}, // it reads how a process ended, and starts none
	{Package: "cmd/labctl", May: []string{"cmd/labctl/crash", "docs", "emulator/...", "controller/...", "agent/...", "guest/...", "lab/...", "scenarios/...", "fixtures", "features", "features/steps", "version"}},
	{Package: "cmd/lab-controller", May: []string{"controller/...", "version"}, Never: []string{"controller/kube"}},
	{Package: "cmd/lab-agent", May: []string{"agent/...", "guest/elementalsim", "version"}},
}

// Border is a line that no row can open.
type Border struct {
	From, To   string // patterns
	TestsCross bool   // test files may
	Why        string
}

// Borders hold beside Table, and in test files too unless they say otherwise.
var Borders = []Border{
	{From: "controller/...", To: "emulator/...", Why: "controllers must work on real servers"},
	{From: "agent/...", To: "emulator/...", Why: "the agent must work on real servers"},
	{From: "emulator/...", To: "controller/...", Why: "the two sides meet only on the wire"},
	{From: "emulator/...", To: "agent/...", Why: "the two sides meet only on the wire"},
	{From: "emulator/...", To: "k8s.io/...", Why: "the emulator is used without Kubernetes"},
	// A mistake in a codec that both sides share would be invisible.
	{From: "emulator/...", To: "github.com/stmcginnis/gofish/...", TestsCross: true, Why: "emulator and drivers share no codec"},
	{From: "emulator/...", To: "github.com/bougou/go-ipmi/...", TestsCross: true, Why: "emulator and drivers share no codec"},
}

// kits are packages for tests: every test file on their side of the borders may
// use them, other code only if its row names them in full.
var kits = []string{"emulator/rack/racktest", "controller/bmc/bmctest", "agent/sys/systest", "scenarios/clientclock", "scenarios/leak", "scenarios/patience", "scenarios/prerequisites", "scenarios/loopdisk", "scenarios/smalldisk", "scenarios/smallroot"}

// badNames say nothing of what a package owns.
var badNames = []string{"util", "common", "helper", "types", "internal", "pkg"}

// realTime are the functions of package time that read or follow the real
// clock. Under emulator/ only emulator/clock may name them.
var realTime = []string{"Now", "Since", "Until", "After", "Sleep", "Tick", "NewTimer", "NewTicker", "AfterFunc"}
