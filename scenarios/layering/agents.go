package layering

import "slices"

// agents are the rows of the agents and of the servers' systems.
var agents = []Row{
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
		Package: "agent/elemental", May: []string{"agent/broker", "agent/nodeaccount", "agent/sys"},
		Never: slices.Concat(files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
		Tests: []string{"guest/sandbox"},
	},
	{
		// The plugin that acts on the dummy's files: it writes disks and runs user data.
		Package: "guest/elementalsim", May: []string{"agent/elemental", "guest/cloudinit", "agent/job", "agent/plugin/...", "agent/sys"},
		Never: slices.Concat(files, []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}),
		Tests: []string{"guest/sandbox", "agent/sys/systest", "scenarios/images"},
	},
	{Package: "guest/node", May: []string{"agent/unit", "agent/kubeapi", "agent/nodeaccount"}, Never: files, Tests: []string{"controller/config", "controller/drain", "controller/kube"}},
	// The lock of a host's operations knows no agent, and no host.
	{Package: "agent/broker", Never: slices.Concat(sockets, files)},
	{Package: "agent/unit", Never: slices.Concat(sockets, files)}, // what starts agents
	// Which files of a host a family owns knows no family.
	{Package: "agent/ledger", May: []string{"agent/sys"}, Never: slices.Concat(sockets, files, kubernetes)},
	{Package: "agent/nodeaccount", Never: slices.Concat(sockets, files, kubernetes)}, // names alone
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
}
