package lab

import (
	"fmt"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/agent/machineconfig"
	"github.com/metalab-dev/metalab/agent/nodeaccount"
	"github.com/metalab-dev/metalab/guest/node"
)

// NodeAccounts is the namespace whose service accounts have the rights of the agents of nodes.
const NodeAccounts = nodeaccount.Named

const agentDir = "/etc/lab-agent/"

// NodeData are the user data of a server that is a node.
type NodeData struct {
	Name  string       // name of the host, and so of the Node
	API   *rest.Config // its address and its authority
	Token string       // token of a service account in NodeAccounts
	// Units are those that the first boot enables, by their names without the suffix:
	// lab-agent-node, lab-agent-mcd. All are installed.
	Units []string
}

// NodeUnits are the units that user data of a node install.
var NodeUnits = map[string]string{"lab-agent-node": node.Unit, "lab-agent-mcd": machineconfig.Unit}

// CloudConfig returns the user data as a cloud-config.
func (n NodeData) CloudConfig() (string, error) {
	type file struct {
		Path        string `json:"path"`
		Content     string `json:"content"`
		Permissions string `json:"permissions"`
	}
	account, err := yaml.Marshal(map[string]string{"server": n.API.Host, "caFile": agentDir + "ca.crt", "tokenFile": agentDir + "token"})
	if err != nil {
		return "", err
	}
	files := []file{
		{node.ConfigFile, string(account), "0644"}, {machineconfig.ConfigFile, string(account), "0644"},
		{agentDir + "ca.crt", string(n.API.CAData), "0644"}, {agentDir + "token", n.Token, "0600"},
	}
	for unit, text := range NodeUnits {
		files = append(files, file{"/etc/systemd/system/" + unit + ".service", text, "0644"})
	}
	slices.SortFunc(files, func(a, b file) int { return slices.Compare([]string{a.Path}, []string{b.Path}) })
	data := map[string]any{"hostname": n.Name, "write_files": files}
	var run []string
	for _, u := range n.Units {
		if _, ok := NodeUnits[u]; !ok {
			return "", fmt.Errorf("unit %s is none of a node", u)
		}
		run = append(run, "systemctl enable --now "+u)
	}
	if len(run) > 0 {
		data["runcmd"] = run
	}
	text, err := yaml.Marshal(data)
	return "#cloud-config\n" + string(text), err
}
