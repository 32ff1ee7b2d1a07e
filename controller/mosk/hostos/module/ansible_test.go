package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// built returns a module of fixtures/modules, unpacked from its archive to a directory.
func built(t *testing.T, name string) (*Module, string) {
	t.Helper()
	files, err := fs.Sub(fixtures.Modules, "modules/"+name)
	if err != nil {
		t.Fatal(err)
	}
	archive, m, err := Build(files)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = LoadExpected(archive, Expected{name, m.Version, m.SHA256}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), name)
	if err := m.Archive.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	return m, dir
}

// play runs the playbook of a module, as the agent does, and returns its exit code and
// output.
func play(t *testing.T, m *Module, dir string, values map[string]any) (int, string) {
	t.Helper()
	ansible := prerequisites.Need(t, "ansible-playbook")
	if err := m.Validate(values); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{"values": values})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	// A scratch root belongs to whoever runs the test.
	command := []string{ansible, "--connection", "local", "--inventory", "localhost,", "--extra-vars", "@" + file, "--extra-vars", "ansible_become=false", m.Playbook}
	if os.Geteuid() != 0 { // dpkg demands to be root
		command = append([]string{"unshare", "--map-root-user", "--"}, command...)
	}
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "ANSIBLE_NOCOLOR=1", "ANSIBLE_LOCAL_TEMP="+t.TempDir(), "ANSIBLE_REMOTE_TEMP="+t.TempDir(), "ANSIBLE_PYTHON_INTERPRETER=auto_silent")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), out.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out.String()
}

// The schemas of the modules in fixtures, on values that they accept and refuse.
func TestValuesOfTheModulesInFixtures(t *testing.T) {
	for _, tt := range []struct {
		module, values string
		want           string // "": accepted
	}{
		{"sysctl", `{"filename":"90-a","options":{"vm.swappiness":10,"net/ipv4/ip_forward":"1"}}`, ""},
		{"sysctl", `{"filename":"../a","options":{"vm.swappiness":10}}`, `values.filename: must match`},
		{"sysctl", `{"filename":"a","options":{"vm.swappiness":"1\nkernel.sysrq = 1"}}`, `values.options.vm.swappiness: must match`},
		{"sysctl", `{"filename":"a","options":{}}`, `values.options: must have at least 1 fields`},
		{"packages", `{"files":["metalab-hello_1.0.0_all.deb"]}`, ""},
		{"packages", `{}`, `values: missing required "files"`},
		{"packages", `{"files":["../a.deb"]}`, `values.files.0: must match`},
		{"packages", `{"install":["--force"]}`, `values.install.0: must match`},
		{"file-template", `{"path":"/etc/a","settings":{"a":1,"b":true}}`, ""},
		{"file-template", `{"path":"/etc/a","settings":{"a":1},"password":"short"}`, `values.password: must have at least 8 characters`},
		{"failing", `{}`, ""},
		{"failing", `{"after":"/a"}`, `values: unknown "after"`},
	} {
		m, _ := built(t, tt.module)
		var values map[string]any
		if err := json.Unmarshal([]byte(tt.values), &values); err != nil {
			t.Fatal(err)
		}
		err := m.Validate(values)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Validate(%s) error = %v, want %q", tt.module, tt.values, err, tt.want)
		}
	}
}

func TestSysctlModuleWritesItsFile(t *testing.T) {
	m, dir := built(t, "sysctl")
	root := t.TempDir()
	values := map[string]any{"filename": "90-lab", "options": map[string]any{"vm.swappiness": 10, "kernel.panic": "30"}, "root": root}
	for _, want := range []string{"changed=2", "changed=0"} { // the second time nothing is to do
		if code, out := play(t, m, dir, values); code != 0 || !strings.Contains(out, want) {
			t.Errorf("ansible-playbook ended with %d, want 0 and %s:\n%s", code, want, out)
		}
	}
	got, err := os.ReadFile(filepath.Join(root, "etc/sysctl.d/90-lab.conf"))
	want := "# Written by the module sysctl: a change here is overwritten.\nkernel.panic = 30\nvm.swappiness = 10\n"
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("file error = %v (-want +got):\n%s", err, diff)
	}
}

func TestFileTemplateModuleAsksForAReboot(t *testing.T) {
	m, dir := built(t, "file-template")
	root := t.TempDir()
	values := map[string]any{
		"path": "/etc/app/app.conf", "mode": "0640", "settings": map[string]any{"level": 3, "name": "a b"}, "password": "hunter2-hunter2", "reboot_reason": "app.conf has changed", "root": root,
	}
	code, out := play(t, m, dir, values)
	if code != 0 || strings.Contains(out, "hunter2") {
		t.Errorf("ansible-playbook ended with %d, want 0 and no password:\n%s", code, out)
	}
	for name, want := range map[string]string{
		"etc/app/app.conf":         "# Written by the module file-template: a change here is overwritten.\nlevel=3\nname=a b\npassword=hunter2-hunter2\n",
		"run/day2/reboot-required": "app.conf has changed\n",
	} {
		if got, err := os.ReadFile(filepath.Join(root, name)); string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "etc/app/app.conf")); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode = %v, %v, want 0640", info, err)
	}
}

func TestPackagesModuleInstallsItsPackage(t *testing.T) {
	prerequisites.Need(t, "dpkg")
	m, dir := built(t, "packages")
	root := t.TempDir()
	for _, d := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out := play(t, m, dir, map[string]any{"files": []any{"metalab-hello_1.0.0_all.deb"}, "root": root}); code != 0 || !strings.Contains(out, "changed=1") {
		t.Errorf("ansible-playbook ended with %d, want 0 and changed=1:\n%s", code, out)
	}
	hello := filepath.Join(root, "usr/share/metalab-hello/hello")
	if got, err := os.ReadFile(hello); string(got) != "hello\n" {
		t.Errorf("file of the package = %q, %v", got, err)
	}
	if code, out := play(t, m, dir, map[string]any{"remove": []any{"metalab-hello"}, "root": root}); code != 0 || !strings.Contains(out, "changed=1") {
		t.Errorf("ansible-playbook ended with %d, want 0 and changed=1:\n%s", code, out)
	}
	if _, err := os.Stat(hello); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("file of the removed package: %v", err)
	}
}

func TestFailingModuleEndsWith2UntilItsFileExists(t *testing.T) {
	m, dir := built(t, "failing")
	until := filepath.Join(t.TempDir(), "now")
	values := map[string]any{"message": "not yet", "until": until}
	if code, out := play(t, m, dir, values); code != 2 || !strings.Contains(out, "not yet") {
		t.Errorf("ansible-playbook ended with %d, want 2:\n%s", code, out)
	}
	if err := os.WriteFile(until, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := play(t, m, dir, values); code != 0 {
		t.Errorf("ansible-playbook ended with %d, want 0:\n%s", code, out)
	}
}
