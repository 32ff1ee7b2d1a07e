package elementalsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/elemental"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/guest/cloudinit"
)

// Bootstrap implements elemental.Plugin. The boot is remembered first: Start applies the
// configuration in a later one alone.
func (p *plugin) Bootstrap(ctx context.Context, format string, input []byte) error {
	_, found, err := p.mark(appliedFile)
	if err != nil {
		return err
	}
	if !found {
		boot, err := p.bootID()
		if err != nil {
			return err
		}
		if err := p.setMark(appliedFile, mark{Boot: boot}); err != nil {
			return err
		}
	}
	return p.Dummy.Bootstrap(ctx, format, input)
}

// Start implements elemental.Starter: after the reboot it applies the bootstrap configuration,
// once, and writes the sentinel in each boot, which begins without it. What the configuration wants
// executed at every boot is executed in the later ones, too. A configuration that fails leaves no
// sentinel.
func (p *plugin) Start(ctx context.Context) error {
	boot, err := p.bootID()
	if err != nil {
		return err
	}
	m, _, err := p.mark(appliedFile)
	if err != nil || m.Boot == boot && !m.Done {
		return err
	}
	for _, format := range []string{elemental.FormatCloudConfig, elemental.FormatIgnition} {
		b, err := p.System.ReadFile(elemental.BootstrapFiles[format])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !m.Done {
			apply := p.applyCloudConfig
			if format == elemental.FormatIgnition {
				apply = p.applyIgnition
			}
			m = mark{Boot: boot, Done: true}
			if err := apply(ctx, b); err != nil {
				if ctx.Err() != nil { // the next start applies it again
					return err
				}
				m.Error = fmt.Sprintf("%s: %v", elemental.BootstrapFiles[format], err)
			}
			if err := p.setMark(appliedFile, m); err != nil {
				return err
			}
			if m.Error != "" {
				return fmt.Errorf("the bootstrap configuration is not applied: %s", m.Error)
			}
		}
		if m.Error != "" {
			continue
		}
		if m.Boot != boot && format == elemental.FormatCloudConfig {
			if err := p.everyBoot(ctx, b); err != nil {
				return err
			}
			if err := p.setMark(appliedFile, mark{Boot: boot, Done: true}); err != nil {
				return err
			}
		}
		return p.sentinel()
	}
	return nil
}

// sentinel writes the sentinel of Cluster API if the configuration has not.
func (p *plugin) sentinel() error {
	if _, err := p.System.ReadFile(elemental.SentinelFile); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.put(elemental.SentinelFile, 0o644, "success\n")
}

// accounts are the files that users and groups are read from, and kept, and what names the default
// user.
var accounts = []string{"etc/passwd", "etc/group", "etc/shadow", "etc/hosts", "etc/hostname", "etc/cloud/cloud.cfg"}

// applyCloudConfig does what cloud-init does with a cloud-config: files, users, and commands.
func (p *plugin) applyCloudConfig(ctx context.Context, text []byte) error {
	name, err := p.GetHostname(ctx)
	if err != nil {
		return err
	}
	i := cloudinit.Instance{Hostname: name, UserData: text}
	// The first run finds the files that are appended to, or kept.
	draft := cloudinit.Root{}
	cloudinit.Configure(i, draft)
	root := cloudinit.Root{}
	for name, f := range draft {
		if f.Mode.IsDir() { // it is made with its files
			continue
		}
		accountsAndFiles := append(slices.Clone(accounts), name)
		for _, n := range accountsAndFiles {
			b, err := p.System.ReadFile("/" + n)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			root[n] = cloudinit.File{Content: b, Mode: 0o644, Owner: "root", Group: "root"}
		}
	}
	if f, ok := root["etc/shadow"]; ok {
		f.Mode, f.Group = 0o640, "shadow"
		root["etc/shadow"] = f
	}
	before := map[string][]byte{}
	for name, f := range root {
		before[name] = f.Content
	}
	r := cloudinit.Configure(i, root)
	for name, f := range root {
		if f.Mode.IsDir() {
			continue
		}
		// cloud-init's own files are those of the installation.
		if strings.HasPrefix(name, "var/lib/cloud/") && !slices.Contains(slices.Concat(r.Hooks, r.Scripts, r.BootScripts), "/"+name) || slices.Contains(accounts, name) && bytes.Equal(before[name], f.Content) {
			continue
		}
		if f.Mode&fs.ModeSymlink != 0 {
			if err := p.exec(ctx, "ln", "-sfn", string(f.Content), "/"+name); err != nil {
				return err
			}
			continue
		}
		if err := p.System.Put(sys.File{Name: "/" + name, Mode: f.Mode, Content: f.Content}); err != nil {
			return err
		}
		if f.Owner != "root" && f.Owner != "" {
			if err := p.exec(ctx, "chown", f.Owner+":"+f.Group, "/"+name, path.Dir("/"+name)); err != nil {
				return err
			}
		}
	}
	if err := p.hooks(ctx, r); err != nil {
		return err
	}
	for _, name := range r.Scripts {
		if name == cloudinit.RunScript && plain(r.Run) {
			for _, line := range r.Run {
				if err := p.exec(ctx, strings.Fields(line)...); err != nil {
					return err
				}
			}
			continue
		}
		if err := p.exec(ctx, name); err != nil {
			return err
		}
	}
	return p.bootScripts(ctx, r)
}

// everyBoot executes what a cloud-config, which was applied, wants executed at every boot.
func (p *plugin) everyBoot(ctx context.Context, text []byte) error {
	r := cloudinit.Configure(cloudinit.Instance{UserData: text}, cloudinit.Root{})
	if err := p.hooks(ctx, r); err != nil {
		return err
	}
	return p.bootScripts(ctx, r)
}

// hooks executes the boot hooks and bootcmd.
func (p *plugin) hooks(ctx context.Context, r cloudinit.Result) error {
	for _, name := range r.Hooks {
		if err := p.exec(ctx, slices.Concat([]string{"/usr/bin/env"}, r.HookEnv, []string{name})...); err != nil {
			return err
		}
	}
	for _, line := range r.Boot {
		if err := p.shell(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// bootScripts executes the scripts of every boot.
func (p *plugin) bootScripts(ctx context.Context, r cloudinit.Result) error {
	for _, name := range r.BootScripts {
		if err := p.exec(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// shell runs a line of a shell.
func (p *plugin) shell(ctx context.Context, line string) error {
	if plain([]string{line}) {
		return p.exec(ctx, strings.Fields(line)...)
	}
	return p.exec(ctx, "/bin/sh", "-c", line)
}

// plain reports whether lines of a shell are programs of systemd with their arguments: an
// emulated server executes these without a shell.
func plain(lines []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool {
		return !strings.HasPrefix(line, "systemctl ") && !strings.HasPrefix(line, "hostnamectl ") || strings.ContainsAny(line, "|&;<>()$`\\\"'*?[]#~=%{}\n")
	})
}
