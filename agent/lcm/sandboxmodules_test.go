package lcm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// modulesPlay has modules of Ansible that system playbooks consist of. What a server of the lab refuses
// fails for the reason that the task names.
const modulesPlay = `- hosts: all
  gather_facts: false
  tasks:
    - cron: {name: check, minute: "5", hour: "2", job: /usr/bin/true}
    - cron: {name: other, cron_file: own, user: root, special_time: daily, job: /usr/bin/true}
    - apt: {name: [bash, dpkg], state: present, update_cache: true, cache_valid_time: 3600}
    - apt: {name: no-such-package, state: absent}
    - apt: {name: no-such-package, state: present}
      register: apt
      failed_when: "'No package matching' not in apt.msg"
    - ansible.posix.sysctl: {name: vm.swappiness, value: "10", sysctl_set: true}
    - ansible.posix.mount: {path: /srv/data, src: LABEL=data, fstype: ext4, state: present}
    - ansible.posix.mount: {path: /srv/data, src: LABEL=data, fstype: ext4, state: mounted}
      register: mount
      failed_when: "'mounts no file systems' not in mount.msg"
    - stat: {path: /proc/modules}
      register: modules
    - community.general.modprobe: {name: br_netfilter}
      when: modules.stat.exists
    - hostname: {name: web-1}
    - user: {name: app, shell: /bin/bash}
      when: superuser | bool
    - service: {name: cron, state: started, enabled: true}
    - community.general.timezone: {name: Europe/Paris}
    - lineinfile: {path: /etc/default/grub, regexp: ^GRUB_CMDLINE_LINUX=, line: GRUB_CMDLINE_LINUX="nomodeset"}
      notify: grub
  handlers:
    - name: grub
      command: update-grub
`

var runRecap = regexp.MustCompile(`changed=(\d+) +unreachable=0 +failed=0`)

// Modules of Ansible change a server of the lab as they change a host: a second run changes nothing.
func TestModulesOfAnsibleInAServerOfTheLab(t *testing.T) {
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
	host := system.Host()
	if err := host.Put(sys.File{Name: "/root/play.yaml", Mode: 0o600, Content: []byte(modulesPlay)}); err != nil {
		t.Fatal(err)
	}
	if err := system.Boot(); err != nil {
		t.Fatal(err)
	}
	for _, changes := range []bool{true, false} {
		var out strings.Builder
		args := []string{"env", "ANSIBLE_PIPELINING=true", "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", fmt.Sprintf("superuser=%v", os.Getuid() == 0), "/root/play.yaml"}
		code, err := host.Exec(patience.Within(t, 2*time.Minute), sys.Command{Args: args, Stdout: &out, Stderr: &out})
		m := runRecap.FindStringSubmatch(out.String())
		if code != 0 || err != nil || m == nil || (m[1] != "0") != changes {
			t.Fatalf("code %d, %v, want changes: %v\n%s", code, err, changes, out.String())
		}
	}
	for name, want := range map[string]string{
		"/var/spool/cron/crontabs/root": "#Ansible: check\n5 2 * * * /usr/bin/true\n",
		"/etc/cron.d/own":               "#Ansible: other\n@daily root /usr/bin/true\n",
		"/etc/fstab":                    "LABEL=data /srv/data ext4 defaults 0 0\n",
		"/etc/sysctl.conf":              "vm.swappiness=10\n",
		"/etc/hostname":                 "web-1\n",
		"/etc/timezone":                 "Europe/Paris\n",
		"/boot/grub/grub.cfg":           " ro nomodeset quiet\n",
	} {
		if b, err := host.ReadFile(name); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s is %q, %v; want it to contain %q", name, b, err, want)
		}
	}
}
