package lcm

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/kubeapi"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// check compares results of items.
func check(t *testing.T, f *fakeAPI, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, f.statuses()); diff != "" {
		t.Errorf("exit codes and attempts (-want +got):\n%s", diff)
	}
}

// statement H23: items are executed once each, by phase and order, and the machine becomes
// Ready.
func TestItemsAreExecutedByPhaseAndOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		line := func(name string) string { return "echo " + name + " >>" + s.path("/order") }
		f.change(machineWith(
			script("reconfigure-1", line("reconfigure-1"), lcmv1.PhaseReconfigure),
			script("prepare-1", line("prepare-1"), lcmv1.PhasePrepare),
			script("deploy-1", line("deploy-1"), lcmv1.PhaseDeploy),
			script("prepare-2", line("prepare-2"), lcmv1.PhasePrepare),
			script("reconfigure-2", line("reconfigure-2"), lcmv1.PhaseReconfigure),
		))
		start(t, config(f, s))
		pass(0)
		if diff := cmp.Diff("prepare-1\nprepare-2\ndeploy-1\nreconfigure-1\nreconfigure-2\n", s.read(t, "/order")); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		m := f.machine()
		if state := item.ComputeState(m); state != lcmv1.StateReady {
			t.Errorf("state = %s, want Ready", state)
		}
		one := m.Status.StateItemStatuses["deploy-1"]
		if one.Hash != item.Hash(m.Spec.StateItems[2], "v0.3.0-300") || one.StartedAt == nil || one.FinishedAt == nil {
			t.Errorf("status of an item = %+v, want its hash and times", one)
		}
		writes := f.count("PATCH")
		pass(time.Hour)
		if n := len(s.commands()); n != 5 {
			t.Errorf("after an hour without a change %d items have run, want 5", n)
		}
		if n := f.count("PATCH"); n != writes {
			t.Errorf("%d writes without a change", n-writes)
		}
	})
}

// statement H23: while an item is executed, its status shows that.
func TestStatusShowsAnItemThatRuns(t *testing.T) {
	f, s := newAPI(), newServer(t)
	it := script("slow", "echo >"+s.path("/begun")+"; while [ ! -e "+s.path("/go")+" ]; do sleep 0.01; done", lcmv1.PhaseDeploy)
	f.change(machineWith(it))
	start(t, config(f, s))
	patience.Await(t, "the item begins", func() bool { return s.read(t, "/begun") != "" })
	m := f.machine()
	if got := item.ProgressOf(it, m.Status.StateItemStatuses, m.Status.AgentVersion); got != item.Running {
		t.Errorf("progress of %+v = %d, want Running", m.Status.StateItemStatuses["slow"], got)
	}
	s.write(t, "/go", "", 0o600)
	patience.Await(t, "the item ends", func() bool {
		m := f.machine()
		return item.ProgressOf(it, m.Status.StateItemStatuses, m.Status.AgentVersion) == item.Succeeded
	})
}

// statement H24: a failed item is retried with growing delays, and later items wait.
func TestFailedItemIsRetriedAndLaterItemsWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("first", "echo the reason; [ -e "+s.path("/repaired")+" ] || exit 2", lcmv1.PhaseReconfigure), script("second", ":", lcmv1.PhaseReconfigure)))
		start(t, config(f, s))
		pass(0)
		check(t, f, map[string]string{"first": "2 after 1"})
		if got := f.machine().Status.StateItemStatuses["first"].Message; got != "the reason" {
			t.Errorf("message = %q, want the script's", got)
		}
		pass(minRetry - time.Second)
		check(t, f, map[string]string{"first": "2 after 1"})
		pass(time.Second)
		check(t, f, map[string]string{"first": "2 after 2"})
		pass(2 * minRetry)
		check(t, f, map[string]string{"first": "2 after 3"})
		if state := item.ComputeState(f.machine()); state != lcmv1.StateReconfigure {
			t.Errorf("state = %s, want Reconfigure", state)
		}
		s.write(t, "/repaired", "", 0o600)
		pass(maxRetry)
		check(t, f, map[string]string{"first": "0 after 4", "second": "0 after 1"})
	})
}

// A clock that was set back does not delay an item until the time of its last attempt.
func TestRetryAfterTheClockWasSetBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		f.change(func(m *lcmv1.LCMMachine) {
			later := metav1.NewTime(time.Now().Add(5 * time.Hour))
			m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{"a": {Hash: item.Hash(m.Spec.StateItems[0], "v0.3.0-300"), ExitCode: 1, Attempt: 2, StartedAt: &later, FinishedAt: &later}}
		})
		start(t, config(f, s))
		pass(0)
		check(t, f, map[string]string{"a": "0 after 3"})
	})
}

// An agent that is ended with an item executes it again, as another attempt.
func TestItemOfAnAgentThatWasEnded(t *testing.T) {
	f, s := newAPI(), newServer(t)
	f.change(machineWith(script("a", "echo >>"+s.path("/begun")+"; [ -e "+s.path("/go")+" ] || sleep 1000", lcmv1.PhaseDeploy)))
	r := start(t, config(f, s))
	patience.Await(t, "the item begins", func() bool { return s.read(t, "/begun") == "\n" })
	if err := r.stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	check(t, f, map[string]string{"a": "-1 after 1"})
	s.write(t, "/go", "", 0o600)
	start(t, config(f, s))
	patience.Await(t, "the item ends", func() bool { return f.statuses()["a"] == "0 after 2" })
}

// statements H26 and H27: an item that has succeeded is not executed again by a new agent,
// and a change executes that item alone.
func TestOnlyChangedItemsRunAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy), script("b", ":", lcmv1.PhaseDeploy)))
		first := start(t, config(f, s))
		pass(0)
		if err := first.stop(); err != nil {
			t.Errorf("Run = %v, want nil when its context ends", err)
		}
		start(t, config(f, s))
		pass(time.Hour)
		if n := len(s.commands()); n != 2 {
			t.Errorf("%d items have run, want 2", n)
		}
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.StateItems[1].Params["script"] = "true" })
		pass(0) // the watch shows it at once
		if n := len(s.commands()); n != 3 {
			t.Errorf("%d items have run after a change of one, want 3", n)
		}
		check(t, f, map[string]string{"a": "0 after 1", "b": "0 after 1"})
	})
}

// statement H20: a Secret's new version is another hash, and the item runs again.
func TestNewVersionOfASecretRunsTheItemAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		it := script("a", ":", lcmv1.PhaseDeploy)
		it.Params["secretVersion"] = "7"
		f.change(machineWith(it))
		start(t, config(f, s))
		pass(0)
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.StateItems[0].Params["secretVersion"] = "8" })
		pass(0)
		if n := len(s.commands()); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
	})
}

// statements H29 and H30: the statuses of items that the machine no longer has are removed,
// also when the agent was away meanwhile; files stay.
func TestStatusesOfRemovedItemsAreRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", "echo >"+s.path("/made"), lcmv1.PhaseDeploy), script("b", ":", lcmv1.PhaseDeploy)))
		r := start(t, config(f, s))
		pass(0)
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.StateItems = m.Spec.StateItems[:1] })
		pass(0)
		check(t, f, map[string]string{"a": "0 after 1"})
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.StateItems = nil })
		check(t, f, map[string]string{"a": "0 after 1"})
		start(t, config(f, s))
		pass(0)
		check(t, f, map[string]string{})
		if s.read(t, "/made") == "" {
			t.Error("the file of a removed item is gone")
		}
	})
}

// statement H43: halted, the agent executes nothing and still follows SSH keys.
func TestHaltedAgentOnlySynchronizesKeys(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		s.write(t, keysFile, "# operators\nssh-ed25519 AAAA operator\n", 0o644)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		f.change(func(m *lcmv1.LCMMachine) {
			m.Spec.HaltAgent = true
			m.Spec.SSHAuthorizedKeys = []string{"ssh-ed25519 BBBB one", "ssh-ed25519 CCCC two", "ssh-ed25519 DDDD bad\nssh-rsa EEEE x"}
		})
		r := start(t, config(f, s))
		checkKeys := func(want string) {
			t.Helper()
			pass(0)
			if diff := cmp.Diff(want, s.read(t, keysFile)); diff != "" {
				t.Errorf("authorized_keys (-want +got):\n%s", diff)
			}
		}
		checkKeys("# operators\nssh-ed25519 AAAA operator\nssh-ed25519 BBBB one\nssh-ed25519 CCCC two\n")
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.SSHAuthorizedKeys = m.Spec.SSHAuthorizedKeys[1:2] })
		checkKeys("# operators\nssh-ed25519 AAAA operator\nssh-ed25519 CCCC two\n")
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.SSHAuthorizedKeys = nil })
		start(t, config(f, s)) // it knows which key is not the operator's
		checkKeys("# operators\nssh-ed25519 AAAA operator\n")
		if len(s.commands()) > 0 || f.count("PATCH") > 0 {
			t.Errorf("a halted agent has run %v and written %d times", s.commands(), f.count("PATCH"))
		}
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.HaltAgent = false })
		pass(0)
		check(t, f, map[string]string{"a": "0 after 1"})
	})
}

func TestReportOfTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		s.write(t, "/etc/apt/sources.list", "# comment\ndeb [signed-by=/a b] http://deb.example stable main contrib\ndeb-src http://deb.example stable main\n", 0o644)
		s.write(t, "/etc/apt/sources.list.d/more.sources", "Types: deb deb-src\nURIs: http://x.example\nSuites: a b\nComponents: main\n\nTypes: deb\nEnabled: no\nURIs: http://off.example\nSuites: a\n", 0o644)
		s.write(t, "/etc/timezone", "Etc/UTC\n", 0o644)
		s.write(t, "/proc/sys/kernel/osrelease", "6.1.0\n", 0o444)
		start(t, config(f, s)) // the object is not there
		pass(0)
		m := f.machine()
		if m.Spec.Type != lcmv1.MachineUnassigned {
			t.Errorf("type of the created object = %q, want unassigned", m.Spec.Type)
		}
		want := []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "192.0.2.7"}, {Type: lcmv1.AddressHostname, Address: "worker-0"}}
		if diff := cmp.Diff(want, m.Status.Addresses); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
		h := m.Status.HostInfo
		repositories := []lcmv1.Repository{
			{URI: "http://deb.example", Release: "stable", Section: []string{"main", "contrib"}},
			{URI: "http://x.example", Release: "a", Section: []string{"main"}}, {URI: "http://x.example", Release: "b", Section: []string{"main"}},
		}
		if diff := cmp.Diff(repositories, h.Repositories); diff != "" {
			t.Errorf("repositories (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(&lcmv1.OSInfo{Type: "linux", Family: "debian", Platform: "debian", Name: "Debian GNU/Linux", Version: "12 (bookworm)", Major: 12, Codename: "bookworm"}, h.OS); diff != "" {
			t.Errorf("os (-want +got):\n%s", diff)
		}
		hw := &lcmv1.Hardware{CPU: lcmv1.HardwareCPU{Count: 8, Threads: 8}, Memory: lcmv1.HardwareMemory{Total: 1 << 30}}
		hw.Storage.Disks = []lcmv1.Disk{{Name: "/dev/sda", Size: 1 << 40, Type: "SSD", SerialNumber: "S1"}}
		hw.Network.NICs = []lcmv1.NIC{{Name: "eth0", MACAddress: "0c:00:00:00:00:01"}, {Name: "eth1", MACAddress: "0c:00:00:00:00:ff", PCIAddress: "0000:01:00.0"}}
		if diff := cmp.Diff(hw, h.Hardware); diff != "" {
			t.Errorf("hardware (-want +got):\n%s", diff)
		}
		if h.KernelVersion != "6.1.0" || h.Timezone != "Etc/UTC" || h.Architecture != "x86_64" || !h.BootTime.Time.Equal(s.boot.Time) {
			t.Errorf("hostInfo = %+v", h)
		}
		if diff := cmp.Diff([]string{"debian/bookworm"}, m.Status.Distribution); diff != "" || m.Status.AgentVersion != "v0.3.0-300" {
			t.Errorf("agentVersion %q, Distribution (-want +got):\n%s", m.Status.AgentVersion, diff)
		}
	})
}

// An inventory takes seconds on a large server: it is made again after an item, which may have
// changed the server, and not at each look.
func TestHostInfoIsReadAgainAfterAnItem(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith())
		c := config(f, s)
		read, inventories := c.Hardware, 0
		c.Hardware = func(ctx context.Context) (job.Hardware, error) {
			inventories++
			return read(ctx)
		}
		start(t, c)
		pass(10 * time.Minute)
		if inventories != 1 {
			t.Errorf("%d inventories in ten minutes without an item, want 1", inventories)
		}
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		pass(10 * time.Minute)
		if inventories != 2 {
			t.Errorf("%d inventories with one item, want 2", inventories)
		}
	})
}

// statement H36: without an InternalIP a machine is Uninitialized; the address is that of
// spec.interface or in spec.cidr.
func TestInternalIPFollowsInterfaceAndCIDR(t *testing.T) {
	for _, tt := range []struct {
		nic, cidr string
		want      string // "": none
	}{
		{"", "", "192.0.2.7"},
		{"eth1", "", "198.51.100.9"},
		{"", "198.51.100.0/24", "198.51.100.9"},
		{"", "2001:db8::/32", "2001:db8::7"},
		{"eth0", "198.51.100.0/24", ""},
		{"eth7", "", ""},
	} {
		inBubble(t, func(t *testing.T) {
			f, s := newAPI(), newServer(t)
			f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
			f.change(func(m *lcmv1.LCMMachine) { m.Spec.Interface, m.Spec.CIDR = tt.nic, tt.cidr })
			start(t, config(f, s))
			pass(0)
			got, m := "", f.machine()
			for _, a := range m.Status.Addresses {
				if a.Type == lcmv1.AddressInternalIP {
					got = a.Address
				}
			}
			if got != tt.want {
				t.Errorf("interface %q, cidr %q: InternalIP = %q, want %q", tt.nic, tt.cidr, got, tt.want)
			}
			if state := item.ComputeState(m); (state == lcmv1.StateUninitialized) != (tt.want == "") {
				t.Errorf("interface %q, cidr %q: state = %s", tt.nic, tt.cidr, state)
			}
		})
	}
}

// statement H36: a server whose kernel cannot be asked has the addresses that netplan's
// files configure.
func TestInternalIPOfNetplan(t *testing.T) {
	for _, tt := range []struct{ nic, want string }{{"", "192.0.2.20"}, {"lcm0", "192.0.2.21"}, {"bond0", "198.51.100.1"}} {
		inBubble(t, func(t *testing.T) {
			f, s := newAPI(), newServer(t)
			s.write(t, "/etc/netplan/10-damaged.yaml", "network: [", 0o600)
			s.write(t, "/etc/netplan/50-cloud-init.yaml", `network:
  version: 2
  ethernets:
    a: {match: {macaddress: "0c:00:00:00:00:01"}, set-name: eth0, addresses: ["2001:db8::20/64", 192.0.2.20/24]}
    b: {set-name: lcm0, addresses: [192.0.2.21/24]}
    c: {dhcp4: true}
  bonds:
    bond0: {interfaces: [c], addresses: [198.51.100.1/24]}
`, 0o600)
			f.change(machineWith())
			f.change(func(m *lcmv1.LCMMachine) { m.Spec.Interface = tt.nic })
			c := config(f, s)
			c.Hardware = hardware("0c:00:00:00:00:01", "")
			with := c.Hardware
			c.Hardware = func(ctx context.Context) (job.Hardware, error) { // without addresses, as in the lab
				h, err := with(ctx)
				for i := range h.NICs {
					h.NICs[i].IP = ""
				}
				return h, err
			}
			start(t, c)
			pass(0)
			want := []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: tt.want}, {Type: lcmv1.AddressHostname, Address: "worker-0"}}
			if diff := cmp.Diff(want, f.machine().Status.Addresses); diff != "" {
				t.Errorf("interface %q: addresses (-want +got):\n%s", tt.nic, diff)
			}
		})
	}
}

// statement H23: a result that the API did not take is not lost, even with the agent, and
// the item is not executed again.
func TestResultOutlivesAnAPIThatIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		patches := 0
		f.refuse = func(r *http.Request) int {
			if r.Method == http.MethodPatch {
				patches++
			}
			if patches > 2 { // the report and the begin of the item
				return http.StatusServiceUnavailable
			}
			return 0
		}
		r := start(t, config(f, s))
		pass(10 * time.Minute)
		check(t, f, map[string]string{"a": "-1 after 1"})
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.log.String(), "the API answers 503 Service Unavailable: the fake refuses") {
			t.Errorf("the log does not say why: %s", r.log)
		}
		f.refuse = nil
		start(t, config(f, s))
		pass(0)
		check(t, f, map[string]string{"a": "0 after 1"})
		if n := len(s.commands()); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
	})
}

func TestDeletedMachineIsNotCreatedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith())
		start(t, config(f, s))
		pass(0)
		f.remove()
		pass(time.Hour)
		if n := f.count("POST"); n != 0 {
			t.Errorf("%d objects were created", n)
		}
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		pass(0)
		check(t, f, map[string]string{"a": "0 after 1"})
	})
}

func TestInvalidConfiguration(t *testing.T) {
	err := Run(t.Context(), Config{Account: Account{Account: kubeapi.Account{Server: "http://a", CAFile: "ca"}, Namespace: "a/b"}})
	for _, want := range []string{`server "http://a": give the https URL`, `caFile "ca"`, `tokenFile ""`, `namespace "a/b"`, `machine ""`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run error = %v, want %s", err, want)
		}
	}
	var a Account
	if err := a.ReadAccount([]byte("server: https://a\ntokenfile: /x\n")); err == nil || !strings.Contains(err.Error(), "tokenfile") {
		t.Errorf("ReadAccount error = %v, want the unknown field", err)
	}
}
