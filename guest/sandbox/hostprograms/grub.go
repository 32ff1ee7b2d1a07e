package hostprograms

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// GrubConfig is the file that update-grub writes, without the leading slash.
const GrubConfig = "boot/grub/grub.cfg"

// grubDirs has settings beside those of /etc/default/grub.
const grubDir = "/etc/default/grub.d"

// updateGrub is update-grub(8).
func updateGrub(c *Call) int {
	if len(c.Args) > 0 {
		return c.complain("update-grub: it takes no arguments here")
	}
	return c.writeGrub("/" + GrubConfig)
}

// grubMkconfig is grub-mkconfig(8).
func grubMkconfig(c *Call) int {
	o, err := parse(c.Args, map[string]string{"-o": "output=", "--output": "output=", "-V": "version", "--version": "version", "-h": "help", "--help": "help"}, false)
	switch {
	case err != nil:
		return c.complain("%s: %v", c.Name, err)
	case o.has("version"):
		c.print("%s (GRUB) 2.06 (metalab)\n", c.Name)
		return 0
	case o.has("help"):
		c.print("Usage: %s [-o FILE]\nGenerate a grub config file\n", c.Name)
		return 0
	case len(o.words) > 0:
		return c.complain("%s: unexpected argument '%s'", c.Name, o.words[0])
	}
	to := o.value("output")
	if to != "" && !path.IsAbs(to) {
		to = path.Join(c.Dir, to)
	}
	return c.writeGrub(to)
}

// writeGrub makes a configuration of the settings and the kernels, and writes it to a file, or to
// standard output.
func (c *Call) writeGrub(to string) int {
	if !c.mayChange() {
		return c.complain("%s: you must run this as super-user", c.Name)
	}
	c.complain("Generating grub configuration file ...")
	text, err := c.grubConfig()
	if err != nil {
		return c.complain("%s: %v", c.Name, err)
	}
	if to == "" {
		c.print("%s", text)
	} else if err := c.put(to, 0o600, text); err != nil {
		return c.complain("%s: %v", c.Name, err)
	}
	c.complain("done")
	return 0
}

// grubScripts are the scripts of /etc/grub.d whose part this program has.
var grubScripts = []string{"00_header", "05_debian_theme", "10_linux", "10_linux_zfs", "20_linux_xen", "20_memtest86+", "25_bli", "30_os-prober", "30_uefi-firmware", "35_fwupd", "40_custom", "41_custom", "README"}

// grubConfig returns the text of a configuration.
func (c *Call) grubConfig() (string, error) {
	settings := map[string]string{}
	for _, file := range append([]string{"/etc/default/grub"}, c.configFiles(".cfg", grubDir)...) {
		if file != "/etc/default/grub" {
			c.complain("Sourcing file `%s'", file)
		}
		if err := assign(c.text(file), settings); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	names, err := c.ReadDir("/boot")
	if err != nil {
		return "", err
	}
	var versions []string
	for _, n := range names {
		if v, ok := strings.CutPrefix(n, "vmlinuz-"); ok {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return compareVersions(b, a) })
	others, _ := c.ReadDir("/etc/grub.d") // there may be none
	for _, n := range others {
		if st, err := c.Stat("/etc/grub.d/" + n); err == nil && st.Mode.Perm()&0o111 != 0 && !slices.Contains(grubScripts, n) {
			c.complain("Warning: /etc/grub.d/%s is not run here.", n)
		}
	}
	var b strings.Builder
	b.WriteString("# update-grub has made this file of /etc/default/grub: do not edit it.\n")
	start, timeout := settings["GRUB_DEFAULT"], settings["GRUB_TIMEOUT"]
	if start == "" {
		start = "0"
	}
	if timeout == "" {
		timeout = "5"
	}
	fmt.Fprintf(&b, "set default=%q\nset timeout=%s\n", start, timeout)
	if style := settings["GRUB_TIMEOUT_STYLE"]; style != "" {
		fmt.Fprintf(&b, "set timeout_style=%s\n", style)
	}
	name := settings["GRUB_DISTRIBUTOR"]
	if name == "" {
		os := map[string]string{}
		_ = assign(c.text("/etc/os-release"), os) // else the name is Linux
		name = os["NAME"]
	}
	title := strings.TrimSpace(strings.ReplaceAll(name, "'", "") + " GNU/Linux")
	if strings.HasSuffix(name, "GNU/Linux") || name == "Ubuntu" {
		title = name
	}
	entry := func(indent, title, v, arguments string) {
		line := strings.TrimRight("linux /boot/vmlinuz-"+v+" root="+c.rootSource()+" ro "+arguments, " ")
		fmt.Fprintf(&b, "%smenuentry '%s' {\n%s\t%s\n", indent, title, indent, line)
		if c.exists("/boot/initrd.img-" + v) {
			fmt.Fprintf(&b, "%s\tinitrd /boot/initrd.img-%s\n", indent, v)
		}
		b.WriteString(indent + "}\n")
	}
	common := settings["GRUB_CMDLINE_LINUX"]
	all := strings.TrimSpace(common + " " + settings["GRUB_CMDLINE_LINUX_DEFAULT"])
	for i, v := range versions {
		c.complain("Found linux image: /boot/vmlinuz-%s", v)
		if c.exists("/boot/initrd.img-" + v) {
			c.complain("Found initrd image: /boot/initrd.img-%s", v)
		}
		if i == 0 {
			entry("", title, v, all)
			fmt.Fprintf(&b, "submenu 'Advanced options for %s' {\n", title)
		}
		entry("\t", title+", with Linux "+v, v, all)
		if settings["GRUB_DISABLE_RECOVERY"] != "true" {
			entry("\t", title+", with Linux "+v+" (recovery mode)", v, strings.TrimSpace("single "+common))
		}
	}
	if len(versions) > 0 {
		b.WriteString("}\n")
	}
	if start != "0" && defaultLine(b.String()) == "" {
		c.complain("Warning: GRUB_DEFAULT=%s: a server of the lab boots the first entry.", start)
	}
	return b.String(), nil
}

// Cmdline returns the command line of the kernel that a text of grub.cfg boots (proc_cmdline(5)): that
// of the default entry, or the first. "": it has none.
func Cmdline(config string) string {
	line := defaultLine(config)
	if line == "" {
		for l := range strings.Lines(config) {
			if f := strings.Fields(l); line == "" && len(f) > 1 && f[0] == "linux" {
				line = strings.Join(f[1:], " ")
			}
		}
	}
	if line == "" {
		return ""
	}
	line = "BOOT_IMAGE=" + line
	return line[:min(len(line), maxCmdline)]
}

// maxCmdline is how many bytes a kernel takes (Linux, COMMAND_LINE_SIZE).
const maxCmdline = 2047

// defaultLine returns what the default entry of a configuration boots, if its number or title stands
// for an entry outside submenus.
func defaultLine(config string) string {
	want, n, depth, inside := "0", -1, 0, false
	for l := range strings.Lines(config) {
		f := strings.Fields(l)
		switch {
		case len(f) == 0:
		case f[0] == "set" && len(f) > 1 && strings.HasPrefix(f[1], "default="):
			_, v, _ := strings.Cut(strings.TrimSpace(l), "=")
			want = strings.Trim(v, `"'`)
		case f[len(f)-1] == "{":
			if depth == 0 {
				n++
				title := strings.Split(l, "'")
				inside = f[0] == "menuentry" && (want == strconv.Itoa(n) || len(title) > 1 && want == title[1])
			}
			depth++
		case f[0] == "}":
			depth--
		case f[0] == "linux" && inside && depth == 1 && len(f) > 1:
			return strings.Join(f[1:], " ")
		}
	}
	return ""
}

// rootSource returns what the kernel mounts as its root.
func (c *Call) rootSource() string {
	for _, f := range lines(c.text("/etc/fstab")) {
		if len(f) > 2 && f[1] == "/" {
			return f[0]
		}
	}
	return "LABEL=root"
}

// compareVersions compares versions of kernels: numbers as such.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		x, restA := digits(a)
		y, restB := digits(b)
		switch {
		case x != "" && y != "":
			if x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0"); len(x) != len(y) {
				return len(x) - len(y)
			} else if x != y {
				return strings.Compare(x, y)
			}
			a, b = restA, restB
		case a[0] != b[0]:
			return strings.Compare(a[:1], b[:1])
		default:
			a, b = a[1:], b[1:]
		}
	}
	return len(a) - len(b)
}

func digits(s string) (number, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// grubInstall has nothing to write: the firmware of a server of the lab boots its disks without GRUB.
func grubInstall(c *Call) int {
	known := map[string]string{
		"--target": "target=", "--efi-directory": "efi=", "--bootloader-id": "id=", "--boot-directory": "boot=", "--root-directory": "root=", "--modules": "modules=",
		"--recheck": "nothing", "--force": "nothing", "--no-nvram": "nothing", "--removable": "nothing", "--no-floppy": "nothing", "--uefi-secure-boot": "nothing", "--no-uefi-secure-boot": "nothing",
		"--force-extra-removable": "nothing", "-v": "nothing", "--verbose": "nothing", "--skip-fs-probe": "nothing",
	}
	o, err := parse(c.Args, known, false)
	efi := strings.HasSuffix(o.value("target"), "-efi")
	switch {
	case err != nil:
		return c.complain("grub-install: %v", err)
	case !c.mayChange():
		return c.complain("grub-install: error: Permission denied.")
	case len(o.words) == 0 && !efi:
		return c.complain("grub-install: error: install device isn't specified.")
	case len(o.words) > 1:
		return c.complain("grub-install: error: more than one install device?.")
	}
	platform := o.value("target")
	if platform == "" {
		platform = "i386-pc"
	}
	for _, device := range o.words {
		if !slices.ContainsFunc(c.Disks(), func(d Disk) bool { return "/dev/"+d.Name == device || slices.Contains(d.Partitions, path.Base(device)) }) {
			return c.complain("grub-install: error: cannot find a GRUB drive for %s.  Check your device.map.", device)
		}
	}
	c.complain("Installing for %s platform.", platform)
	c.complain("Installation finished. No error reported.")
	c.complain("A server of the lab boots without GRUB: nothing was written to the disk.")
	return 0
}

// root is the file system of the server's root, as GRUB sees it.
type root struct {
	disk, device string // "sda", "sda1"
	number       string
}

// rootOf returns the root: the first partition of the first disk, if fstab names no device.
func (c *Call) rootOf() (r root, ok bool) {
	disks := c.Disks()
	source, named := strings.CutPrefix(c.rootSource(), "/dev/")
	for _, d := range disks {
		i := slices.Index(d.Partitions, source)
		if named && i >= 0 {
			return root{d.Name, source, strings.TrimPrefix(strings.TrimPrefix(source, d.Name), "p")}, true
		}
	}
	if len(disks) == 0 {
		return r, false
	}
	r = root{disks[0].Name, disks[0].Name + "1", "1"}
	if last := r.disk[len(r.disk)-1]; last >= '0' && last <= '9' {
		r.device = r.disk + "p1"
	}
	if p := disks[0].Partitions; len(p) > 0 {
		r.device, r.number = p[0], strings.TrimPrefix(strings.TrimPrefix(p[0], r.disk), "p")
	}
	return r, true
}

// grubProbe answers what GRUB finds of a path's file system (grub-probe(8)). A server of the lab has
// one, its root.
func grubProbe(c *Call) int {
	o, err := parse(c.Args, map[string]string{"-t": "target=", "--target": "target=", "-d": "device", "--device": "device", "-m": "map=", "--device-map": "map=", "-v": "verbose", "--verbose": "verbose", "-0": "null", "-V": "version", "--version": "version"}, false)
	switch {
	case err != nil:
		return c.complain("grub-probe: %v", err)
	case o.has("version"):
		c.print("grub-probe (GRUB) 2.06 (metalab)\n")
		return 0
	case len(o.words) == 0:
		return c.complain("grub-probe: error: No path or device is specified.")
	}
	r, ok := c.rootOf()
	for _, at := range o.words {
		if o.has("device") {
			if ok = ok && (at == "/dev/"+r.device || at == "/dev/"+r.disk); !ok {
				return c.complain("grub-probe: error: cannot find a GRUB drive for %s.  Check your device.map.", at)
			}
		} else if !c.exists(at) {
			return c.complain("grub-probe: error: failed to get canonical path of `%s'.", at)
		} else if !ok {
			return c.complain("grub-probe: error: cannot find a device for %s (is /dev mounted?).", at)
		}
		answers, index := map[string]string{}, slices.IndexFunc(c.Disks(), func(d Disk) bool { return d.Name == r.disk })
		hint := fmt.Sprintf("hd%d,gpt%s", index, r.number)
		fs, source := "ext2", c.rootSource()
		for _, f := range lines(c.text("/etc/fstab")) {
			if len(f) > 2 && f[1] == "/" && !strings.HasPrefix(f[2], "ext") {
				fs = f[2]
			}
		}
		uuid, named := strings.CutPrefix(source, "UUID=")
		if id := strings.TrimSpace(c.text("/etc/machine-id")); !named && len(id) == 32 {
			uuid = id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
		} else if !named {
			uuid = ""
		}
		label, _ := strings.CutPrefix(source, "LABEL=")
		if label == source {
			label = ""
		}
		for target, answer := range map[string]string{
			"device": "/dev/" + r.device, "disk": "/dev/" + r.disk, "fs": fs, "fs_uuid": uuid, "fs_label": label, "partmap": "gpt", "abstraction": "", "drive": fmt.Sprintf("(hostdisk//dev/%s,gpt%s)", r.disk, r.number),
			"compatibility_hint": hint, "bios_hints": hint, "efi_hints": hint, "hints_string": "--hint-bios=" + hint + " --hint-efi=" + hint + " --hint-baremetal=ahci" + strings.TrimPrefix(hint, "hd") + " ",
		} {
			answers[target] = answer
		}
		target := o.value("target")
		if target == "" {
			target = "fs"
		}
		answer, known := answers[target]
		if !known {
			return c.complain("grub-probe: error: the target `%s' is not done here.", target)
		}
		c.print("%s\n", answer)
	}
	return 0
}
