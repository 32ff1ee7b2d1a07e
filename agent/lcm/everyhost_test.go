package lcm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// everyHost is a module that edits what every host of Debian has, as playbooks prepare hosts for
// Kubernetes. Its tasks fail where a file or directory is missing.
const everyHost = `- name: Edit what every host has
  hosts: all
  become: true
  tasks:
    - name: The facts are those of the release
      ansible.builtin.assert:
        that:
          - ansible_facts.distribution == 'Debian'
          - ansible_facts.distribution_major_version == '12'
          - ansible_facts.os_family == 'Debian'
          - ansible_facts.pkg_mgr == 'apt'
    - name: Switch swap off
      ansible.builtin.replace: {path: /etc/fstab, regexp: '^([^#].*\sswap\s.*)$', replace: '# \1'}
    - name: Add files to directories of drop-ins
      ansible.builtin.copy: {dest: "{{ item.file }}", content: "{{ item.text }}\n", mode: "{{ item.mode | default('0644') }}"}
      loop:
        - {file: /etc/modules-load.d/k8s.conf, text: br_netfilter}
        - {file: /etc/sysctl.d/k8s.conf, text: net.ipv4.ip_forward = 1}
        - {file: /etc/security/limits.d/99-all.conf, text: '* hard nofile 1024'}
        - {file: /etc/systemd/system/own.service, text: "[Service]\nExecStart=/bin/true"}
        - {file: /etc/sudoers.d/deploy, text: 'deploy ALL=(ALL) NOPASSWD:ALL', mode: '0440'}
        - {file: /etc/apt/apt.conf.d/99proxy, text: 'Acquire::http::Proxy "http://192.0.2.2:3128";'}
    - name: Set a variable for all
      ansible.builtin.lineinfile: {path: /etc/environment, line: http_proxy=http://192.0.2.2:3128}
    - name: Set an argument of the kernel
      ansible.builtin.replace: {path: /etc/default/grub, regexp: '^(GRUB_CMDLINE_LINUX=).*', replace: '\1"mitigations=off"'}
    - name: Create a user
      ansible.builtin.user: {name: deploy, groups: [sudo], append: true, shell: /bin/bash}
      when: values.users
    - name: Log in as the user
      ansible.builtin.command: {argv: [su, -, deploy, -c, id -gn; ls -A]}
      register: login
      failed_when: login.stdout_lines != ['deploy', '.bash_logout', '.bashrc', '.profile']
      when: values.users
`

// A module that edits files of a Debian host runs to its end on a server of the lab.
func TestModuleEditsWhatEveryHostHas(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	prerequisites.Need(t, "ansible-playbook")
	data, m, err := module.Build(fstest.MapFS{
		"main.yaml":     {Data: []byte(everyHost)},
		"metadata.yaml": {Data: []byte("name: every-host\nversion: 1.0.0\ndescription: Edits what every host has\nplaybook: main.yaml\nvaluesJsonSchema: schema.json\n")},
		"schema.json":   {Data: []byte(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"users":{"type":"boolean"}}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	system := sandbox.New(sandbox.Config{Base: debian.Base(debian.Bookworm), Store: &layer{}, Dir: filepath.Join(t.TempDir(), "root"), RequireLimits: true, Boot: sys.Boot{ID: "first"}})
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	host := system.Host()
	if err := host.Put(sys.File{Name: "/etc/lab-agent/token", Mode: 0o600, Content: []byte("t\n")}); err != nil {
		t.Fatal(err)
	}
	const dir = "/root/host-os-modules/every-host-1.0.0"
	web := files(t, map[string][]byte{"/m.tgz": data})
	users := os.Getuid() == 0 // only the superuser's servers have processes of other users
	f := newAPI()
	f.change(machineWith(
		downloader(map[string]string{"url": web.URL + "/m.tgz", "sha256": m.SHA256, "path": dir}),
		playItem(map[string]string{"path": dir, "sha256": m.SHA256, "playbook": m.Playbook, "values": fmt.Sprintf(`{"users": %v}`, users)}),
	))
	c := config(f, nil)
	c.System, c.Program = host, ""
	r := start(t, c)
	patience.Await(t, "the play has ended", func() bool {
		status, begun := f.statuses()["play"]
		return begun && !strings.HasPrefix(status, "-1 ")
	})
	check(t, f, map[string]string{"download": "0 after 1", "play": "0 after 1"})
	if s := f.machine().Status.StateItemStatuses["play"]; s.ExitCode != 0 {
		t.Error(s.Message)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	b, err := host.ReadFile("/etc/default/grub")
	if err != nil || !slices.Contains(strings.Split(string(b), "\n"), `GRUB_CMDLINE_LINUX="mitigations=off"`) {
		t.Errorf("/etc/default/grub = %q, %v", b, err)
	}
}
