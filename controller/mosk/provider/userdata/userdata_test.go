package userdata

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/agent/lcm"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/node"
)

func example() Machine {
	return Machine{
		Namespace: "lab", Name: "m-0", Server: "https://192.0.2.1:6443", CA: []byte("-----BEGIN CERTIFICATE-----\n"), Token: "a.b.c",
		Agent: &lcmv1.AgentConfig{Version: "v1", DownloadURL: "http://192.0.2.2/it's?a=%20", SHA256: strings.Repeat("5a", 32), Args: []string{"--log", `50% "of" $all`}},
		Keys:  []string{"ssh-ed25519 A ann"},
	}
}

// apply returns the files of a server that cloud-init has configured.
func apply(t *testing.T, m Machine) (cloudinit.Root, cloudinit.Result) {
	t.Helper()
	text, err := Render(m)
	if err != nil {
		t.Fatal(err)
	}
	root := cloudinit.Root{"etc/passwd": {Content: []byte("root:x:0:0:root:/root:/bin/bash\n")}, "etc/group": {Content: []byte("root:x:0:\n")}, "etc/shadow": {Content: []byte("root:!:19000:0:99999:7:::\n")}}
	r := cloudinit.Configure(cloudinit.Instance{ID: "1", UserData: text}, root)
	if len(r.Ignored) > 0 {
		t.Fatalf("cloud-init ignores %q of\n%s", r.Ignored, text)
	}
	return root, r
}

func TestUserDataInstallTheAgent(t *testing.T) {
	root, r := apply(t, example())
	file := func(name string, mode uint32) string {
		t.Helper()
		f, ok := root.Get(strings.TrimPrefix(name, "/"))
		if !ok || uint32(f.Mode.Perm()) != mode || f.Owner != "root" {
			t.Errorf("%s: there %t, mode %o, owner %s, want mode %o", name, ok, f.Mode.Perm(), f.Owner, mode)
		}
		return string(f.Content)
	}
	var a lcm.Account
	if err := a.ReadAccount([]byte(file(ConfigFile, 0o600))); err != nil {
		t.Fatal(err)
	}
	want := lcm.Account{Account: kubeapi.Account{Server: "https://192.0.2.1:6443", CAFile: caFile, TokenFile: tokenFile}, Namespace: "lab", Machine: "m-0"}
	if err := a.Validate(); err != nil || a != want {
		t.Errorf("configuration %+v, %v", a, err)
	}
	if got := file(tokenFile, 0o600); got != "a.b.c\n" {
		t.Errorf("token %q", got)
	}
	if got := file(caFile, 0o644); got != string(example().CA) {
		t.Errorf("certificates %q", got)
	}
	unit := file("/etc/systemd/system/"+Unit, 0o644)
	for _, line := range []string{
		"ExecStartPre=" + FetchProgram + ` "http://192.0.2.2/it's?a=%%20" ` + strings.Repeat("5a", 32), `ExecStart=/usr/local/bin/lab-agent lcm --config /etc/lab-agent/lcm.yaml "--log" "50%% \"of\" $$all"`, "WantedBy=multi-user.target",
	} {
		if !slices.Contains(strings.Split(unit, "\n"), line) {
			t.Errorf("the unit lacks %q:\n%s", line, unit)
		}
	}
	if got := file(FetchProgram, 0o755); got != FetchScript {
		t.Errorf("the script is\n%s", got)
	}
	if want := []string{"systemctl daemon-reload", "systemctl enable --now lab-agent-lcm.service"}; !slices.Equal(r.Run, want) {
		t.Errorf("commands %q, want %q", r.Run, want)
	}
	if keys := file("/root/.ssh/authorized_keys", 0o600); strings.TrimSpace(keys) != "ssh-ed25519 A ann" || r.Hostname != "m-0" {
		t.Errorf("keys %q, host name %q", keys, r.Hostname)
	}
}

// The proxies are in a file that the superuser alone reads, and which the agent's service and
// the script that fetches it have as their environment.
func TestUserDataOfAProxy(t *testing.T) {
	m := example()
	m.Proxy = &kaasv1.ProxySpec{HTTPProxy: "http://u:p%20w@192.0.2.3:3128", NoProxy: "10.0.0.0/8,.example"}
	root, _ := apply(t, m)
	f, _ := root.Get(strings.TrimPrefix(proxyFile, "/"))
	if want := "http_proxy=http://u:p%20w@192.0.2.3:3128\nno_proxy=10.0.0.0/8,.example\n"; string(f.Content) != want || f.Mode.Perm() != 0o600 || f.Owner != "root" {
		t.Errorf("%s: mode %o, %q, want %q", proxyFile, f.Mode.Perm(), f.Content, want)
	}
	unit, _ := root.Get("etc/systemd/system/" + Unit)
	if text := string(unit.Content); !strings.Contains(text, "\nEnvironmentFile="+proxyFile+"\n") || strings.Contains(text, "p%20w") {
		t.Errorf("unit:\n%s", text)
	}
}

// The certificates of a proxy that reads TLS are installed before the agent is fetched through it.
func TestUserDataOfAProxyThatReadsTLS(t *testing.T) {
	m := example()
	m.Proxy = &kaasv1.ProxySpec{HTTPSProxy: "http://192.0.2.3:3128", CACertificate: "certificates\n"}
	root, r := apply(t, m)
	if f, _ := root.Get("usr/local/share/ca-certificates/lab-proxy.crt"); string(f.Content) != "certificates\n" || f.Mode.Perm() != 0o644 {
		t.Errorf("the file of the certificates: mode %o, %q", f.Mode.Perm(), f.Content)
	}
	text, err := Render(m)
	if err != nil || !strings.Contains(string(text), "runcmd:\n- update-ca-certificates\n- systemctl") {
		t.Errorf("user data (%v, %+v):\n%s", err, r, text)
	}
	m.Proxy.CACertificate = ""
	if text, err := Render(m); err != nil || strings.Contains(string(text), "ca-certificates") {
		t.Errorf("without certificates (%v):\n%s", err, text)
	}
	m.User = []byte("#cloud-config\nwrite_files: [{path: " + proxyCAFile + ", content: x}]\n")
	if err := Check(m.Name, nil, m.User); err == nil {
		t.Error("Check() lets the user replace the certificates")
	}
}

// Without an agent in the release, the image has the program.
func TestUserDataWithoutADownload(t *testing.T) {
	m := example()
	m.Agent, m.Keys = nil, nil
	root, _ := apply(t, m)
	if _, ok := root.Get(strings.TrimPrefix(FetchProgram, "/")); ok {
		t.Error("the server fetches an agent")
	}
	if f, _ := root.Get("etc/systemd/system/" + Unit); string(f.Content) != lcm.Unit {
		t.Errorf("unit:\n%s\nwant the agent's:\n%s", f.Content, lcm.Unit)
	}
	if ConfigFile != lcm.ConfigFile {
		t.Errorf("configuration file %s, want %s", ConfigFile, lcm.ConfigFile)
	}
	a, _ := Render(m)
	b, _ := Render(m)
	if !bytes.Equal(a, b) {
		t.Error("two documents of one machine differ")
	}
}

// A server of a Cluster with an API of its own gets the node agent, as guest/node runs it.
func TestUserDataInstallTheNodeAgent(t *testing.T) {
	m := example()
	m.Node = &Node{Server: "https://192.0.2.7:6443", CA: []byte("CA"), Token: "d.e.f"}
	root, r := apply(t, m)
	for name, want := range map[string]string{
		node.ConfigFile: "caFile: /etc/lab-agent/node-ca.crt\nserver: https://192.0.2.7:6443\ntokenFile: /etc/lab-agent/node-token\n",
		nodeCAFile:      "CA", nodeTokenFile: "d.e.f\n", "/etc/systemd/system/lab-agent-node.service": node.Unit,
	} {
		if f, _ := root.Get(strings.TrimPrefix(name, "/")); string(f.Content) != want {
			t.Errorf("%s has %q, want %q", name, f.Content, want)
		}
	}
	if f, _ := root.Get(strings.TrimPrefix(nodeTokenFile, "/")); f.Mode.Perm() != 0o600 {
		t.Errorf("the token has the mode %o", f.Mode.Perm())
	}
	if want := []string{"systemctl daemon-reload", "systemctl enable --now lab-agent-lcm.service", "systemctl enable --now lab-agent-node.service"}; !slices.Equal(r.Run, want) {
		t.Errorf("commands %q, want %q", r.Run, want)
	}
}

// The network that network data cannot express is applied before anything uses it.
func TestUserDataHaveTheNetplan(t *testing.T) {
	m := example()
	m.Proxy = &kaasv1.ProxySpec{CACertificate: "pem\n"}
	m.Netplan = []ipamv1.NetconfigFile{{Path: ipamv1.NetplanFile, Content: base64.StdEncoding.EncodeToString([]byte("network: {version: 2}\n"))}}
	root, r := apply(t, m)
	f, _ := root.Get("etc/netplan/60-kaas-lcm-netplan.yaml")
	if string(f.Content) != "network: {version: 2}\n" || f.Mode.Perm() != 0o600 { // netplan warns of others' access
		t.Errorf("netplan's file %q has the mode %o", f.Content, f.Mode.Perm())
	}
	if want := append([]string{"netplan apply", "update-ca-certificates"}, agentCommands...); !slices.Equal(r.Run, want) {
		t.Errorf("commands %q, want %q", r.Run, want)
	}
	m.Netplan[0].Content = "?"
	if _, err := Render(m); err == nil || !strings.Contains(err.Error(), "netplan's file /etc/netplan/60-kaas-lcm-netplan.yaml") {
		t.Errorf("a file that is no base64: %v", err)
	}
	user := []byte("#cloud-config\nwrite_files:\n- {path: /etc/netplan/60-kaas-lcm-netplan.yaml, content: a}\n")
	if err := Check("m-0", nil, user); err == nil || !strings.Contains(err.Error(), "the network writes /etc/netplan/60-kaas-lcm-netplan.yaml: use another path") {
		t.Errorf("a user's file in its place: %v", err)
	}
}
