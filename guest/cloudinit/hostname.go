package cloudinit

import (
	"cmp"
	"slices"
	"strings"
)

// names returns the short name of a server and its name with a domain: those of the user data, else of
// the metadata. Where only a short one is given, that of the metadata is the other one (cloud-init,
// util.get_hostname_fqdn).
func (c *config) names(i Instance) (short, fqdn string) {
	first := func(name string) string {
		name, _, _ = strings.Cut(name, ".")
		return name
	}
	switch {
	case c.FQDN != "":
		short, fqdn = cmp.Or(c.Hostname, first(c.FQDN)), c.FQDN
	case strings.Index(c.Hostname, ".") > 0:
		short, fqdn = first(c.Hostname), c.Hostname
	default:
		short, fqdn = cmp.Or(c.Hostname, first(i.Hostname)), i.Hostname
	}
	short = cmp.Or(short, "localhost")
	return short, cmp.Or(fqdn, short)
}

// hosts writes /etc/hosts where manage_etc_hosts says so: all of it, or the line of 127.0.1.1 alone, by
// which Debian names a server.
func (c *config) hosts(short, fqdn string, root Root) {
	const own = "127.0.1.1"
	switch c.ManageHosts {
	case "true", "template":
		root.write("etc/hosts", 0o644, own+" "+fqdn+" "+short+"\n127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\nff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n")
	case "localhost":
		f, _ := root.Get("etc/hosts")
		var others, ours strings.Builder
		for line := range strings.Lines(string(f.Content)) {
			line = strings.TrimSuffix(line, "\n") + "\n"
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != own {
				others.WriteString(line)
				continue
			}
			if len(words) > 1 && words[1] == fqdn && slices.Contains(words[2:], short) {
				return
			}
			ours.WriteString(line)
		}
		root.write("etc/hosts", 0o644, others.String()+ours.String()+own+" "+fqdn+" "+short+"\n")
	}
}
