// Package userdata renders the user data of a machine: a cloud-config that gives it the SSH
// keys of its cluster, applies the kernel parameters and scripts of its BareMetalHostProfile,
// installs and enables the LCM agent, and includes the user data of the Machine's user. It
// reads no object.
package userdata

import (
	"encoding/base64"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/agent/unit"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// The names on a server are in no public text, and may change with this file.
const (
	// Program is the path of the LCM agent.
	Program = unit.Program
	// Unit is the systemd service of the agent.
	Unit = "lab-agent-lcm.service"
	// ConfigFile is the agent's configuration, which agent/lcm.Account reads.
	ConfigFile = "/etc/lab-agent/lcm.yaml"

	caFile      = "/etc/lab-agent/ca.crt"
	proxyFile   = "/etc/lab-agent/proxy"
	proxyCAFile = "/usr/local/share/ca-certificates/lab-proxy.crt" // of a proxy that reads TLS
	tokenFile   = "/etc/lab-agent/token"                           //nolint:gosec // a path

	// The node agent's files, as guest/node names them.
	nodeUnit      = "lab-agent-node.service"
	nodeFile      = "/etc/lab-agent/node.yaml"
	nodeCAFile    = "/etc/lab-agent/node-ca.crt"
	nodeTokenFile = "/etc/lab-agent/node-token" //nolint:gosec // a path
)

// Machine has the values of a machine's user data.
type Machine struct {
	Namespace, Name string
	Server          string // https URL of the management cluster's API
	CA              []byte // certificates, in PEM, that sign the server's
	Token           string // token of the agent's service account
	Agent           *lcmv1.AgentConfig
	Keys            []string                                // SSH public keys for the default user and root
	Proxy           *kaasv1.ProxySpec                       // proxy for downloads; nil means none
	Profile         *hostprofilev1.BareMetalHostProfileSpec // nil means none
	User            []byte                                  // a cloud-config or a script of the user; nil means none
	Node            *Node                                   // nil means that the server registers no Node
	// Netplan are the files of a network that network data cannot express: status.netconfigFiles of
	// an IpamHost.
	Netplan []ipamv1.NetconfigFile
}

// Node is the account of the server's node agent, in the API of the cluster. The agent stands in
// for a kubelet.
type Node struct {
	Server string // https URL of the API
	CA     []byte // certificates, in PEM, that sign the API's
	Token  string // token of a service account
}

// account is the configuration file of the node agent.
type account struct {
	Server    string `json:"server"`
	CAFile    string `json:"caFile"`
	TokenFile string `json:"tokenFile"`
}

// config is the configuration file of the agent.
type config struct {
	Server    string `json:"server"`
	CAFile    string `json:"caFile"`
	TokenFile string `json:"tokenFile"`
	Namespace string `json:"namespace"`
	Machine   string `json:"machine"`
}

// cloudConfig has the keys of cloud-init's modules that are used here.
type cloudConfig struct {
	Hostname          string   `json:"hostname"`
	SSHAuthorizedKeys []string `json:"ssh_authorized_keys,omitempty"`
	DisableRoot       bool     `json:"disable_root"`
	WriteFiles        []file   `json:"write_files"`
	BootCmd           []string `json:"bootcmd,omitempty"`
	RunCmd            []string `json:"runcmd"`
}

type file struct {
	Path        string `json:"path"`
	Owner       string `json:"owner"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding,omitempty"`
	Content     string `json:"content"`
}

// Render returns a cloud-config document, or with a script of the user a MIME archive of
// both. That of equal values is the same.
func Render(m Machine) ([]byte, error) {
	b, err := render(m)
	if err != nil {
		return nil, fmt.Errorf("userdata: %w", err)
	}
	return b, nil
}

func render(m Machine) ([]byte, error) {
	settings, err := yaml.Marshal(config{Server: m.Server, CAFile: caFile, TokenFile: tokenFile, Namespace: m.Namespace, Machine: m.Name})
	if err != nil {
		return nil, err
	}
	c := cloudConfig{
		Hostname: m.Name, SSHAuthorizedKeys: m.Keys,
		WriteFiles: []file{
			{Path: ConfigFile, Permissions: "0600", Content: string(settings)},
			{Path: caFile, Permissions: "0644", Content: string(m.CA)},
			{Path: tokenFile, Permissions: "0600", Content: m.Token + "\n"},
			{Path: "/etc/systemd/system/" + Unit, Permissions: "0644", Content: service(m)},
		},
		// No other command without a profile: a lab runs these without a process.
		RunCmd: []string{"systemctl daemon-reload", "systemctl enable --now " + Unit},
	}
	if m.Agent != nil {
		c.WriteFiles = append(c.WriteFiles, file{Path: FetchProgram, Permissions: "0755", Content: FetchScript})
	}
	if m.Node != nil {
		if err := c.addNode(*m.Node); err != nil {
			return nil, err
		}
	}
	if m.Proxy != nil {
		c.WriteFiles = append(c.WriteFiles, file{Path: proxyFile, Permissions: "0600", Content: environment(*m.Proxy)})
		if ca := m.Proxy.CACertificate; ca != "" { // before the agent is fetched through the proxy
			c.WriteFiles = append(c.WriteFiles, file{Path: proxyCAFile, Permissions: "0644", Content: ca})
			c.RunCmd = append([]string{"update-ca-certificates"}, c.RunCmd...)
		}
	}
	if m.Profile != nil {
		c.addProfile(m.Profile)
	}
	if err := c.addNetplan(m.Netplan); err != nil {
		return nil, err
	}
	for i := range c.WriteFiles {
		f := &c.WriteFiles[i]
		f.Owner, f.Encoding, f.Content = "root:root", "b64", base64.StdEncoding.EncodeToString([]byte(f.Content))
	}
	b, err := yaml.Marshal(c)
	if err != nil {
		return nil, err
	}
	b = append([]byte(configStart+"\n"), b...)
	if len(m.User) == 0 {
		return b, nil
	}
	return addUser(b, c, m.User)
}

// addNetplan writes files of netplan, and applies them before anything uses the network. At later
// boots netplan reads them itself.
func (c *cloudConfig) addNetplan(files []ipamv1.NetconfigFile) error {
	if len(files) == 0 {
		return nil
	}
	for _, f := range files {
		text, err := base64.StdEncoding.DecodeString(f.Content)
		if err != nil {
			return fmt.Errorf("netplan's file %s: %w", f.Path, err)
		}
		c.WriteFiles = append(c.WriteFiles, file{Path: f.Path, Permissions: "0600", Content: string(text)})
	}
	c.RunCmd = append([]string{"netplan apply"}, c.RunCmd...)
	return nil
}

// addNode installs and enables the node agent.
func (c *cloudConfig) addNode(n Node) error {
	settings, err := yaml.Marshal(account{n.Server, nodeCAFile, nodeTokenFile})
	if err != nil {
		return err
	}
	c.WriteFiles = append(c.WriteFiles,
		file{Path: nodeFile, Permissions: "0644", Content: string(settings)},
		file{Path: nodeCAFile, Permissions: "0644", Content: string(n.CA)},
		file{Path: nodeTokenFile, Permissions: "0600", Content: n.Token + "\n"},
		file{Path: "/etc/systemd/system/" + nodeUnit, Permissions: "0644", Content: unit.Service("Node agent", "node --config "+nodeFile, "")},
	)
	c.RunCmd = append(c.RunCmd, "systemctl enable --now "+nodeUnit)
	return nil
}

// service returns the agent's service. With an agent in the release, the service fetches the
// program before its first start; else the image has it.
func service(m Machine) string {
	var pre, env string
	if m.Proxy != nil {
		env = "EnvironmentFile=" + proxyFile + "\n"
	}
	args := []string{"lcm", "--config", ConfigFile}
	if m.Agent != nil {
		pre = "ExecStartPre=" + FetchProgram + " " + unitWord(m.Agent.DownloadURL) + " " + m.Agent.SHA256 + "\n"
		for _, a := range m.Agent.Args {
			args = append(args, unitWord(a))
		}
	}
	return unit.Service("LCM agent", strings.Join(args, " "), env+pre)
}

// environment returns the variables that curl and Go's net/http read (curl reads http_proxy
// in lower case alone). The API refuses values that need quotes.
func environment(p kaasv1.ProxySpec) string {
	var b strings.Builder
	for _, v := range []struct{ name, value string }{{"http_proxy", string(p.HTTPProxy)}, {"https_proxy", string(p.HTTPSProxy)}, {"no_proxy", p.NoProxy}} {
		if v.value != "" {
			fmt.Fprintf(&b, "%s=%s\n", v.name, v.value)
		}
	}
	return b.String()
}

// unitWord quotes a word of ExecStart= (systemd.service(5), "Command lines").
func unitWord(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`).Replace(s) + `"`
}
