package hostprograms

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// This file has mount(8), umount(8), swapon(8) and swapoff(8). A server of the lab has its mounts when
// it has booted, on this machine's kernel, and gets no others: what would mount a disk of its hardware
// fails with that reason. What is there already, and what there is not, is answered as on a host.

// codeMount is the exit code for a mount that has failed (mount(8), "Exit status").
const codeMount = 32

// codeSwap is that of swapon and swapoff.
const codeSwap = 255

const noMounts = "not done here: a server of the lab mounts no file systems. An entry of /etc/fstab stays."

// mountInput returns the file that lists the mounts of the caller of mount or umount.
func mountInput([]string) string { return "/proc/self/mounts" }

// mounted is a line of /proc/self/mounts or fstab(5).
type mounted struct{ source, target, fs, options string }

func (m mounted) has(option string) bool {
	return slices.Contains(strings.Split(m.options, ","), option)
}

// mounts returns the lines of a file of mounts.
func mounts(text string) (out []mounted) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for _, f := range lines(text) {
		if len(f) < 3 {
			continue
		}
		m := mounted{unescape.Replace(f[0]), unescape.Replace(f[1]), f[2], "defaults"}
		if len(f) > 3 {
			m.options = f[3]
		}
		out = append(out, m)
	}
	return out
}

// at returns the last of some mounts that is at a path.
func at(all []mounted, target string) (mounted, bool) {
	for _, m := range slices.Backward(all) {
		if m.target == target {
			return m, true
		}
	}
	return mounted{}, false
}

var mountOptions = map[string]string{
	"-a": "all", "--all": "all", "-t": "types=", "--types": "types=", "-o": "options=", "--options": "options=", "-O": "only=", "--test-opts": "only=", "-l": "list", "--show-labels": "list",
	"-r": "ro", "--read-only": "ro", "-w": "rw", "--rw": "rw", "--read-write": "rw", "-v": "verbose", "--verbose": "verbose", "-n": "nothing", "--no-mtab": "nothing", "-i": "nothing", "-s": "nothing",
	"-B": "bind", "--bind": "bind", "-R": "bind", "--rbind": "bind", "-M": "move", "--move": "move", "-L": "label=", "--label": "label=", "-U": "uuid=", "--uuid": "uuid=", "-T": "fstab=", "--fstab": "fstab=",
	"-F": "nothing", "--fork": "nothing", "-f": "fake", "--fake": "fake", "-V": "version", "--version": "version", "-h": "help", "--help": "help", "--source": "source=", "--target": "target=",
	"--make-shared": "make", "--make-slave": "make", "--make-private": "make", "--make-rshared": "make", "--make-rslave": "make", "--make-rprivate": "make", "-m": "mkdir", "--mkdir": "mkdir",
}

// mount lists mounts, and refuses to make others.
func mount(c *Call) int {
	o, err := parse(c.Args, mountOptions, false)
	fails := func(target, format string, args ...any) int {
		c.complain("mount: %s: %s", target, fmt.Sprintf(format, args...))
		return codeMount
	}
	switch {
	case err != nil:
		return c.complain("mount: %v", err)
	case o.has("version"):
		c.print("mount from util-linux 2.38.1 (metalab)\n")
		return 0
	case o.has("help"):
		c.print("Usage:\n mount [-lhV]\n mount -a [options]\n mount [options] [--source] <source> | [--target] <directory>\n mount [options] <source> <directory>\n")
		return 0
	}
	there := mounts(string(c.Input))
	file := "/etc/fstab"
	if f := o.value("fstab"); f != "" {
		file = path.Join(c.Dir, f)
		if path.IsAbs(f) {
			file = f
		}
	}
	words := append(slices.Clone(o.set["source"]), o.words...)
	words = append(words, o.set["target"]...)
	for option, tag := range map[string]string{"label": "LABEL=", "uuid": "UUID="} {
		if o.has(option) {
			words = append([]string{tag + o.value(option)}, words...)
		}
	}
	switch {
	case o.has("all") && len(words) == 0:
		return c.mountAll(o, there, mounts(c.text(file)))
	case len(words) == 0:
		for _, m := range there {
			if t := o.value("types"); t == "" || slices.Contains(strings.Split(t, ","), m.fs) {
				c.print("%s on %s type %s (%s)\n", m.source, m.target, m.fs, m.options)
			}
		}
		return 0
	case len(words) > 2:
		return c.complain("mount: bad usage")
	}
	target := words[len(words)-1]
	source := words[0]
	if len(words) == 1 {
		tab := mounts(c.text(file))
		i := slices.IndexFunc(tab, func(m mounted) bool { return m.target == path.Clean(target) || m.source == target })
		_, mountedNow := at(there, path.Clean(target))
		remounts := slices.Contains(strings.Split(o.value("options"), ","), "remount")
		switch {
		case i < 0 && !(remounts && mountedNow):
			return c.complain("mount: %s: can't find in %s.", target, file)
		case i >= 0:
			source, target = tab[i].source, tab[i].target
		}
	}
	if !path.IsAbs(target) {
		target = path.Join(c.Dir, target)
	}
	target = path.Clean(target)
	now, isMounted := at(there, target)
	asked := strings.FieldsFunc(o.value("options"), func(r rune) bool { return r == ',' })
	switch {
	case !c.mayChange():
		return fails(target, "must be superuser to use mount.")
	case slices.Contains(asked, "remount"):
		if !isMounted {
			return fails(target, "mount point not mounted or bad option.")
		}
		for _, option := range asked {
			if option != "remount" && option != "defaults" && !now.has(option) {
				return fails(target, "remount with %s is %s", option, noMounts)
			}
		}
		return 0
	case o.has("make"):
		return fails(target, "%s", noMounts)
	case !c.exists(target) && !o.has("mkdir"):
		return fails(target, "mount point does not exist.")
	case isMounted && (now.source == source || len(words) == 1):
		return fails(target, "%s already mounted on %s.", now.source, target)
	case strings.HasPrefix(source, "/dev/") && !c.hasDevice(source):
		return fails(target, "special device %s does not exist.", source)
	case o.has("fake"):
		return 0
	}
	return fails(target, "%s", noMounts)
}

// hasDevice reports whether the hardware has a block device.
func (c *Call) hasDevice(name string) bool {
	if strings.HasPrefix(name, "/dev/disk/") || strings.HasPrefix(name, "/dev/mapper/") {
		return true // they are not looked at
	}
	return slices.ContainsFunc(c.Disks(), func(d Disk) bool {
		return name == "/dev/"+d.Name || slices.Contains(d.Partitions, path.Base(name))
	})
}

// installed are the mount points of an installation, whose files a server of the lab has in its root.
var installed = []string{"/", "/boot", "/boot/efi"}

// mountAll mounts what fstab has and is not mounted.
func (c *Call) mountAll(o options, there, tab []mounted) int {
	if !c.mayChange() {
		c.complain("mount: must be superuser to use mount.")
		return codeMount
	}
	code := 0
	for _, m := range tab {
		_, done := at(there, path.Clean(m.target))
		types := o.value("types")
		switch {
		case done, slices.Contains(installed, m.target), m.fs == "swap", m.has("noauto"), m.target == "none", types != "" && !slices.Contains(strings.Split(types, ","), m.fs):
		case m.has("nofail"):
			c.complain("mount: %s: %s", m.target, noMounts)
		default:
			c.complain("mount: %s: %s", m.target, noMounts)
			code = codeMount
		}
	}
	return code
}

// umount refuses to unmount file systems.
func umount(c *Call) int {
	o, err := parse(c.Args, map[string]string{
		"-a": "all", "--all": "all", "-l": "lazy", "--lazy": "lazy", "-f": "force", "--force": "force", "-q": "quiet", "--quiet": "quiet", "-R": "recursive", "--recursive": "recursive", "-r": "ro", "--read-only": "ro",
		"-n": "nothing", "-v": "nothing", "--verbose": "nothing", "-d": "nothing", "-i": "nothing", "-t": "types=", "--types": "types=", "-A": "targets", "--all-targets": "targets", "-V": "version", "--version": "version",
	}, false)
	switch {
	case err != nil:
		return c.complain("umount: %v", err)
	case o.has("version"):
		c.print("umount from util-linux 2.38.1 (metalab)\n")
		return 0
	case o.has("all"):
		c.complain("umount: -a is %s", noMounts)
		return codeMount
	case len(o.words) == 0:
		return c.complain("umount: bad usage")
	}
	there := mounts(string(c.Input))
	code := 0
	for _, w := range o.words {
		target := w
		if !path.IsAbs(target) {
			target = path.Join(c.Dir, target)
		}
		_, isMounted := at(there, path.Clean(target))
		switch {
		case !c.mayChange():
			c.complain("umount: %s: must be superuser to unmount.", w)
		case isMounted:
			c.complain("umount: %s: not done here: a server of the lab keeps the mounts that it has when it has booted.", w)
		case o.has("quiet"):
		case !c.exists(target):
			c.complain("umount: %s: no mount point specified.", w)
		default:
			c.complain("umount: %s: not mounted.", w)
		}
		code = codeMount
	}
	return code
}

var swapOptions = map[string]string{
	"-a": "all", "--all": "all", "-s": "show", "--summary": "show", "--show": "show", "--noheadings": "nothing", "--raw": "nothing", "--bytes": "nothing", "-e": "ifexists", "--ifexists": "ifexists", "-v": "nothing",
	"--verbose": "nothing", "-p": "priority=", "--priority": "priority=", "-d": "nothing", "--discard": "nothing", "-f": "nothing", "--fixpgsz": "nothing", "-o": "options=", "--options": "options=",
	"-L": "label=", "-U": "uuid=", "-T": "fstab=", "--fstab": "fstab=", "-V": "version", "--version": "version",
}

// swapon shows that there is no swap, and refuses to add some.
func swapon(c *Call) int {
	o, err := parse(c.Args, swapOptions, false)
	switch {
	case err != nil:
		return c.complain("swapon: %v", err)
	case o.has("version"):
		c.print("swapon from util-linux 2.38.1 (metalab)\n")
		return 0
	case o.has("show"), len(c.Args) == 0:
		return 0 // no swap, no headings
	case !c.mayChange():
		c.complain("swapon: cannot open: Permission denied")
		return codeSwap
	}
	areas := o.words
	if o.has("all") {
		for _, m := range mounts(c.text("/etc/fstab")) {
			if m.fs == "swap" && !m.has("noauto") && !m.has("nofail") && !(o.has("ifexists") && !c.exists(m.source)) {
				areas = append(areas, m.source)
			}
		}
	} else if len(areas) == 0 {
		areas = []string{o.value("label") + o.value("uuid")}
	}
	for _, a := range areas {
		if path.IsAbs(a) && !strings.HasPrefix(a, "/dev/") && !c.exists(a) {
			c.complain("swapon: cannot open %s: No such file or directory", a)
			continue
		}
		c.complain("swapon: %s: not done here: a server of the lab has no swap. An entry of /etc/fstab stays.", a)
	}
	if len(areas) > 0 {
		return codeSwap
	}
	return 0
}

// swapoff has nothing to switch off.
func swapoff(c *Call) int {
	o, err := parse(c.Args, swapOptions, false)
	switch {
	case err != nil:
		return c.complain("swapoff: %v", err)
	case o.has("version"):
		c.print("swapoff from util-linux 2.38.1 (metalab)\n")
		return 0
	case !c.mayChange():
		c.complain("swapoff: Not superuser.")
		return codeSwap
	case len(o.words) == 0 && !o.has("all"):
		return c.complain("swapoff: bad usage")
	}
	for _, a := range o.words {
		c.complain("swapoff: %s: swapoff failed: Invalid argument", a)
	}
	if len(o.words) > 0 {
		return codeSwap
	}
	return 0
}
