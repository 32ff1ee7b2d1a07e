package lcm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

// kindOfModule is a run of a module in testdata/modules, which has one of each kind that operators
// apply to hosts. They use what such playbooks use of Ansible, and know of no lab.
type kindOfModule struct {
	name   string
	values map[string]any
	units  map[string]string // that a package would have brought
	// files have a part of their content afterwards.
	files map[string]string
	// fails is a part of the message of a play that fails as it would on a host.
	fails string
}

var kindsOfModules = []kindOfModule{
	{
		name:   "kernel-parameter",
		values: map[string]any{"parameters": map[string]any{"vm.swappiness": "10", "kernel.panic": "5"}},
		files:  map[string]string{"/etc/sysctl.d/90-values.conf": "vm.swappiness=10\n", "/etc/modules-load.d/values.conf": "\n"},
	},
	{name: "kernel-parameter", values: map[string]any{"parameters": map[string]any{"vm.no_such": "1"}}, fails: "/proc/sys/vm/no_such: No such file or directory"},
	{
		name: "package", values: map[string]any{"present": []string{"bash", "dpkg"}, "absent": []string{"no-such-package"}},
		files: map[string]string{"/etc/apt/apt.conf.d/90-values": "APT::Install-Recommends"},
	},
	{name: "package", values: map[string]any{"present": []string{"no-such-package"}}, fails: "Install packages: No package matching 'no-such-package' is available"},
	{
		name: "limits", values: map[string]any{"soft": 4096, "hard": 65536},
		files: map[string]string{
			"/etc/security/limits.d/90-values.conf": "*\thard\tnofile\t65536\n", "/etc/systemd/system.conf.d/90-values.conf": "DefaultLimitNOFILE=4096:65536\n",
			"/etc/pam.d/common-session-noninteractive": "session required pam_limits.so\n",
		},
	},
	{name: "irqbalance", values: map[string]any{"settings": map[string]any{"IRQBALANCE_ONESHOT": "no"}}, fails: "Could not find the requested service irqbalance"},
	{
		name: "irqbalance", values: map[string]any{"settings": map[string]any{"IRQBALANCE_ONESHOT": "yes"}},
		units: map[string]string{"irqbalance": "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"},
		files: map[string]string{"/etc/default/irqbalance": "IRQBALANCE_ONESHOT=yes\n"},
	},
	{
		name: "time", values: map[string]any{"timezone": "Europe/Paris", "servers": []string{"192.0.2.1", "192.0.2.2"}},
		files: map[string]string{"/etc/timezone": "Europe/Paris\n", "/etc/chrony/sources.d/values.sources": "server 192.0.2.2 iburst\n"},
	},
	{name: "time", values: map[string]any{"timezone": "Europe/Atlantis", "servers": []string{}}, fails: "Europe/Atlantis"},
	{
		name: "audit", values: map[string]any{"paths": []string{"/etc/passwd"}, "megabytes": 20},
		files: map[string]string{
			"/etc/audit/rules.d/50-values.rules": "-w /etc/passwd -p wa -k values\n", "/etc/audit/auditd.conf": "max_log_file = 20\n", "/etc/cron.d/audit-report": "@weekly root /usr/sbin/aureport --summary",
		},
	},
	{
		name: "hardening", values: map[string]any{"days": 90},
		files: map[string]string{
			"/etc/ssh/sshd_config": "PermitRootLogin no\n", "/etc/login.defs": "PASS_MAX_DAYS 90\n", "/etc/fstab": "tmpfs /dev/shm tmpfs nodev,nosuid,noexec 0 0\n",
			"/etc/modprobe.d/hardening.conf": "install udf /bin/false\n",
		},
	},
	{
		name: "boot-loader", values: map[string]any{"arguments": "mitigations=off nosmt"},
		files: map[string]string{"/etc/default/grub": `GRUB_CMDLINE_LINUX="mitigations=off nosmt"`, "/boot/grub/grub.cfg": " ro mitigations=off nosmt ", rebootRequestFile: "the kernel has other arguments\n"},
	},
}

// Modules of each kind change a server of the lab as they change a host, and nothing the second time;
// what they cannot do fails for the reason that it has on a host.
func TestKindsOfModulesInAServerOfTheLab(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	prerequisites.Need(t, "ansible-playbook")
	prerequisites.Need(t, "collections of Ansible")
	prerequisites.Need(t, "python3-apt")
	system := sandbox.New(sandbox.Config{
		Base: debian.Base(debian.Bookworm), Store: &layer{}, Dir: filepath.Join(t.TempDir(), "root"), RequireLimits: true, Boot: sys.Boot{ID: "first", Time: time.Now()}, Now: time.Now,
	})
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := system.Boot(); err != nil {
		t.Fatal(err)
	}
	host := system.Host()
	f := newAPI()
	c := config(f, nil)
	c.System = host
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	a := &agent{Config: c, boot: sys.Boot{ID: "first"}, api: newClient(c.Account, host, f)}
	var kinds []string
	entries, err := os.ReadDir("testdata/modules")
	for _, e := range entries {
		kinds = append(kinds, e.Name())
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(kindsOfModules, func(tt kindOfModule) bool { return tt.name == kind }) {
			t.Errorf("the module %s runs nowhere", kind)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	drawn := sample.Share(t, "kinds of modules", kinds)
	for _, tt := range kindsOfModules {
		if !slices.Contains(drawn, tt.name) {
			continue
		}
		archive, m, err := module.Build(os.DirFS(filepath.Join("testdata/modules", tt.name)))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		values := tt.values
		if tt.name == "hardening" && os.Getuid() == 0 { // only the superuser's servers have other users
			values["account"] = "service"
		}
		if _, err := os.Stat("/proc/modules"); tt.name == "kernel-parameter" && tt.fails == "" && err == nil { // the kernel of this machine has them
			values["modules"] = []string{"br_netfilter"}
		}
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		var plain map[string]any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(plain); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		dir := "/root/host-os-modules/" + tt.name + "-1.0.0"
		if err := a.unpack(m.Archive, dir, module.Sum(archive)); err != nil {
			t.Fatal(err)
		}
		for name, unit := range tt.units {
			if err := host.Put(sys.File{Name: "/etc/systemd/system/" + name + ".service", Mode: 0o644, Content: []byte(unit)}); err != nil {
				t.Fatal(err)
			}
		}
		it := playItem(map[string]string{"path": dir, "sha256": m.SHA256, "playbook": m.Playbook, "values": string(text)})
		for _, first := range []bool{true, false} {
			r := a.run(t.Context(), &lcmv1.LCMMachine{}, it)
			if tt.fails != "" {
				if r.code != 2 || !strings.Contains(r.message, tt.fails) {
					t.Errorf("%s = %d, %q, want 2 and %q", tt.name, r.code, r.message, tt.fails)
				}
				break
			}
			if changed, _ := r.data["changed"].(int); r.code != 0 || (changed > 0) != first {
				log, err := host.ReadFile(LogFile(it.Name))
				t.Errorf("%s = %d, %q, %v; want changes: %v\n%s%v", tt.name, r.code, r.message, r.data, first, log, err)
			}
		}
		for name, want := range tt.files {
			if b, err := host.ReadFile(name); err != nil || !strings.Contains(string(b), want) {
				t.Errorf("%s: %s is %q, %v; want it to contain %q", tt.name, name, b, err, want)
			}
		}
	}
}
