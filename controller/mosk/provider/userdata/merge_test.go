package userdata

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
)

// agentCommands are the commands that start the agent.
var agentCommands = []string{"systemctl daemon-reload", "systemctl enable --now lab-agent-lcm.service"}

// The user's cloud-config takes effect beside the agent's.
func TestCloudConfigOfTheUser(t *testing.T) {
	m := example()
	m.User = []byte(`#cloud-config
timezone: Asia/Tokyo
users: [default, {name: ann, groups: [sudo]}]
ssh_authorized_keys: [ssh-ed25519 B bob]
hostname: m-0
bootcmd: [echo boot]
runcmd:
- echo one
- [echo, two words]
write_files:
- {path: /etc/motd, content: hello, permissions: 0600}
`)
	root, r := apply(t, m)
	for name, want := range map[string]string{
		"etc/motd": "hello", "etc/timezone": "Asia/Tokyo\n", strings.TrimPrefix(tokenFile, "/"): "a.b.c\n", "root/.ssh/authorized_keys": "ssh-ed25519 A ann\nssh-ed25519 B bob\n",
	} {
		if f, _ := root.Get(name); string(f.Content) != want {
			t.Errorf("%s is %q, want %q", name, f.Content, want)
		}
	}
	if f, _ := root.Get("etc/motd"); f.Mode.Perm() != 0o600 {
		t.Errorf("/etc/motd has the mode %o, want 600", f.Mode.Perm())
	}
	if f, _ := root.Get("etc/passwd"); !strings.Contains(string(f.Content), "\nann:") {
		t.Errorf("the user is missing:\n%s", f.Content)
	}
	if want := append(slices.Clone(agentCommands), "echo one", "echo 'two words'"); !slices.Equal(r.Run, want) {
		t.Errorf("commands %q, want %q", r.Run, want)
	}
	if !slices.Equal(r.Boot, []string{"echo boot"}) || r.Hostname != "m-0" {
		t.Errorf("commands of each boot %q, host name %s", r.Boot, r.Hostname)
	}
	a, _ := Render(m)
	b, _ := Render(m)
	if !bytes.Equal(a, b) {
		t.Error("two documents of one machine differ")
	}
}

// A script is a part of its own, which cloud-init runs once.
func TestScriptOfTheUser(t *testing.T) {
	m := example()
	m.User = []byte("#!/bin/sh\necho \"a\" > /etc/script\n" + strings.Repeat("# long\n", 50))
	root, r := apply(t, m)
	if len(r.Scripts) != 2 || !slices.Equal(r.Run, agentCommands) {
		t.Fatalf("scripts %q, commands %q", r.Scripts, r.Run)
	}
	has := slices.ContainsFunc(r.Scripts, func(name string) bool { f, _ := root.Get(name); return string(f.Content) == string(m.User) })
	if !has {
		t.Errorf("the scripts are %q, without the user's", r.Scripts)
	}
	if f, _ := root.Get(strings.TrimPrefix(tokenFile, "/")); string(f.Content) != "a.b.c\n" {
		t.Errorf("token %q", f.Content)
	}
}

func TestUserDataThatCannotBeMerged(t *testing.T) {
	profile := &hostprofilev1.BareMetalHostProfileSpec{KernelParameters: &hostprofilev1.KernelParameters{Sysctl: map[string]hostprofilev1.SysctlValue{"kernel.panic": "1"}}}
	for _, tt := range []struct{ name, text, want string }{
		{"no format", "packages: [vim]\n", "begin with the line #cloud-config"},
		{"a template", "## template: jinja\n#cloud-config\n", "begin with the line #cloud-config"},
		{"another format that begins alike", "#cloud-config-archive\n[]\n", "begin with the line #cloud-config"},
		{"YAML with a mistake", "#cloud-config\nruncmd: [secretword\n", "yaml: line "},
		{"a list", "#cloud-config\n- runcmd\n", "line 2: give a mapping"},
		{"a key twice", "#cloud-config\nruncmd: [a]\nruncmd: [b]\n", "line 3: runcmd is there twice"},
		{"commands that are no list", "#cloud-config\nruncmd: secretword\n", "line 2: runcmd: give a list"},
		{"files that are no list", "#cloud-config\nwrite_files: {path: /etc/secretword}\n", "write_files: give a list"},
		{"another host name", "#cloud-config\nhostname: secretword\n", "line 2: hostname: the host name is that of the Machine, m-0"},
		{"the agent's configuration", "#cloud-config\nwrite_files:\n- {content: secretword, path: /etc/lab-agent/../lab-agent/lcm.yaml}\n", "write_files[0]: the agent, the host profile or the network writes /etc/lab-agent/lcm.yaml"},
		{"the agent's proxy", "#cloud-config\nwrite_files: [{path: /etc/lab-agent/proxy}]\n", "writes /etc/lab-agent/proxy"},
		{"a file of the profile", "#cloud-config\nwrite_files: [{path: /a}, {path: " + sysctlFile + "}]\n", "write_files[1]: the agent, the host profile or the network writes " + sysctlFile},
		{"a file of the agent by an alias", "#cloud-config\nx: &a {path: " + tokenFile + "}\nwrite_files: [*a]\n", "writes " + tokenFile},
	} {
		err := Check("m-0", profile, []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secretword") {
			t.Errorf("%s: Check = %v, want %s, and no content", tt.name, err, tt.want)
		}
	}
	for _, text := range []string{"#cloud-config\n", "\n#cloud-config \r\n# nothing\n", "#cloud-config\nruncmd:\nwrite_files: []\n", "#!/bin/sh"} {
		if err := Check("m-0", profile, []byte(text)); err != nil {
			t.Errorf("Check(%q) = %v", text, err)
		}
	}
}

func TestKernelParametersOfAProfile(t *testing.T) {
	m := example()
	m.Profile = &hostprofilev1.BareMetalHostProfileSpec{
		PostDeployScript: "#!/bin/sh\nexit 3\n",
		KernelParameters: &hostprofilev1.KernelParameters{
			Sysctl: map[string]hostprofilev1.SysctlValue{"vm.swappiness": "10", "kernel.panic": "30"},
			Modules: []hostprofilev1.ModuleFile{
				{Filename: "kvm.conf", Content: "options kvm_intel nested=1\n# options a b=1\noptions kvm_intel ept=1\noptions floppy x=1\noptions $(reboot) a=1\n"},
				{Filename: "off.conf", Content: "blacklist floppy\noptions pcspkr a=1\ninstall pcspkr /bin/false\noptions\n"},
			},
		},
	}
	m.User = []byte("#cloud-config\nruncmd: [echo last]\n")
	root, r := apply(t, m)
	for name, want := range map[string]string{
		"etc/sysctl.d/90-host-profile.conf": "kernel.panic = 30\nvm.swappiness = 10\n", "etc/modules-load.d/host-profile.conf": "kvm_intel\n",
		"etc/modprobe.d/kvm.conf": m.Profile.KernelParameters.Modules[0].Content, "etc/modprobe.d/off.conf": m.Profile.KernelParameters.Modules[1].Content,
		strings.TrimPrefix(postScript, "/"): m.Profile.PostDeployScript,
	} {
		if f, _ := root.Get(name); string(f.Content) != want {
			t.Errorf("%s is %q, want %q", name, f.Content, want)
		}
	}
	if f, _ := root.Get(postScript); f.Mode.Perm() != 0o700 {
		t.Errorf("mode of the script %o, want 700", f.Mode.Perm())
	}
	want := append([]string{"modprobe --all kvm_intel", "sysctl --quiet --load=" + sysctlFile, postScript + ` || echo "postDeployScript ended with code $?" >&2`}, agentCommands...)
	if want = append(want, "echo last"); !slices.Equal(r.Run, want) {
		t.Errorf("commands %q, want %q", r.Run, want)
	}
}

// preDeployScript runs before the user's bootcmd, once: a later boot does nothing. A script
// that fails is reported, and stops nothing.
func TestPreDeployScriptRunsOnce(t *testing.T) {
	m := example()
	m.Profile = &hostprofilev1.BareMetalHostProfileSpec{PreDeployScript: "#!/bin/sh\necho \"it's\" \"$HOME\" >> /run/out\nexit 3\n"}
	m.User = []byte("#cloud-config\nbootcmd: [echo next >> /run/out]\n")
	_, r := apply(t, m)
	if len(r.Boot) != 2 {
		t.Fatalf("commands of each boot %q", r.Boot)
	}
	dir := t.TempDir()
	var stderr []byte
	for range 2 {
		for _, line := range r.Boot {
			for _, top := range []string{"/var/lib", "/usr/local", "/run/out"} { // the script has its paths encoded
				line = strings.ReplaceAll(line, top, filepath.Join(dir, top))
			}
			line = strings.Replace(line, "| base64 -d >", "| base64 -d | sed s,/run/out,"+filepath.Join(dir, "run/out")+", >", 1)
			if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
			cmd.Env = []string{"HOME=/h", "PATH=" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if stderr = append(stderr, out...); err != nil {
				t.Fatalf("%s: %v, %s", line, err, out)
			}
		}
	}
	out, err := os.ReadFile(filepath.Join(dir, "run/out"))
	if want := "it's /h\nnext\nnext\n"; err != nil || string(out) != want {
		t.Errorf("output %q, %v, want %q", out, err, want)
	}
	if want := "preDeployScript ended with code 3\n"; string(stderr) != want {
		t.Errorf("errors %q, want %q", stderr, want)
	}
}
