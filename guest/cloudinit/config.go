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

// document is a #cloud-config by its top-level keys.
type document map[string]*yaml.Node

// merge merges a part into those before it.
func (d document) merge(p part, r *Result) {
	n, err := loadMapping(p.content, func(key string, err error) { r.ignore("%s of %s is not applied: %v", key, p.label, err) })
	if err != nil {
		r.ignore("%s is not applied: %v", p.label, err)
		return
	}
	if n == nil {
		return
	}
	m, err := mergerOf(n, p.merge, mergeParts)
	if err != nil {
		r.ignore("%s is not applied: %v", p.label, err)
		return
	}
	d.by(m, n)
}

// by merges a mapping.
func (d document) by(m merger, n *yaml.Node) {
	whole := m.merge(d.node(), n)
	clear(d)
	for k := 0; k+1 < len(whole.Content); k += 2 {
		d[text(whole.Content[k])] = whole.Content[k+1]
	}
}

// below merges vendor data, which give what user data don't.
func (d document) below(vendor document) {
	var m merger
	if err := m.add(mergeVendor); err == nil { // it is a constant
		d.by(m, vendor.node())
	}
}

// node returns the document as a mapping.
func (d document) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, k := range slices.Sorted(maps.Keys(d)) {
		key := &yaml.Node{}
		key.SetString(k)
		key.Style = yaml.DoubleQuotedStyle // no number or boolean
		n.Content = append(n.Content, key, d[k])
	}
	return n
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
	Passwords       passwords
	Timezone, Words string // Words is the locale
	ManageHosts     string
}

// file is an entry of write_files.
type file struct {
	path, content, encoding, owner string
	permissions                    *yaml.Node
	append, deferred               bool
	source                         string // URL
}

// keys are the modules that Configure applies, and how a key is decoded.
var keys = map[string]func(*config, *yaml.Node, *Result) error{
	"launch-index":              func(*config, *yaml.Node, *Result) error { return nil }, // launched reads it
	"hostname":                  func(c *config, n *yaml.Node, _ *Result) (err error) { c.Hostname, err = aText(n); return err },
	"fqdn":                      func(c *config, n *yaml.Node, _ *Result) (err error) { c.FQDN, err = aText(n); return err },
	"preserve_hostname":         func(c *config, n *yaml.Node, _ *Result) error { c.PreserveName = isTrue(n); return nil },
	"prefer_fqdn_over_hostname": func(c *config, n *yaml.Node, _ *Result) error { c.PreferFQDN = isTrue(n); return nil },
	"manage_etc_hosts": func(c *config, n *yaml.Node, _ *Result) error {
		if c.ManageHosts = text(n); isTrue(n) {
			c.ManageHosts = "true"
		}
		return nil
	},
	"users":               func(c *config, n *yaml.Node, _ *Result) error { c.Users = n; return nil },
	"groups":              func(c *config, n *yaml.Node, _ *Result) error { c.Groups = n; return nil },
	"ssh_authorized_keys": func(c *config, n *yaml.Node, _ *Result) error { c.Keys = scalars(n); return nil },
	"disable_root":        func(c *config, n *yaml.Node, _ *Result) error { c.DisableRoot = isTrue(n); return nil },
	"chpasswd":            func(c *config, n *yaml.Node, r *Result) error { return c.Passwords.chpasswd(n, r) },
	"ssh_pwauth":          func(c *config, n *yaml.Node, r *Result) error { return c.Passwords.ssh(n, r) },
	"write_files":         func(c *config, n *yaml.Node, r *Result) (err error) { c.Files, err = filesOf(n, r); return err },
	"timezone":            func(c *config, n *yaml.Node, _ *Result) (err error) { c.Timezone, err = aText(n); return err },
	"locale": func(c *config, n *yaml.Node, _ *Result) (err error) {
		if c.Words, err = aText(n); slices.Contains([]string{"off", "0", "no", "false"}, strings.ToLower(strings.TrimSpace(c.Words))) {
			c.Words = ""
		}
		return err
	},
	"bootcmd": func(c *config, n *yaml.Node, r *Result) (err error) {
		c.Boot, err = commands("bootcmd", n, r)
		return err
	},
	"runcmd": func(c *config, n *yaml.Node, r *Result) (err error) {
		c.Run, err = commands("runcmd", n, r)
		return err
	},
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
		if err := do(&c, d[k], r); err != nil {
			r.ignore("%s is not applied: %v", k, err)
		}
	}
	return c
}

// commands returns the entries of runcmd or bootcmd: a text is a command of a shell, and
// a list one program with its arguments. An entry of another type is lost alone.
func commands(module string, n *yaml.Node, r *Result) (out []string, err error) {
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("line %d: it is no list", n.Line)
	}
	for _, e := range n.Content {
		switch v := value(e).(type) {
		case nil: // a comment in place of an entry
		case string:
			out = append(out, v)
		case *yaml.Node:
			if v.Kind != yaml.SequenceNode {
				r.ignore("%s: line %d is not executed: a command is a text or a list", module, e.Line)
				continue
			}
			var words []string
			for _, w := range v.Content {
				words = append(words, quote(text(w)))
			}
			out = append(out, strings.Join(words, " "))
		default:
			r.ignore("%s: line %d is not executed: %s is no text: quote it", module, e.Line, e.Value)
		}
	}
	return out, nil
}

// filesOf reads write_files. An entry that is no mapping, or has no path, is lost alone.
func filesOf(n *yaml.Node, r *Result) (out []file, err error) {
	if n.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("line %d: it is no list", n.Line)
	}
	for i, e := range n.Content {
		f, unknown, err := fileOf(e)
		if err != nil {
			r.ignore("write_files[%d] is not written: %v", i, err)
			continue
		}
		for _, k := range unknown {
			r.ignore("write_files %s: there is no key %s", f.path, k)
		}
		out = append(out, f)
	}
	return out, nil
}

// fileOf reads an entry of write_files, and lists its keys that there are not.
func fileOf(n *yaml.Node) (f file, unknown []string, err error) {
	values, err := fields(n)
	if err != nil {
		return f, nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		v := values[k]
		var err error
		switch k {
		case "path":
			f.path, err = aText(&v)
		case "content":
			f.content, err = aText(&v)
		case "encoding":
			f.encoding, err = aText(&v)
		case "owner":
			f.owner, err = aText(&v)
		case "permissions":
			f.permissions = &v
		case "append":
			f.append = isTrue(&v)
		case "defer":
			f.deferred = isTrue(&v)
		case "source":
			var source struct {
				URI string `yaml:"uri"`
			}
			err = v.Decode(&source)
			f.source = source.URI
		default:
			unknown = append(unknown, k)
		}
		if err != nil {
			return f, nil, fmt.Errorf("%s: %w", k, err)
		}
	}
	if f.path == "" {
		return f, nil, fmt.Errorf("line %d: it has no path", n.Line)
	}
	return f, unknown, nil
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
	short, fqdn := c.names(i)
	c.hosts(short, fqdn, root)
	if c.PreserveName {
		f, _ := root.Get("etc/hostname")
		r.Hostname = strings.TrimSpace(string(f.Content))
		return
	}
	r.Hostname = short
	if c.PreferFQDN {
		r.Hostname = fqdn
	}
	root.write("etc/hostname", 0o644, r.Hostname+"\n")
}

// writeFiles writes the files of write_files; those with defer after the others.
func (c *config) writeFiles(root Root, r *Result) {
	for _, later := range []bool{false, true} {
		for _, f := range c.Files {
			if f.deferred != later {
				continue
			}
			if err := f.write(root, r); err != nil {
				r.ignore("write_files %s is not written: %v", f.path, err)
			}
		}
	}
	if c.Timezone != "" {
		c.timezone(root, r)
	}
	if c.Words != "" {
		root.write("etc/default/locale", 0o644, "LANG="+c.Words+"\n")
	}
}

func (f file) write(root Root, r *Result) error {
	if !strings.HasPrefix(f.path, "/") || rel(f.path) == "" {
		return fmt.Errorf("path %q is not absolute", f.path)
	}
	if f.source != "" {
		return fmt.Errorf("its source %s is not fetched", f.source)
	}
	content, err := f.decode(r)
	if err != nil {
		return err
	}
	// As cloud-init, which creates the file as root and changes what the owner names.
	owner, group := ownerOf(f.owner)
	name := rel(f.path)
	if old, ok := root[name]; ok && f.append {
		content = append(slices.Clip(old.Content), content...)
	}
	root[name] = File{Content: content, Mode: f.mode(r), Owner: owner, Group: group}
	return nil
}

// ownerOf returns the user and the group of a file: "-1", "none" and no name are root's
// (cloud-init, util.extract_usergroup).
func ownerOf(text string) (user, group string) {
	user, group, _ = strings.Cut(text, ":")
	for _, name := range []*string{&user, &group} {
		*name = strings.TrimSpace(*name)
		if *name == "" || *name == "-1" || strings.EqualFold(*name, "none") {
			*name = "root"
		}
	}
	return user, group
}

// defaultMode is the mode of a file of write_files.
const defaultMode fs.FileMode = 0o644

// mode returns the mode of a file: a text is octal, and a number is the mode, which YAML 1.1 writes
// as 0644. One that cannot be read is the default.
func (f file) mode(r *Result) fs.FileMode {
	switch v := value(f.permissions).(type) {
	case nil:
		return defaultMode
	case bool:
		return map[bool]fs.FileMode{true: 1}[v] // Python's int
	case int64:
		if v >= 0 && v <= 0o7777 {
			return fs.FileMode(v)
		}
	case string:
		digits := strings.TrimPrefix(strings.TrimSpace(strings.ToLower(v)), "0o")
		if mode, err := strconv.ParseUint(digits, 8, 32); err == nil && mode <= 0o7777 {
			return fs.FileMode(mode)
		}
	}
	r.ignore("write_files %s has the mode %04o: permissions %q: give an octal number such as '0644'", f.path, defaultMode, f.permissions.Value)
	return defaultMode
}

// decode decodes a file's content (cloud-init, module "write_files"). An encoding that there is not
// is taken for a text.
func (f file) decode(r *Result) ([]byte, error) {
	b := []byte(f.content)
	e := strings.ToLower(strings.TrimSpace(f.encoding))
	switch e {
	case "", "text/plain":
		return b, nil
	case "b64", "base64", "gz", "gzip", "gz+base64", "gzip+base64", "gz+b64", "gzip+b64":
	default:
		r.ignore("write_files %s is written as text: encoding %q: use text/plain, b64, gzip or gz+b64", f.path, f.encoding)
		return b, nil
	}
	if strings.Contains(e, "64") {
		out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.content), ""))
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", f.encoding, err)
		}
		b = out
	}
	if !strings.HasPrefix(e, "gz") {
		return b, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", f.encoding, err)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", f.encoding, err)
	}
	return out, nil
}
