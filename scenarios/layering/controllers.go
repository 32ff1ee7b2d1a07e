package layering

import "slices"

// controllers are the rows of the controllers, which work on real servers.
var controllers = []Row{
	{Package: "controller/api/...", May: []string{"controller/api/..."}, Only: []string{"k8s.io/apimachinery/..."}},
	// It has references of Kubernetes' and conditions of Cluster API's own kinds.
	{Package: "controller/api/elemental/v1beta1", Only: []string{"k8s.io/apimachinery/...", "k8s.io/api/...", "sigs.k8s.io/cluster-api/api/..."}},
	{Package: "controller/config"},
	{Package: "controller/aliases", Never: slices.Concat(sockets, files, kubernetes)},
	{
		Package: "controller/kube", May: []string{"agent/nodeaccount", "controller/api/...", "controller/config", "controller/kube/etcdquiet"},
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
	{Package: "controller/reconcile/breaker"},
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
		Package: "controller/mosk/provider/machines", May: []string{"agent/nodeaccount", "controller/mosk/provider/unmanaged", "controller/reconcile/events", "controller/mosk/unapplied", "controller/reconcile/patch", "controller/reconcile/watch", "controller/api/...", "controller/mosk/lcm/item", "controller/mosk/provider/hostprofile", "controller/mosk/provider/network/layout", "controller/mosk/provider/release", "controller/mosk/provider/userdata", "controller/mosk/workload", "controller/reconcile/queue"},
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
	{Package: "controller/mosk/workload", May: []string{"agent/nodeaccount", "controller/api/...", "controller/reconcile/breaker"}},
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
	{Package: "controller/elemental", May: []string{"agent/nodeaccount", "controller/reconcile/breaker", "controller/reconcile/patch", "controller/api/...", "controller/elemental/...", "controller/reconcile/queue", "controller/reconcile/readafterwrite"}},
	// What agents ask for is answered from objects: no controller is behind it.
	{Package: "controller/elemental/registration", May: []string{"controller/api/...", "controller/elemental/condition", "controller/elemental/object", "controller/elemental/token", "controller/reconcile/readafterwrite"}},
	{Package: "controller/elemental/condition", Never: slices.Concat(sockets, files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."})},
	{Package: "controller/elemental/object"},
	{Package: "controller/elemental/token", Never: slices.Concat(sockets, files, kubernetes)},
}
