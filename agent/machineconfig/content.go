package machineconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/controller/machineconfig/ignition"
)

// content is a rendered MachineConfig as the daemon applies it.
type content struct {
	name     string
	raw      json.RawMessage // the object
	spec     mcv1.MachineConfigSpec
	ignition types.Config
	files    map[string]file // files of storage.files and of units, by path
	units    []types.Unit
}

// file is a file that a configuration owns.
type file struct {
	sys.File
	unit string // that it belongs to; "" for storage.files
}

// Directory of unit files (systemd.unit(5)).
const unitDir = "/etc/systemd/system"

// coreUser is the user whose SSH keys and password hash a configuration may set.
const coreUser = "core"

// parseContent reads a MachineConfig. It returns an error for paths and links that leave the
// root, content that cannot be read, and more than the bounds.
func parseContent(raw []byte) (*content, error) {
	var m mcv1.MachineConfig
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("MachineConfig: %w", err)
	}
	c := &content{name: m.Name, raw: raw, spec: m.Spec, files: map[string]file{}}
	var err error
	if c.ignition, err = ignition.Parse(m.Spec.Config.Raw); err != nil {
		return nil, fmt.Errorf("MachineConfig %s: %w", m.Name, err)
	}
	if err := ignition.Check(c.ignition); err != nil {
		return nil, fmt.Errorf("MachineConfig %s: %w", m.Name, err)
	}
	for _, f := range c.ignition.Storage.Files {
		b, err := ignition.Content(f.Contents)
		if err != nil {
			return nil, fmt.Errorf("MachineConfig %s: file %q: %w", m.Name, f.Path, err)
		}
		out := file{File: sys.File{Name: f.Path, Mode: defaultMode, Content: b}}
		if f.Mode != nil {
			out.Mode = modeOf(*f.Mode)
		}
		if f.User.ID != nil {
			out.UID = *f.User.ID
		}
		if f.Group.ID != nil {
			out.GID = *f.Group.ID
		}
		c.files[f.Path] = out
	}
	c.units = c.ignition.Systemd.Units
	for _, u := range c.units {
		name := path.Join(unitDir, u.Name)
		switch {
		case u.Mask != nil && *u.Mask:
			c.files[name] = file{File: sys.File{Name: name, Mode: fs.ModeSymlink | 0o777, Link: "/dev/null"}, unit: u.Name}
		case u.Contents != nil && *u.Contents != "":
			c.files[name] = file{File: sys.File{Name: name, Mode: defaultMode, Content: []byte(*u.Contents)}, unit: u.Name}
		}
		for _, d := range u.Dropins {
			if d.Contents != nil && *d.Contents != "" {
				name := path.Join(unitDir, u.Name+".d", d.Name)
				c.files[name] = file{File: sys.File{Name: name, Mode: defaultMode, Content: []byte(*d.Contents)}, unit: u.Name}
			}
		}
	}
	return c, nil
}

// parses holds the configurations that an update reads again at each step: the one that it leaves
// and the one that it goes to. Parsing them at each step was 5 % of the processor time in a profile of
// BenchmarkMachineConfigRollout. It is emptied at the update's end.
type parses [2]*content

// content returns what parseContent does.
func (p *parses) content(raw []byte) (*content, error) {
	for _, c := range p {
		if c != nil && bytes.Equal(c.raw, raw) {
			return c, nil
		}
	}
	c, err := parseContent(raw)
	if err == nil {
		p[1], p[0] = p[0], c
	}
	return c, err
}

// defaultMode is the mode of a file whose mode is not set (Ignition, "storage.files.mode").
const defaultMode fs.FileMode = 0o644

// modeOf returns the mode of an Ignition file: permissions, set-user-ID, set-group-ID and
// sticky bits.
func modeOf(bits int) fs.FileMode {
	m := fs.FileMode(bits).Perm()
	for bit, special := range map[int]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			m |= special
		}
	}
	return m
}

// none is the configuration of a node that has none yet.
func none() *content {
	return &content{ignition: ignition.Empty(), files: map[string]file{}}
}

// paths returns the files of a configuration, sorted.
func (c *content) paths() []string {
	var out []string
	for name := range c.files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// core returns the SSH keys and the password hash of the user core.
func (c *content) core() (keys []string, hash string) {
	for _, u := range c.ignition.Passwd.Users {
		if u.Name != coreUser {
			continue
		}
		for _, k := range u.SSHAuthorizedKeys {
			keys = append(keys, string(k))
		}
		if u.PasswordHash != nil {
			hash = *u.PasswordHash
		}
	}
	return keys, hash
}

// unitOf returns a unit of a configuration.
func (c *content) unitOf(name string) (types.Unit, bool) {
	i := slices.IndexFunc(c.units, func(u types.Unit) bool { return u.Name == name })
	if i < 0 {
		return types.Unit{}, false
	}
	return c.units[i], true
}

// kernelType returns the kernel of a configuration.
func (c *content) kernelType() string {
	if c.spec.KernelType == "" {
		return "default"
	}
	return c.spec.KernelType
}

// arguments returns the arguments of the kernel, one each.
func (c *content) arguments() (out []string) {
	for _, line := range c.spec.KernelArguments {
		out = append(out, strings.Fields(line)...)
	}
	return out
}
