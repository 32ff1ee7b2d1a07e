package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is a #cloud-config by its top-level keys. Where parts are merged the later
// one replaces the keys of the earlier (cloud-init, "Merging user data sections").
type document map[string]*yaml.Node

func (d document) merge(p part, r *Result) {
	var keys map[string]yaml.Node
	if err := yaml.Unmarshal(p.content, &keys); err != nil {
		r.ignore("%s is not applied: %v", p.name, err)
		return
	}
	for k, n := range keys {
		if err := expandAliases(&n); err != nil {
			r.ignore("%s of %s is not applied: %v", k, p.name, err)
			continue
		}
		d[k] = &n
	}
}

// expandAliases replaces the aliases in a value by what they stand for. It refuses one that
// contains itself, and one that is much longer than its text.
func expandAliases(n *yaml.Node) error {
	if !hasAlias(n) {
		return nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return err
	}
	return n.Encode(v)
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// config holds the keys of a #cloud-config that Configure applies.
type config struct {
	Hostname, FQDN  string
	PreserveName    bool
	PreferFQDN      bool
	Users           *yaml.Node // nil: the default user
	Groups          *yaml.Node
	Keys            []string
	DisableRoot     bool
	Files           []file
	Boot, Run       []string
	Timezone, Words string // Words is the locale
	ManageHosts     string
}

// file is an entry of write_files.
type file struct {
	Path        string    `yaml:"path"`
	Content     yaml.Node `yaml:"content"`
	Encoding    string    `yaml:"encoding"`
	Owner       string    `yaml:"owner"`
	Permissions yaml.Node `yaml:"permissions"`
	Append      bool      `yaml:"append"`
	Defer       bool      `yaml:"defer"`
	Source      *struct {
		URI string `yaml:"uri"`
	} `yaml:"source"`
}

// keys are the modules that Configure applies, and how a key is decoded.
var keys = map[string]func(*config, *yaml.Node) error{
	"hostname":                  func(c *config, n *yaml.Node) error { return n.Decode(&c.Hostname) },
	"fqdn":                      func(c *config, n *yaml.Node) error { return n.Decode(&c.FQDN) },
	"preserve_hostname":         func(c *config, n *yaml.Node) error { return n.Decode(&c.PreserveName) },
	"prefer_fqdn_over_hostname": func(c *config, n *yaml.Node) error { return n.Decode(&c.PreferFQDN) },
	"manage_etc_hosts":          func(c *config, n *yaml.Node) error { c.ManageHosts = n.Value; return nil },
	"users":                     func(c *config, n *yaml.Node) error { c.Users = n; return nil },
	"groups":                    func(c *config, n *yaml.Node) error { c.Groups = n; return nil },
	"ssh_authorized_keys":       func(c *config, n *yaml.Node) error { c.Keys = scalars(n); return nil },
	"disable_root":              func(c *config, n *yaml.Node) error { return n.Decode(&c.DisableRoot) },
	"write_files":               func(c *config, n *yaml.Node) error { return n.Decode(&c.Files) },
	"timezone":                  func(c *config, n *yaml.Node) error { return n.Decode(&c.Timezone) },
	"locale":                    func(c *config, n *yaml.Node) error { return n.Decode(&c.Words) },
	"bootcmd":                   func(c *config, n *yaml.Node) (err error) { c.Boot, err = commands(n); return err },
	"runcmd":                    func(c *config, n *yaml.Node) (err error) { c.Run, err = commands(n); return err },
}

// decode reads the keys that are applied, and lists the others.
func (d document) decode(r *Result) config {
	c := config{DisableRoot: true}
	for _, k := range slices.Sorted(maps.Keys(d)) {
		do, known := keys[k]
		if !known {
			r.ignore("%s is not applied: there is no such module here", k)
			continue
		}
		if err := do(&c, d[k]); err != nil {
			r.ignore("%s is not applied: %v", k, err)
		}
	}
	return c
}

// commands returns the entries of runcmd or bootcmd: a text is a command of a shell, and
// a list one program with its arguments.
func commands(n *yaml.Node) (out []string, err error) {
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("line %d: it is no list", n.Line)
	}
	for _, e := range n.Content {
		switch e.Kind {
		case yaml.ScalarNode:
			out = append(out, e.Value)
		case yaml.SequenceNode:
			var words []string
			for _, w := range scalars(e) {
				words = append(words, quote(w))
			}
			out = append(out, strings.Join(words, " "))
		default:
			return nil, fmt.Errorf("line %d: a command is a text or a list", e.Line)
		}
	}
	return out, nil
}

// quote returns a word as a shell reads it.
func quote(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// hostname writes the name of the user data, else that of the metadata.
func (c *config) hostname(i Instance, root Root, r *Result) {
	name, fqdn := c.Hostname, c.FQDN
	if name == "" && fqdn == "" {
		name = i.Hostname
	}
	if fqdn == "" && strings.Contains(name, ".") {
		fqdn = name
	}
	if name == "" {
		name = fqdn
	}
	if fqdn != "" && c.PreferFQDN {
		name = fqdn
	} else {
		name, _, _ = strings.Cut(name, ".")
	}
	if name == "" {
		name = "localhost"
	}
	if c.PreserveName {
		f, _ := root.Get("etc/hostname")
		r.Hostname = strings.TrimSpace(string(f.Content))
		return
	}
	r.Hostname = name
	root.write("etc/hostname", 0o644, name+"\n")
	if slices.Contains([]string{"true", "localhost"}, c.ManageHosts) {
		names := name
		if fqdn != "" && fqdn != name {
			names = fqdn + " " + name
		}
		root.write("etc/hosts", 0o644, "127.0.1.1 "+names+"\n127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	}
}

// writeFiles writes the files of write_files; those with defer after the others.
func (c *config) writeFiles(root Root, r *Result) {
	for _, later := range []bool{false, true} {
		for _, f := range c.Files {
			if f.Defer != later {
				continue
			}
			if err := f.write(root); err != nil {
				r.ignore("write_files %s is not written: %v", f.Path, err)
			}
		}
	}
	if c.Timezone != "" {
		root.write("etc/timezone", 0o644, c.Timezone+"\n")
	}
	if c.Words != "" {
		root.write("etc/default/locale", 0o644, "LANG="+c.Words+"\n")
	}
}

func (f file) write(root Root) error {
	if !strings.HasPrefix(f.Path, "/") || rel(f.Path) == "" {
		return fmt.Errorf("path %q is not absolute", f.Path)
	}
	if f.Source != nil && f.Source.URI != "" {
		return fmt.Errorf("its source %s is not fetched", f.Source.URI)
	}
	content, err := decodeContent(f.Content.Value, f.Encoding)
	if err != nil {
		return err
	}
	mode, err := permissions(&f.Permissions)
	if err != nil {
		return err
	}
	owner, group, _ := strings.Cut(f.Owner, ":")
	name := rel(f.Path)
	if old, ok := root[name]; ok && f.Append {
		content = append(slices.Clip(old.Content), content...)
	}
	if owner == "" {
		owner = "root"
	}
	if group == "" {
		group = owner
	}
	root[name] = File{Content: content, Mode: mode, Owner: owner, Group: group}
	return nil
}

// decodeContent decodes a file's content (cloud-init, module "write_files").
func decodeContent(text, encoding string) ([]byte, error) {
	b := []byte(text)
	switch e := strings.ToLower(encoding); e {
	case "", "text/plain":
		return b, nil
	case "b64", "base64", "gz", "gzip", "gz+base64", "gzip+base64", "gz+b64", "gzip+b64":
		if strings.Contains(e, "64") {
			out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
			if err != nil {
				return nil, fmt.Errorf("encoding %s: %w", encoding, err)
			}
			b = out
		}
		if !strings.HasPrefix(e, "gz") {
			return b, nil
		}
	default:
		return nil, fmt.Errorf("encoding %q: use text/plain, b64, gzip or gz+b64", encoding)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", encoding, err)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", encoding, err)
	}
	return out, nil
}

// permissions reads a mode: a text is octal, and a number is the mode, which YAML 1.1
// writes as 0644.
func permissions(n *yaml.Node) (fs.FileMode, error) {
	if n.Kind == 0 || n.Tag == "!!null" {
		return 0o644, nil
	}
	var mode uint64
	var err error
	if n.Tag == "!!int" {
		err = n.Decode(&mode)
	} else {
		mode, err = strconv.ParseUint(strings.TrimPrefix(n.Value, "0o"), 8, 32)
	}
	if err != nil || mode > 0o7777 {
		return 0, fmt.Errorf("permissions %q: give an octal number such as '0644'", n.Value)
	}
	return fs.FileMode(mode), nil
}

// RunScript is where the commands of runcmd are stored as a script.
const RunScript = "/" + instanceDir + "/scripts/runcmd"

// commands stores the scripts and the commands of runcmd where cloud-init does, and lists
// those to execute.
func (c *config) commands(scripts []part, root Root, r *Result) {
	r.Boot, r.Run = c.Boot, c.Run
	for n, s := range scripts {
		name := fmt.Sprintf("%s/scripts/part-%03d", instanceDir, n+1)
		root.write(name, 0o700, string(s.content))
		r.Scripts = append(r.Scripts, "/"+name)
	}
	if len(c.Run) > 0 {
		root.write(instanceDir+"/scripts/runcmd", 0o700, "#!/bin/sh\n"+strings.Join(c.Run, "\n")+"\n")
		r.Scripts = append(r.Scripts, RunScript)
	}
}
