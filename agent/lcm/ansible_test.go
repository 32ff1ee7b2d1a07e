package lcm

import (
	"archive/tar"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/smalldisk"
)

func playItem(params map[string]string) lcmv1.LCMStateItem {
	return lcmv1.LCMStateItem{Runner: lcmv1.RunnerAnsible, Name: "play", Version: "v1", Phase: lcmv1.PhaseReconfigure, Params: params}
}

// playbook writes a playbook to the server and returns the params of its item.
func playbook(t *testing.T, s *server, tasks string) map[string]string {
	t.Helper()
	s.write(t, "/opt/play/main.yaml", "- hosts: all\n  become: true\n  gather_facts: false\n"+tasks, 0o600)
	return map[string]string{"path": "/opt/play", "playbook": "main.yaml", "ansible": prerequisites.Need(t, "ansible-playbook")}
}

// program writes a program in the place of ansible-playbook.
func program(t *testing.T, s *server, text string) map[string]string {
	t.Helper()
	s.write(t, "/opt/play/main.yaml", "[]\n", 0o600)
	s.write(t, "/usr/bin/ansible-playbook", "#!/bin/bash\n"+text, 0o755)
	return map[string]string{"path": "/opt/play", "playbook": "main.yaml", "ansible": s.path("/usr/bin/ansible-playbook")}
}

// nothingLeft fails the test if files of a play are there still.
func nothingLeft(t *testing.T, s *server) {
	t.Helper()
	if _, err := s.ReadDir(runDir + "/item"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files of the play are left: %v", err)
	}
}

// statements H23 and H19: a module is downloaded and its playbook run for real, with the
// values of the Secret over the others. No value of the Secret is in an object, a log, a
// command line, or a file after the play.
func TestAnsibleRunsAModuleWithASecret(t *testing.T) {
	ansible := prerequisites.Need(t, "ansible-playbook")
	f, s := newAPI(), newServer(t)
	data, m := fixture(t, "file-template")
	web := files(t, map[string][]byte{"/m.tgz": data})
	const password = `pass{{ 7 * 7 }}word "quoted" \back`
	f.secret("s", map[string]string{"password": password, "mode": "0600"})
	const dir = "/root/host-os-modules/file-template-1.0.0"
	values, err := json.Marshal(map[string]any{"path": "/etc/app.conf", "settings": map[string]any{"a": 1.50, "b": true}, "mode": "0644", "root": s.dir, "reboot_reason": "the settings have changed"})
	if err != nil {
		t.Fatal(err)
	}
	f.change(machineWith(
		downloader(map[string]string{"url": web.URL + "/m.tgz", "sha256": m.SHA256, "path": dir}),
		playItem(map[string]string{"path": dir, "sha256": m.SHA256, "playbook": m.Playbook, "ansible": ansible, "values": string(values), "secretRef": "default/s", "secretVersion": "11"}),
	))
	c := config(f, s)
	c.KeepUser = true
	r := start(t, c)
	patience.Await(t, "the play ends", func() bool { return f.machine().Status.StateItemStatuses["play"].FinishedAt != nil })
	check(t, f, map[string]string{"download": "0 after 1", "play": "0 after 1"})
	got := s.read(t, "/etc/app.conf")
	if !strings.Contains(got, password) || !strings.Contains(got, "b=True") {
		t.Errorf("the module has written %q, want the password as it is in the Secret", got)
	}
	if info, err := os.Stat(s.path("/etc/app.conf")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode = %v, %v, want the Secret's", info, err)
	}
	patience.Await(t, "the reboot request is reported", func() bool { return f.machine().Status.HostInfo.RebootRequired })
	var recap map[string]int
	if err := json.Unmarshal(f.machine().Status.StateItemStatuses["play"].Result.Raw, &recap); err != nil || recap["changed"] == 0 || recap["failed"] != 0 {
		t.Errorf("result = %v, %v, want the recap of the play", recap, err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	f.leaks(t, "{{ 7", "word \\\"quoted", base64.StdEncoding.EncodeToString([]byte(password)))
	if strings.Contains(r.log.String(), "{{ 7") {
		t.Errorf("the log has the password: %s", r.log)
	}
	for _, c := range s.commands() {
		if all := strings.Join(append(c.Args, c.Env...), " "); strings.Contains(all, "{{ 7") || strings.Contains(all, "app.conf") {
			t.Errorf("a command line or environment has values: %s", all)
		}
		for _, quiet := range []string{"ANSIBLE_NO_TARGET_SYSLOG=1", "ANSIBLE_LOG_PATH=/dev/null"} { // modules log their arguments
			if !slices.Contains(c.Env, quiet) {
				t.Errorf("the environment of %q has not %s", c.Args, quiet)
			}
		}
	}
	nothingLeft(t, s)
	for _, name := range tree(t, s.dir) {
		b, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(b), "{{ 7") && filepath.Base(name) != "app.conf" {
			t.Errorf("%s has the password", name)
		}
	}
}

// statement H24: the exit code 2 of ansible-playbook, with the task and its message, in
// which values of a Secret are hidden. A playbook that asks for input does not wait.
func TestAnsibleThatFailsAndWaitsForInput(t *testing.T) {
	f, s := newAPI(), newServer(t)
	f.secret("s", map[string]string{"password": "it's <secret> & \"more\"", "pin": "7"})
	p := playbook(t, s, `  vars_prompt:
    - name: answer
      prompt: Go on?
  tasks:
    - name: Wait for a key
      ansible.builtin.pause:
        prompt: Press return
    - name: Read a line
      ansible.builtin.command: cat
    - name: Fail with the values
      ansible.builtin.fail:
        msg: "answer '{{ answer }}', password {{ values.password }} {{ values.password | b64encode }}, pin {{ values.pin }}"
`)
	p["secretRef"] = "default/s"
	r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(p))
	want := "Fail with the values: answer 'None', password ****** ******, pin ******"
	if r.code != 2 || r.message != want {
		t.Errorf("a play that fails = %d, %q, want 2 and %q", r.code, r.message, want)
	}
	if diff := cmp.Diff(map[string]any{"ok": 2, "changed": 1, "unreachable": 0, "failed": 1, "skipped": 0, "rescued": 0, "ignored": 0}, r.data); diff != "" {
		t.Errorf("recap (-want +got):\n%s", diff)
	}
	nothingLeft(t, s)
}

// statement H20: while a real play runs, no process has a value of the Secret in its command
// line or environment, and the file of the values, in memory, is the agent's alone.
func TestProcessesOfAPlayShowNoSecret(t *testing.T) {
	f, s := newAPI(), newServer(t)
	const password = "correct-horse-battery"
	f.secret("s", map[string]string{"password": password})
	p := playbook(t, s, `  tasks:
    - name: List the processes and the files
      ansible.builtin.shell: |
        cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2> /dev/null | tr '\0' '\n' > `+s.path("/processes")+`
        find `+s.path(runDir)+` -type f -name values.yaml -printf '%m\n' > `+s.path("/modes")+`
        true
    - name: Use the value
      ansible.builtin.copy: {dest: `+s.path("/used")+`, content: "{{ values.password }}", mode: "0600"}
      no_log: true
`)
	p["secretRef"] = "default/s"
	if r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(p)); r.code != 0 || s.read(t, "/used") != password {
		t.Fatalf("the play = %+v", r)
	}
	list := s.read(t, "/processes")
	if !strings.Contains(list, "@"+s.path(runDir)) || !strings.Contains(list, "ANSIBLE_LOG_PATH=") {
		t.Fatalf("the list has neither the command line nor the environment of the play: %s", list)
	}
	if strings.Contains(list, password) {
		t.Error("a command line or an environment has the password")
	}
	if modes := s.read(t, "/modes"); modes != "600\n" || !strings.HasPrefix(runDir, "/run/") {
		t.Errorf("the files of values below %s have the modes %q, want one, 600", runDir, modes)
	}
	nothingLeft(t, s)
}

// The message of a play that its deadline ends names what sets it.
func TestWhatSetsTheDeadline(t *testing.T) {
	for _, tt := range []struct {
		name, timeout string
		want          string
	}{
		{"host-os-a-sysctl-1.0.0-reconfigure", "30m", "annotation metalab.dev/item-timeout of its HostOSConfiguration: 30m"},
		{"host-os-a-sysctl-1.0.0-reconfigure", "", "the default; set another by the annotation metalab.dev/item-timeout of its HostOSConfiguration"},
		{"kubelet", "30m", "timeout: 30m"},
		{"kubelet", "", "the default; set another by the timeout"},
	} {
		it := playItem(map[string]string{})
		it.Name = tt.name
		if tt.timeout != "" {
			it.Params["timeout"] = tt.timeout
		}
		if got := setter(it); got != tt.want {
			t.Errorf("%s with %q: %q, want %q", tt.name, tt.timeout, got, tt.want)
		}
	}
}

// A play that its deadline ends leaves no process and no file.
func TestAnsibleEndsAtItsDeadline(t *testing.T) {
	f, s := newAPI(), newServer(t)
	f.secret("s", map[string]string{"password": "secretword"})
	p := playbook(t, s, `  tasks:
    - name: Loop
      ansible.builtin.shell: "echo $$ >`+s.path("/pid")+`; while :; do sleep 0.1; done"
`)
	p["secretRef"], p["timeout"] = "default/s", "4s"
	r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(p))
	if r.code != codeTimeout || !strings.HasPrefix(r.message, "ended after 4s, its deadline (timeout: 4s)") {
		t.Errorf("a play past its deadline = %+v", r)
	}
	if pid := strings.TrimSpace(s.read(t, "/pid")); pid != "" {
		if _, err := os.Stat("/proc/" + pid + "/cwd"); err == nil {
			t.Errorf("process %s of the play is left", pid)
		}
	}
	nothingLeft(t, s)
}

// A real play on a full root file system is a failed item whose message says so, and it
// succeeds when there is space again. A download fails likewise, and so does a play for
// whose values there is no space.
func TestPlayOnAFullRoot(t *testing.T) {
	prerequisites.Need(t, "small file system")
	prerequisites.Need(t, "ansible-playbook")
	smalldisk.Run(t, 8<<20, func(dir string) {
		f, s := newAPI(), newServerIn(t, dir)
		p := playbook(t, s, `  tasks:
    - name: Fill the root
      ansible.builtin.command: dd if=/dev/zero of=`+s.path("/filler")+` bs=64k
      register: filled
      failed_when: "'No space left on device' not in filled.stderr"
      when: not values.space
    - name: Write the file
      ansible.builtin.command: dd if=/dev/zero of=`+s.path("/etc/written")+` bs=64k count=16
`)
		data := archive(t, &tar.Header{Name: "a", Size: 1 << 20})
		web := files(t, map[string][]byte{"/a": data})
		download := downloader(map[string]string{"url": web.URL + "/a", "sha256": module.Sum(data), "path": moduleDir})
		p["values"] = `{"space": false}`
		r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(p))
		if r.code != 2 || !strings.HasPrefix(r.message, "Write the file: ") || !strings.Contains(r.message, "No space left on device") {
			t.Errorf("a play that fills the root = %+v", r)
		}
		nothingLeft(t, s)
		for _, it := range []lcmv1.LCMStateItem{playItem(p), download} {
			if r := executed(t, f, s, &lcmv1.LCMMachine{}, it); r.code == 0 || !strings.Contains(strings.ToLower(r.message), "no space left on device") {
				t.Errorf("%s on the full root = %+v", it.Name, r)
			}
		}
		nothingLeft(t, s)
		if err := os.Remove(s.path("/filler")); err != nil {
			t.Fatal(err)
		}
		p["values"] = `{"space": true}`
		for _, it := range []lcmv1.LCMStateItem{playItem(p), download} {
			if r := executed(t, f, s, &lcmv1.LCMMachine{}, it); r.code != 0 {
				t.Errorf("%s with space = %+v", it.Name, r)
			}
		}
	})
}

// The message of a play is its cause: neither an error that is ignored or rescued, nor the recap.
func TestMessageOfAPlayIsItsCause(t *testing.T) {
	const before = `  tasks:
    - name: Ignored
      ansible.builtin.fail: {msg: ignored}
      ignore_errors: true
    - block:
        - name: Rescued
          ansible.builtin.fail: {msg: rescued}
      rescue:
        - name: Mend
          ansible.builtin.debug: {msg: mended}
`
	ssh := filepath.Join(t.TempDir(), "ssh") // that cannot connect
	if err := os.WriteFile(ssh, []byte("#!/bin/sh\necho refused >&2\nexit 255\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		tasks string
		code  int
		want  string
	}{
		"loop": {`    - block:
        - name: Loop
          ansible.builtin.fail: {msg: "bad {{ item.name }}"}
          when: item.bad
          loop: [{name: a, bad: false}, {name: b, bad: true}, {name: c, bad: true}]
          loop_control: {label: "{{ item.name }}"}
      always:
        - name: Clean
          ansible.builtin.debug: {msg: "fatal: [localhost]: FAILED! => {}"}
`, 2, "Loop: item b: bad b (2 items have failed)"},
		"ignored after it": {`    - block:
        - name: Command
          ansible.builtin.command: sh -c 'echo the reason >&2; exit 3'
      always:
        - name: Clean
          ansible.builtin.fail: {msg: not clean}
          ignore_errors: true
`, 2, "Command: non-zero return code: the reason"},
		"no_log": {`    - name: Secret
      ansible.builtin.fail: {msg: "{{ item }}"}
      no_log: true
      loop: [sesame, open]
`, 2, "Secret: the output has been hidden due to the fact that 'no_log: true' was specified for this result"},
		"included file is missing": {`    - name: Include
      ansible.builtin.include_tasks: none.yaml
`, 2, "Include: Could not find or access '"},
		"unreachable": {`    - name: Elsewhere
      ansible.builtin.command: "true"
      vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1, ansible_ssh_executable: ` + ssh + `}
`, 4, "Elsewhere: Failed to connect to the host via ssh: refused"},
		"Ansible gives up": {`    - name: Include
      ansible.builtin.include_tasks: more.yaml
`, 4, "the module no_such.collection.thing is not on this server: "},
		"syntax": {"    - name: Nothing\n      when: [\n", 4, "ERROR! "},
	} {
		f, s := newAPI(), newServer(t)
		s.write(t, "/opt/play/more.yaml", "- name: More\n  no_such.collection.thing: {}\n", 0o600)
		r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(playbook(t, s, before+tt.tasks)))
		if r.code != tt.code || !strings.HasPrefix(r.message, tt.want) || strings.HasSuffix(tt.want, ")") && r.message != tt.want || strings.Contains(r.message, "sesame") {
			t.Errorf("%s: %d, %q; want %d and %q", name, r.code, r.message, tt.code, tt.want)
		}
		nothingLeft(t, s)
	}
}

// A module of a collection that is not there names the package that has collections; one of
// ansible.builtin is misspelt.
func TestModuleOfAMissingCollection(t *testing.T) {
	const tasks = "  tasks:\n    - name: Load it\n      "
	for name, want := range map[string]string{
		"no_such.collection.modprobe": "the module no_such.collection.modprobe is not on this server: it is in the collection no_such.collection, which the package ansible has and ansible-core has not, or its name is misspelt\nERROR! ",
		"no_such_module":              "the module no_such_module is not on this server: it is in a collection, which the package ansible has and ansible-core has not, or its name is misspelt\nERROR! ",
		"ansible.builtin.no_such":     "ERROR! ",
	} {
		f, s := newAPI(), newServer(t)
		r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(playbook(t, s, tasks+name+": {}\n")))
		if r.code != 4 || !strings.HasPrefix(r.message, want) || !strings.Contains(r.message, "couldn't resolve module/action '"+name+"'") {
			t.Errorf("a play with %s = %d, %q, want 4 and %q", name, r.code, r.message, want)
		}
	}
}

func TestAnsibleIsMissing(t *testing.T) {
	f, s := newAPI(), newServer(t)
	s.write(t, "/opt/play/main.yaml", "[]\n", 0o600)
	r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(map[string]string{"path": "/opt/play", "playbook": "main.yaml", "ansible": "/opt/none/ansible-playbook"}))
	if r.code != sys.CodeNotFound || r.message != "/opt/none/ansible-playbook is not on this server: install the package ansible" {
		t.Errorf("without ansible-playbook = %+v", r)
	}
	nothingLeft(t, s)
}

// The variables of a play, and who may read them.
func TestValuesFile(t *testing.T) {
	f, s := newAPI(), newServer(t)
	f.secret("s", map[string]string{"password": "{% raw %}", "level": "3", "more": "1.50"})
	p := program(t, s, `for a in "$@"; do case $a in @*) stat -c %a "${a#@}"; stat -c %a "$(dirname "${a#@}")"; cat "${a#@}";; esac; done; exit 9`)
	s.write(t, "/opt/play/metadata.yaml", "name: a\nversion: 1.0.0\nplaybook: main.yaml\nvaluesJsonSchema: schema.json\n", 0o600)
	s.write(t, "/opt/play/schema.json", `{"type":"object","properties":{"level":{"type":"integer"},"more":{"type":"number"}}}`, 0o600)
	p["values"], p["secretRef"] = `{"size": 1e3, "password": "visible", "level": 1}`, "default/s"
	a := newAgent(t, f, s)
	for _, tt := range []struct {
		keep bool
		want string
	}{
		// The values of the Secret are hidden in the message, those of its schema's types.
		{true, "600\n700\n" + `{"ansible_become": false, "values": {"level": ******, "more": ******, "password": !unsafe "******", "size": 1e3}}`},
		{false, "600\n700\n" + `{"values": {"level": ******, "more": ******, "password": !unsafe "******", "size": 1e3}}`},
	} {
		a.KeepUser = tt.keep
		if r := a.run(t.Context(), &lcmv1.LCMMachine{}, playItem(p)); r.code != 9 || r.message != tt.want {
			t.Errorf("the file of values = %d, %s, want %s", r.code, r.message, tt.want)
		}
	}
	s.write(t, "/usr/bin/ansible-playbook", "#!/bin/bash\nfor a in \"$@\"; do case $a in @*) cat \"${a#@}\" > "+s.path("/values")+";; esac; done\n", 0o755)
	if r := a.run(t.Context(), &lcmv1.LCMMachine{}, playItem(p)); r.code != 0 {
		t.Fatalf("a play that copies its variables = %+v", r)
	}
	if got, want := s.read(t, "/values"), `{"values": {"level": 3, "more": 1.50, "password": !unsafe "{% raw %}", "size": 1e3}}`+"\n"; got != want {
		t.Errorf("variables = %s, want %s", got, want)
	}
}

func TestAnsibleRefusesParams(t *testing.T) {
	f, s := newAPI(), newServer(t)
	f.secret("s", map[string]string{"password": "secretword"})
	s.write(t, "/opt/other.sha256", strings.Repeat("1", 64)+"\n", 0o600)
	for _, tt := range []struct {
		name, value string
		want        string
	}{
		{"path", "opt/play", "absolute path of the playbook's directory"},
		{"path", "/opt/other", "hashes are not the same: got '" + strings.Repeat("1", 64)},
		{"path", "/opt/never", "its item of the runner downloader comes first"},
		{"playbook", "../main.yaml", "path of a file below /opt/play"},
		{"playbook", "", "path of a file below /opt/play"},
		{"ansible", "ansible-playbook", "absolute path of ansible-playbook"},
		{"values", `{"a": secretword`, "values: give a JSON object"},
		{"values", `[1]`, "values: give a JSON object"},
		{"secretRef", "s", "NAMESPACE/NAME"},
		{"secretRef", "default/gone", "Secret default/gone: the API answers 404"},
		{"secretVersion", "99999", "the item needs 99999: the API server is behind"},
	} {
		p := program(t, s, "exit 0")
		s.write(t, "/opt/play.sha256", strings.Repeat("2", 64)+"\n", 0o600)
		p["sha256"], p["secretRef"] = strings.Repeat("2", 64), "default/s"
		if r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(p)); r.code != 0 {
			t.Fatalf("the params before the change = %+v", r)
		}
		p[tt.name] = tt.value
		if r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(p)); r.code != 1 || !strings.Contains(r.message, tt.want) || strings.Contains(r.message, "secretword") {
			t.Errorf("%s %q: ansible = %+v, want %q", tt.name, tt.value, r, tt.want)
		}
		nothingLeft(t, s)
	}
}

func TestRedact(t *testing.T) {
	hidden := map[string]string{"a": "line one\nline two", "b": "7", "c": "secret", "d": "secretive", "e": "", "f": "a/b+c d"}
	for text, want := range map[string]string{
		"line two, line one":        "******, ******",
		"7 and 17, (7), a7":         "****** and 17, (******), a7",
		"secretive secret secrets":  "****** ****** ******s",
		"a%2Fb%2Bc+d c2VjcmV0 a/b+": "****** ****** a/b+",
		"nothing":                   "nothing",
	} {
		if got := newRedactor(hidden).redact(text); got != want {
			t.Errorf("redact(%q) = %q, want %q", text, got, want)
		}
	}
}
