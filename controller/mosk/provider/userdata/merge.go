package userdata

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// cloud-init merges the parts of a MIME archive by keys: a later write_files or runcmd
// replaces an earlier one ("Merging user data sections"), so that two cloud-configs would
// lose the agent or the user's files. The documents are merged here instead, and lists are
// joined. A script stays a part of its own.

// Check returns why the user data of a user cannot be merged into those of the machine of
// this name and profile; nil when they can. It shows no content of them but keys and paths.
func Check(name string, profile *hostprofilev1.BareMetalHostProfileSpec, user []byte) error {
	_, err := render(Machine{
		Name: name, Profile: profile, User: user, Agent: &lcmv1.AgentConfig{}, Proxy: &kaasv1.ProxySpec{CACertificate: "-"},
		Netplan: []ipamv1.NetconfigFile{{Path: ipamv1.NetplanFile}},
	})
	return err
}

// The first lines of the formats that are merged (cloud-init, "User-data formats").
const (
	configStart = "#cloud-config"
	scriptStart = "#!"
)

// addUser adds the user data of a user to a cloud-config of the machine.
func addUser(config []byte, c cloudConfig, user []byte) ([]byte, error) {
	user = bytes.TrimLeft(user, " \t\r\n")
	first, _, _ := bytes.Cut(user, []byte("\n"))
	switch {
	case bytes.HasPrefix(user, []byte(scriptStart)):
		return archive(config, user), nil
	case string(bytes.TrimRight(first, " \t\r")) != configStart:
		return nil, fmt.Errorf("begin with the line %s, or with %s and an interpreter", configStart, scriptStart)
	}
	var doc, base yaml.Node
	if err := yaml.Unmarshal(user, &doc); err != nil {
		return nil, err
	}
	if doc.IsZero() || len(doc.Content) == 1 && doc.Content[0].Tag == "!!null" {
		return config, nil // a comment alone
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: give a mapping of cloud-init's keys", doc.Content[0].Line)
	}
	if err := yaml.Unmarshal(config, &base); err != nil {
		return nil, err
	}
	if err := merge(base.Content[0], doc.Content[0], c); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(configStart + "\n")
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(base.Content[0]), e.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// lists are the keys whose lists are joined, the machine's first: the agent starts although
// a command of the user fails.
var lists = []string{"write_files", "bootcmd", "runcmd", "ssh_authorized_keys"}

// merge adds the keys of the user's mapping to the machine's.
func merge(base, user *yaml.Node, c cloudConfig) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(user.Content); i += 2 {
		key, value := user.Content[i], user.Content[i+1]
		name, target := key.Value, value
		if value.Kind == yaml.AliasNode {
			target = value.Alias
		}
		if seen[name] {
			return fmt.Errorf("line %d: %s is there twice", key.Line, name)
		}
		seen[name] = true
		index := slices.IndexFunc(base.Content, func(n *yaml.Node) bool { return n.Value == name })
		isList := slices.Contains(lists, name)
		switch {
		case isList && target.Tag == "!!null":
			continue
		case isList && target.Kind != yaml.SequenceNode:
			return fmt.Errorf("line %d: %s: give a list", key.Line, name)
		case name == "hostname" && target.Value != c.Hostname:
			return fmt.Errorf("line %d: hostname: the host name is that of the Machine, %s: remove the key", key.Line, c.Hostname)
		}
		if name == "write_files" {
			if err := checkPaths(target, c); err != nil {
				return err
			}
		}
		switch {
		case index < 0:
			base.Content = append(base.Content, key, value)
		case isList:
			base.Content[index+1].Content = append(base.Content[index+1].Content, target.Content...)
		default:
			base.Content[index+1] = value
		}
	}
	return nil
}

// checkPaths refuses files of the user that the machine's user data write.
func checkPaths(files *yaml.Node, c cloudConfig) error {
	for i, f := range files.Content {
		if f.Kind == yaml.AliasNode {
			f = f.Alias
		}
		for j := 0; j+1 < len(f.Content); j += 2 {
			if f.Content[j].Value != "path" {
				continue
			}
			filename := path.Clean(f.Content[j+1].Value)
			if slices.ContainsFunc(c.WriteFiles, func(ours file) bool { return ours.Path == filename }) {
				return fmt.Errorf("line %d: write_files[%d]: the agent, the host profile or the network writes %s: use another path", f.Line, i, filename)
			}
		}
	}
	return nil
}

// boundary separates the parts of an archive, whose lines are base64.
const boundary = "====metalab-user-data===="

// archive returns a MIME archive of a cloud-config and a script (cloud-init, "MIME
// multi-part archive").
func archive(config, script []byte) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n", boundary)
	for _, p := range []struct {
		kind, name string
		content    []byte
	}{{"text/cloud-config", "agent.yaml", config}, {"text/x-shellscript", "user-data.sh", script}} {
		fmt.Fprintf(&out, "\n--%s\nContent-Type: %s; charset=\"utf-8\"\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\"%s\"\n\n", boundary, p.kind, p.name)
		for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(p.content)), 76) { // RFC 2045, section 6.8
			out.Write(append(line, '\n'))
		}
	}
	fmt.Fprintf(&out, "\n--%s--\n", boundary)
	return out.Bytes()
}
