package osimage

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/metalab-dev/metalab/controller/machineconfig/ignition"
)

// Permission bits of files and directories without any (Ignition v3.5.0, storage).
const (
	fileMode      = 0o644
	directoryMode = 0o755
)

// unitDir is where a configuration's units are.
const unitDir = "etc/systemd/system"

// configure adds the files, links and units of a MachineConfig. accounts returns the content of
// a file of the root below, for names of users and the units that it has.
func configure(l *layer, m *mcv1.MachineConfig, content func(name string) ([]byte, error)) error {
	if err := supported(m); err != nil {
		return err
	}
	c, err := ignition.Parse(m.Spec.Config.Raw)
	if err == nil {
		err = ignition.Check(c)
	}
	if err != nil {
		return permanent(fmt.Errorf("MachineConfig %s: %w", m.Name, err))
	}
	w := configWriter{layer: l, content: content}
	for _, step := range []func(types.Config) error{w.directories, w.files, w.links, w.units} {
		if err := step(c); err != nil {
			return permanent(fmt.Errorf("MachineConfig %s: %w", m.Name, err))
		}
	}
	return w.config(m)
}

// supported returns an error for what needs packages: the lab's images have none.
func supported(m *mcv1.MachineConfig) error {
	var errs []error
	if k := m.Spec.KernelType; k != "" && k != "default" {
		errs = append(errs, fmt.Errorf("kernelType %s needs the packages of that kernel", k))
	}
	if len(m.Spec.Extensions) > 0 {
		errs = append(errs, fmt.Errorf("extensions %s need packages", strings.Join(m.Spec.Extensions, ", ")))
	}
	if err := errors.Join(errs...); err != nil {
		return permanent(fmt.Errorf("MachineConfig %s: the lab's builder installs no packages: %w", m.Name, err))
	}
	return nil
}

type configWriter struct {
	layer   *layer
	content func(name string) ([]byte, error)
}

// owner returns the IDs of a node's user and group. Names are those of the root below.
func (w configWriter) owner(n types.Node) (uid, gid int, err error) {
	if uid, err = w.id("etc/passwd", n.User.ID, n.User.Name); err != nil {
		return 0, 0, err
	}
	gid, err = w.id("etc/group", n.Group.ID, n.Group.Name)
	return uid, gid, err
}

func (w configWriter) id(file string, id *int, name *string) (int, error) {
	switch {
	case id != nil:
		return *id, nil
	case name == nil || *name == "" || *name == "root":
		return 0, nil
	}
	b, err := w.content(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) > 2 && f[0] == *name {
			return strconv.Atoi(f[2])
		}
	}
	return 0, fmt.Errorf("/%s of the base image does not have %q", file, *name)
}

func mode(given *int, usual int64) int64 {
	if given == nil {
		return usual
	}
	return int64(*given) & 0o7777
}

func (w configWriter) directories(c types.Config) error {
	for _, d := range c.Storage.Directories {
		uid, gid, err := w.owner(d.Node)
		if err == nil {
			err = w.layer.add(d.Path, entry{kind: tar.TypeDir, mode: mode(d.Mode, directoryMode), uid: uid, gid: gid})
		}
		if err != nil {
			return fmt.Errorf("directory %q: %w", d.Path, err)
		}
	}
	return nil
}

func (w configWriter) files(c types.Config) error {
	for _, f := range c.Storage.Files {
		if err := w.file(f); err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
	}
	return nil
}

func (w configWriter) file(f types.File) error {
	if len(f.Append) > 0 {
		return errors.New("append is not supported: give the complete content")
	}
	resolved, err := w.layer.under.resolve(f.Path)
	if err != nil {
		return err
	}
	if _, has := w.layer.under[resolved]; has && f.Overwrite != nil && !*f.Overwrite {
		return errors.New("the base image has it, and overwrite is false")
	}
	b, err := ignition.Content(f.Contents)
	if err != nil {
		return err
	}
	uid, gid, err := w.owner(f.Node)
	if err != nil {
		return err
	}
	return w.layer.add(f.Path, entry{kind: tar.TypeReg, mode: mode(f.Mode, fileMode), uid: uid, gid: gid, content: b, size: int64(len(b))})
}

func (w configWriter) links(c types.Config) error {
	for _, l := range c.Storage.Links {
		if l.Target == nil || l.Hard != nil && *l.Hard {
			return fmt.Errorf("link %q: only symbolic links with a target are supported", l.Path)
		}
		uid, gid, err := w.owner(l.Node)
		if err == nil {
			err = w.layer.add(l.Path, entry{kind: tar.TypeSymlink, mode: 0o777, uid: uid, gid: gid, link: *l.Target})
		}
		if err != nil {
			return fmt.Errorf("link %q: %w", l.Path, err)
		}
	}
	return nil
}

func (w configWriter) units(c types.Config) error {
	for _, u := range c.Systemd.Units {
		if err := w.unit(u); err != nil {
			return fmt.Errorf("unit %q: %w", u.Name, err)
		}
	}
	return nil
}

// unit writes a unit, its drop-ins and the links by which it is enabled or masked (systemctl(1),
// enable and mask).
func (w configWriter) unit(u types.Unit) error {
	name := path.Join(unitDir, u.Name)
	for _, d := range u.Dropins {
		if d.Contents == nil {
			continue
		}
		if err := w.text(path.Join(name+".d", d.Name), *d.Contents); err != nil {
			return err
		}
	}
	if u.Mask != nil && *u.Mask {
		return w.layer.add(name, entry{kind: tar.TypeSymlink, mode: 0o777, link: "/dev/null"})
	}
	if u.Contents != nil && *u.Contents != "" {
		if err := w.text(name, *u.Contents); err != nil {
			return err
		}
	}
	if u.Enabled == nil || !*u.Enabled {
		return nil
	}
	text, target, err := w.unitText(u)
	if err != nil {
		return err
	}
	for dir, targets := range wanted(text) {
		for _, t := range targets {
			link := path.Join(unitDir, t+dir, u.Name)
			if err := w.layer.add(link, entry{kind: tar.TypeSymlink, mode: 0o777, link: target}); err != nil {
				return err
			}
		}
	}
	return nil
}

// unitText returns the text of a unit, which the configuration or the base image has, and where
// it is.
func (w configWriter) unitText(u types.Unit) (text, at string, err error) {
	if u.Contents != nil && *u.Contents != "" {
		return *u.Contents, "/" + path.Join(unitDir, u.Name), nil
	}
	for _, dir := range []string{unitDir, "usr/lib/systemd/system", "lib/systemd/system"} {
		name := path.Join(dir, u.Name)
		if e, has := w.layer.under[name]; has && e.kind == tar.TypeReg {
			b, err := w.content(name)
			return string(b), "/" + name, err
		}
	}
	return "", "", errors.New("it is enabled, but neither the configuration nor the base image has its text")
}

// wanted returns the units that want or require a unit, by the suffix of the directory in which
// its links are (systemd.unit(5), [Install]).
func wanted(text string) map[string][]string {
	suffixes := map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires"}
	out, section := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if suffix := suffixes[strings.TrimSpace(key)]; section == "[Install]" && suffix != "" {
			for _, t := range strings.Fields(value) {
				if !strings.Contains(t, "/") && !slices.Contains(out[suffix], t) {
					out[suffix] = append(out[suffix], t)
				}
			}
		}
	}
	return out
}

func (w configWriter) text(name, content string) error {
	return w.layer.add(name, entry{kind: tar.TypeReg, mode: fileMode, content: []byte(content), size: int64(len(content))})
}

// config writes the MachineConfig itself. What the API has added to its metadata would make the
// digest another one.
func (w configWriter) config(m *mcv1.MachineConfig) error {
	out := mcv1.MachineConfig{Spec: m.Spec}
	out.APIVersion, out.Kind, out.Name = mcv1.GroupVersion.String(), "MachineConfig", m.Name
	b, err := json.Marshal(&out)
	if err != nil {
		return fmt.Errorf("MachineConfig %s: %w", m.Name, err)
	}
	return w.text(ConfigFile, string(b))
}
