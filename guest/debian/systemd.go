package debian

// systemd adds the settings of systemd, which are all at their defaults, and the directories by
// which units are enabled: which there are is a matter of the programs.
func (b *builder) systemd() {
	for name, section := range map[string]string{
		"system": "Manager", "user": "Manager", "journald": "Journal", "logind": "Login", "resolved": "Resolve", "timesyncd": "Time", "networkd": "Network", "sleep": "Sleep",
	} {
		b.file("etc/systemd/"+name+".conf", "# See systemd-system.conf(5), journald.conf(5) and the like.\n["+section+"]\n")
		b.dirs("etc/systemd/" + name + ".conf.d")
	}
	for _, target := range []string{"multi-user", "timers", "sysinit", "sockets", "paths", "getty", "network-online", "cloud-init"} {
		b.dirs("etc/systemd/system/" + target + ".target.wants")
	}
	b.dirs("etc/systemd/user", "etc/systemd/network")
}

// network adds where the configuration of the network is.
func (b *builder) network() {
	switch b.family {
	case ubuntu:
		b.dirs("etc/netplan", "etc/networkd-dispatcher/routable.d", "etc/networkd-dispatcher/off.d")
	case debian:
		b.file("etc/network/interfaces", "# See interfaces(5).\nsource /etc/network/interfaces.d/*\n\nauto lo\niface lo inet loopback\n")
		b.dirs("etc/network/interfaces.d", "etc/network/if-pre-up.d", "etc/network/if-up.d", "etc/network/if-down.d", "etc/network/if-post-down.d")
	}
}
