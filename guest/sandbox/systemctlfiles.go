package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// This file has the verbs of systemctl that change unit files and their links.

// where is the directory of links: that of this boot alone with --runtime.
func (c *ctl) where() string {
	if c.has("runtime") {
		return "run/systemd/system"
	}
	return enableDir
}

// put makes a link, and says so if it was not there.
func (c *ctl) put(link, target string) error {
	was := ""
	_ = c.s.files(func(f files) error { was, _ = f.link(link); return nil }) // the next use fails, too
	if was == target {
		return nil
	}
	if err := c.s.Put(Tree{link: {Mode: fs.ModeSymlink | 0o777, Link: target}}); err != nil {
		return err
	}
	if !c.has("quiet") {
		c.complain("Created symlink /%s → %s.", link, target)
	}
	return nil
}

// remove removes files, and says so.
func (c *ctl) remove(names ...string) error {
	for _, n := range names {
		if err := c.s.Remove(n); err != nil {
			return err
		}
		if !c.has("quiet") {
			c.complain("Removed \"/%s\".", n)
		}
	}
	return nil
}

func (c *ctl) enableOne(name string, seen map[string]bool) error {
	seen[name] = true
	if path.IsAbs(name) {
		if err := c.linkOne(name); err != nil {
			return err
		}
		name = path.Base(name)
	}
	u, err := c.s.readUnit(name)
	switch {
	case errors.As(err, new(*noUnitError)):
		return fmt.Errorf("Unit file %s does not exist.", name) //nolint:revive // systemctl's words
	case err != nil:
		return err
	case u.mask:
		return fmt.Errorf("Unit file /%s is masked.", path.Join(enableDir, name)) //nolint:revive // as above
	}
	links := u.installs()
	for _, l := range links {
		if err := c.put(path.Join(c.where(), strings.TrimPrefix(l, enableDir)), "/"+u.file); err != nil {
			return err
		}
	}
	also := u.words("Install.Also")
	for _, a := range also {
		if checkName(a) == nil && !seen[a] && len(seen) < maxSteps {
			if err := c.enableOne(a, seen); err != nil {
				return err
			}
		}
	}
	if isTemplate(u.name) && len(links) == 0 && len(u.words("Install.WantedBy", "Install.RequiredBy")) > 0 {
		return fmt.Errorf("Invalid unit name: %s has no DefaultInstance=: name an instance", u.name)
	}
	if len(links)+len(also) == 0 && !c.has("no-warn") {
		c.complain("The unit files have no installation config (WantedBy=, RequiredBy=, Also=,\nAlias= settings in the [Install] section, and DefaultInstance= for template\nunits). This means they are not meant to be enabled using systemctl.")
	}
	return nil
}

func (c *ctl) enable() {
	for _, a := range c.args {
		name := unitName(a)
		if path.IsAbs(a) {
			name = a
		}
		if err := c.enableOne(name, map[string]bool{}); err != nil {
			c.fails(codeFailed, "Failed to %s unit: %v", c.verb, err)
			return
		}
	}
	if c.has("now") {
		for i, a := range c.args {
			c.args[i] = path.Base(a)
		}
		c.start()
	}
}

// linksTo returns the links in a directory of units that lead to a unit.
func (l *loader) linksTo(name, where string) (out []string) {
	for i, dir := range unitDirs {
		if dir != where {
			continue
		}
		for sub := range l.dirs[i] {
			at := path.Join(dir, sub)
			if to, ok := l.f.link(at); ok && sub != name && path.Base(to) == name {
				out = append(out, at)
			}
			if !slices.Contains([]string{".wants", ".requires", ".upholds"}, path.Ext(sub)) {
				continue
			}
			names, err := l.f.names(at)
			if err != nil {
				continue
			}
			for _, n := range names {
				if t, ok := template(n); n == name || isTemplate(name) && ok && t == name {
					if _, linked := l.f.link(path.Join(at, n)); linked {
						out = append(out, path.Join(at, n))
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func (c *ctl) disableOne(name string) error {
	u, err := c.s.readUnit(name)
	var links []string
	if lerr := c.s.withUnits(func(l *loader) error { links = l.linksTo(name, c.where()); return nil }); lerr != nil {
		return lerr
	}
	if errors.As(err, new(*noUnitError)) {
		if len(links) == 0 {
			return fmt.Errorf("Unit file %s does not exist.", name) //nolint:revive // systemctl's words
		}
		return c.remove(links...)
	}
	if err != nil {
		return err
	}
	if u.mask {
		return fmt.Errorf("Unit file /%s is masked.", u.file) //nolint:revive // as above
	}
	for _, also := range u.words("Install.Also") {
		if checkName(also) == nil && also != name {
			_ = c.s.withUnits(func(l *loader) error { links = append(links, l.linksTo(also, c.where())...); return nil }) // the next use fails, too
		}
	}
	if to, ok := c.linkAt(path.Join(c.where(), name)); ok && !slices.Contains(unitDirs, strings.Trim(path.Dir(to), "/")) {
		links = append(links, path.Join(c.where(), name)) // one that link has made
	}
	slices.Sort(links)
	return c.remove(slices.Compact(links)...)
}

func (c *ctl) linkAt(name string) (target string, ok bool) {
	_ = c.s.files(func(f files) error { target, ok = f.link(name); return nil }) // the next use fails, too
	return target, ok
}

func (c *ctl) disable() {
	for _, name := range c.units() {
		if err := c.disableOne(name); err != nil {
			c.fails(codeFailed, "Failed to disable unit: %v", err)
			return
		}
	}
	if c.has("now") {
		c.stop()
	}
}

// reenable also does preset: Debian's policy enables installed units.
func (c *ctl) reenable() {
	for _, name := range c.units() {
		err := c.disableOne(name)
		if err == nil {
			err = c.enableOne(name, map[string]bool{})
		}
		if err != nil {
			c.fails(codeFailed, "Failed to %s unit: %v", c.verb, err)
			return
		}
	}
}

func (c *ctl) mask() {
	for _, name := range c.units() {
		at := path.Join(c.where(), name)
		err := checkName(name)
		if _, rerr := c.s.readUnit(name); err == nil && errors.As(rerr, new(*noUnitError)) {
			c.complain("Unit %s does not exist, proceeding anyway.", name)
		}
		if _, linked := c.linkAt(at); err == nil && !linked {
			if _, serr := c.s.Stat(at); serr == nil {
				err = fmt.Errorf("File /%s already exists.", at) //nolint:revive // systemctl's words
			}
		}
		if err == nil {
			err = c.put(at, "/dev/null")
		}
		if err != nil {
			c.fails(codeFailed, "Failed to mask unit: %v", err)
			return
		}
	}
	if c.has("now") {
		for _, name := range c.units() {
			if x := c.s.units.find(name); x != nil {
				c.s.halt(x, nil)
				<-x.done
			}
		}
	}
}

func (c *ctl) unmask() {
	for _, name := range c.units() {
		if err := checkName(name); err != nil {
			c.fails(codeFailed, "Failed to unmask unit: %v", err)
			return
		}
		for _, dir := range []string{enableDir, "run/systemd/system"} {
			at := path.Join(dir, name)
			to, linked := c.linkAt(at)
			n, err := c.s.Stat(at)
			if linked && path.Clean(to) == "/dev/null" || err == nil && n.Mode.IsRegular() && c.isEmpty(at) {
				if err := c.remove(at); err != nil {
					c.fails(codeFailed, "Failed to unmask unit: %v", err)
					return
				}
			}
		}
	}
}

func (c *ctl) isEmpty(name string) bool {
	b, err := c.s.readAtMost(name, maxConfig)
	return err == nil && len(b) == 0
}

func (c *ctl) linkOne(file string) error {
	name := path.Base(file)
	if !path.IsAbs(file) || checkName(name) != nil {
		return fmt.Errorf("%s: give the absolute path of a unit file", file)
	}
	if _, err := c.s.Stat(file); err != nil {
		return fmt.Errorf("File %s: No such file or directory", file)
	}
	if slices.Contains(unitDirs, strings.Trim(path.Dir(path.Clean(file)), "/")) {
		return nil
	}
	return c.put(path.Join(c.where(), name), file)
}

func (c *ctl) link() {
	for _, file := range c.args {
		if err := c.linkOne(file); err != nil {
			c.fails(codeFailed, "Failed to link unit: %v", err)
			return
		}
	}
}

// revert removes what the server has instead of a unit of the distribution.
func (c *ctl) revert() {
	for _, name := range c.units() {
		u, err := c.s.readUnit(name)
		if err != nil {
			c.failedTo(name, err)
			return
		}
		vendor := false
		for _, dir := range []string{vendorDir, "usr/local/lib/systemd/system"} {
			_, err := c.s.Stat(path.Join(dir, u.name))
			vendor = vendor || err == nil
		}
		var gone []string
		for _, dir := range unitDirs {
			if !strings.HasPrefix(dir, "etc/") && !strings.HasPrefix(dir, "run/") {
				continue
			}
			for _, at := range []string{path.Join(dir, u.name+".d"), path.Join(dir, u.name)} {
				if strings.HasSuffix(at, ".d") || vendor {
					if _, linked := c.linkAt(at); linked {
						gone = append(gone, at)
					} else if _, err := c.s.Stat(at); err == nil {
						gone = append(gone, at)
					}
				}
			}
		}
		if err := c.remove(gone...); err != nil {
			c.fails(codeFailed, "Failed to revert unit: %v", err)
		}
	}
}

func (c *ctl) addWants() {
	target, suffix := unitName(c.args[0]), "."+strings.TrimPrefix(c.verb, "add-")
	if !slices.Contains(unitTypes, kind(c.args[0])) {
		target = c.args[0] + ".target"
	}
	c.args = c.args[1:]
	for _, name := range c.units() {
		u, err := c.s.readUnit(name)
		if err == nil {
			err = checkName(target)
		}
		if err == nil {
			err = c.put(path.Join(c.where(), target+suffix, name), "/"+u.file)
		}
		if err != nil {
			c.fails(codeFailed, "Failed to add dependency: %v", err)
			return
		}
	}
}

// setProperty records properties in drop-ins, as systemd does: they have the effect of the keys.
func (c *ctl) setProperty() {
	name := unitName(c.args[0])
	u, err := c.s.readUnit(name)
	if err != nil {
		c.fails(codeFailed, "Failed to set unit properties on %s: %v", name, err)
		return
	}
	dir := "etc/systemd/system.control"
	if c.has("runtime") {
		dir = "run/systemd/system.control"
	}
	put := Tree{}
	for _, a := range c.args[1:] {
		key, value, ok := strings.Cut(a, "=")
		section := "Service"
		if effectOf(u.name, "Unit", key) != effectUnknown {
			section = "Unit"
		}
		if !ok || effectOf(u.name, section, key) == effectUnknown || strings.ContainsAny(a, "\n\x00/") && strings.Contains(key, "/") {
			c.fails(codeFailed, "Failed to set unit properties on %s: Cannot set property %s, or unknown property.", name, key)
			return
		}
		put[path.Join(dir, u.name+".d", "50-"+key+".conf")] = File(0o644, fmt.Sprintf("# This is a drop-in unit file extension, created via \"systemctl set-property\"\n[%s]\n%s=%s\n", section, key, strings.ReplaceAll(value, "\n", " ")))
	}
	if err := c.s.Put(put); err != nil {
		c.fails(codeFailed, "Failed to set unit properties on %s: %v", name, err)
		return
	}
	c.warn(name)
}

func (c *ctl) getDefault() {
	u, err := c.s.readUnit("default.target")
	if err != nil {
		c.fails(codeFailed, "Failed to get default target: %v", err)
		return
	}
	if u.name == "default.target" { // it is built in
		u.name = builtinTargets[u.name][0]
	}
	c.print("%s\n", u.name)
}

func (c *ctl) setDefault() {
	name := c.args[0]
	if !slices.Contains(unitTypes, kind(name)) {
		name += ".target"
	}
	u, err := c.s.readUnit(name)
	if err == nil && (u.file == "" || kind(name) != "target") {
		err = &noUnitError{name}
	}
	if err == nil {
		err = c.put(path.Join(enableDir, "default.target"), "/"+u.file)
	}
	if err != nil {
		c.fails(codeFailed, "Failed to set default target: %v", err)
	}
}
