package hostprograms

import (
	"slices"
	"strings"
)

// updateInitramfs is update-initramfs(8): it stamps the names that stand for images in /boot.
func updateInitramfs(c *Call) int {
	o, err := parse(c.Args, map[string]string{"-u": "u", "-c": "c", "-d": "d", "-k": "k=", "-b": "b=", "-t": "t", "-v": "v", "-s": "s", "-h": "h"}, false)
	switch {
	case err != nil:
		return c.complain("update-initramfs: %v", err)
	case o.has("h"):
		c.print("Usage: update-initramfs {-c|-d|-u} [-k version] [-v]\n")
		return 0
	case o.has("b"):
		return c.complain("update-initramfs: -b is not done here: images are in /boot")
	case !o.has("u") && !o.has("c") && !o.has("d") || len(o.words) > 0:
		return c.complain("Usage: update-initramfs {-c|-d|-u} [-k version] [-v]")
	case !c.mayChange():
		return c.complain("update-initramfs: you must be the superuser")
	}
	if o.has("u") {
		for _, w := range lines(c.text("/etc/initramfs-tools/update-initramfs.conf")) {
			if w[0] == "update_initramfs=no" {
				c.print("update-initramfs: Not updating initramfs.\n")
				return 0
			}
		}
	}
	names, err := c.ReadDir("/boot")
	if err != nil {
		return c.complain("update-initramfs: %v", err)
	}
	var kernels, versions []string
	for _, n := range names {
		if v, ok := strings.CutPrefix(n, "initrd.img-"); ok {
			versions = append(versions, v)
		}
		if v, ok := strings.CutPrefix(n, "vmlinuz-"); ok {
			kernels = append(kernels, v)
		}
	}
	slices.SortFunc(versions, compareVersions)
	asked := o.set["k"]
	switch {
	case len(asked) == 0 && o.has("u") && len(versions) > 0:
		asked = versions[len(versions)-1:]
	case len(asked) == 0:
		return c.complain("update-initramfs: no kernel version: give -k VERSION")
	case slices.Contains(asked, "all") && o.has("c"):
		asked = kernels
	case slices.Contains(asked, "all"):
		asked = versions
	}
	for _, v := range asked {
		if v == "" || strings.Contains(v, "/") {
			return c.complain("update-initramfs: %q is no version of a kernel", v)
		}
		file, there := "/boot/initrd.img-"+v, slices.Contains(versions, v)
		switch {
		case o.has("d") && !there:
			return c.complain("Cannot delete %s: it does not exist", file)
		case o.has("d"):
			c.print("update-initramfs: Deleting %s\n", file)
			err = c.Remove(file)
		case o.has("u") && !there:
			return c.complain("%s does not exist. Cannot update.", file)
		default:
			c.print("update-initramfs: Generating %s\n", file)
			text := "A server of a lab does not load this file.\n"
			if b := c.text(file); b != "" {
				text = b
			}
			err = c.put(file, 0o644, text)
		}
		if err != nil {
			return c.complain("update-initramfs: %v", err)
		}
	}
	return 0
}
