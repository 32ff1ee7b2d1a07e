package elementalsim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/ignition/v2/config/v3_5/types"
	"github.com/vincent-petithory/dataurl"

	"github.com/metalab-dev/metalab/agent/sys"
)

// applyIgnition does what Ignition does with a configuration: directories, files, links, users,
// groups and units (Ignition, "Configuration specification v3.5.0"). It starts the units that
// are enabled, as a boot would.
func (p *plugin) applyIgnition(ctx context.Context, text []byte) error {
	c, report, err := v3_5.ParseCompatibleVersion(text)
	if err != nil {
		return fmt.Errorf("ignition: %w: %s", err, strings.TrimSpace(report.String()))
	}
	if len(c.Storage.Disks)+len(c.Storage.Raid)+len(c.Storage.Filesystems)+len(c.Storage.Luks) > 0 {
		return errors.New("ignition: storage.disks, raid, filesystems and luks are not applied here: use files, directories and links")
	}
	if err := p.applyUsers(ctx, c.Passwd); err != nil {
		return err
	}
	for _, d := range c.Storage.Directories {
		if err := p.System.Put(sys.File{Name: d.Path, Mode: fs.ModeDir | modeOf(d.Mode, 0o755)}); err != nil {
			return err
		}
	}
	for _, f := range c.Storage.Files {
		if err := p.applyFile(f); err != nil {
			return fmt.Errorf("ignition: %s: %w", f.Path, err)
		}
	}
	for _, l := range c.Storage.Links {
		if err := p.System.Put(sys.File{Name: l.Path, Mode: fs.ModeSymlink | 0o777, Link: valueOf(l.Target)}); err != nil {
			return err
		}
	}
	return p.applyUnits(ctx, c.Systemd.Units)
}

func modeOf(m *int, none fs.FileMode) fs.FileMode {
	if m == nil {
		return none
	}
	return fs.FileMode(*m).Perm() //nolint:gosec // the configuration is validated
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (p *plugin) applyFile(f types.File) error {
	var content []byte
	for i, r := range append([]types.Resource{f.Contents}, f.Append...) {
		if i == 1 && f.Contents.Source == nil {
			old, err := p.System.ReadFile(f.Path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			content = old
		}
		source := valueOf(r.Source)
		if source == "" {
			continue
		}
		if !strings.HasPrefix(source, "data:") {
			return fmt.Errorf("source %s is not fetched: use a data URL", source)
		}
		u, err := dataurl.DecodeString(source)
		if err != nil {
			return err
		}
		content = append(content, u.Data...)
	}
	return p.System.Put(sys.File{Name: f.Path, Mode: modeOf(f.Mode, 0o644), Content: content})
}

// applyUsers adds users and groups as cloud-config would.
func (p *plugin) applyUsers(ctx context.Context, c types.Passwd) error {
	if len(c.Users)+len(c.Groups) == 0 {
		return nil
	}
	var doc strings.Builder
	doc.WriteString("#cloud-config\n")
	if len(c.Groups) > 0 {
		doc.WriteString("groups:\n")
		for _, g := range c.Groups {
			fmt.Fprintf(&doc, "- %q\n", g.Name)
		}
	}
	doc.WriteString("users:\n")
	for _, u := range c.Users {
		fmt.Fprintf(&doc, "- name: %q\n  lock_passwd: %v\n", u.Name, u.PasswordHash == nil)
		for key, value := range map[string]*string{"gecos": u.Gecos, "homedir": u.HomeDir, "shell": u.Shell, "hashed_passwd": u.PasswordHash} {
			if value != nil {
				fmt.Fprintf(&doc, "  %s: %q\n", key, *value)
			}
		}
		if u.UID != nil {
			fmt.Fprintf(&doc, "  uid: %d\n", *u.UID)
		}
		if len(u.Groups) > 0 {
			doc.WriteString("  groups:\n")
			for _, g := range u.Groups {
				fmt.Fprintf(&doc, "  - %q\n", g)
			}
		}
		if len(u.SSHAuthorizedKeys) > 0 {
			doc.WriteString("  ssh_authorized_keys:\n")
			for _, k := range u.SSHAuthorizedKeys {
				fmt.Fprintf(&doc, "  - %q\n", k)
			}
		}
	}
	return p.applyCloudConfig(ctx, []byte(doc.String()))
}

const unitDir = "/etc/systemd/system/"

func (p *plugin) applyUnits(ctx context.Context, units []types.Unit) error {
	var enabled []string
	for _, u := range units {
		switch {
		case u.Mask != nil && *u.Mask:
			if err := p.System.Put(sys.File{Name: unitDir + u.Name, Mode: fs.ModeSymlink | 0o777, Link: "/dev/null"}); err != nil {
				return err
			}
			continue
		case u.Contents != nil:
			if err := p.put(unitDir+u.Name, 0o644, *u.Contents); err != nil {
				return err
			}
		}
		for _, d := range u.Dropins {
			if err := p.put(unitDir+u.Name+".d/"+d.Name, 0o644, valueOf(d.Contents)); err != nil {
				return err
			}
		}
		if u.Enabled != nil && *u.Enabled {
			enabled = append(enabled, u.Name)
		}
	}
	for _, name := range enabled {
		if err := p.exec(ctx, "systemctl", "enable", "--now", name); err != nil {
			return err
		}
	}
	return nil
}
