package debian

import "strings"

// This file has the settings and the files of dpkg and apt.

func (b *builder) packages() {
	b.file("etc/dpkg/dpkg.cfg", "# See dpkg.cfg(5).\nno-debsig\nlog /var/log/dpkg.log\n")
	b.dirs("etc/dpkg/dpkg.cfg.d")
	b.file("etc/dpkg/origins/debian", "Vendor: Debian\nVendor-URL: https://www.debian.org/\nBugs: debbugs://bugs.debian.org\n")
	vendor := "debian"
	if b.family == ubuntu {
		vendor = "ubuntu"
		b.file("etc/dpkg/origins/ubuntu", "Vendor: Ubuntu\nVendor-URL: http://www.ubuntu.com/\nBugs: https://bugs.launchpad.net/ubuntu/+filebug\nParent: Debian\n")
	}
	b.link("etc/dpkg/origins/default", vendor)
	b.dirs("var/lib/dpkg/alternatives", "var/lib/dpkg/info", "var/lib/dpkg/parts", "var/lib/dpkg/triggers", "var/lib/dpkg/updates")
	for _, name := range []string{"status", "available", "diversions", "statoverride"} {
		b.file("var/lib/dpkg/"+name, "")
	}
	b.file("var/lib/dpkg/info/format", "1\n")
	for _, name := range []string{"lock", "lock-frontend"} {
		b.fileAs(0o640, "root:root", "var/lib/dpkg/"+name, "")
	}
	b.file("var/log/dpkg.log", "")
	b.file("var/log/alternatives.log", "")
	b.apt()
	b.file("etc/debconf.conf", debconf)
	b.dirs("var/cache/debconf", "var/lib/ucf", "var/lib/pam")
}

func (b *builder) apt() {
	b.dirs("etc/apt/apt.conf.d", "etc/apt/auth.conf.d", "etc/apt/keyrings", "etc/apt/preferences.d", "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d")
	b.file("etc/apt/apt.conf.d/01autoremove", "// Packages that apt does not remove by itself, see apt.conf(5).\nAPT::NeverAutoRemove { \"^firmware-linux.*\"; \"^linux-firmware$\"; };\n")
	b.file("etc/apt/apt.conf.d/70debconf", "DPkg::Pre-Install-Pkgs {\"[ ! -x /usr/sbin/dpkg-preconfigure ] || /usr/sbin/dpkg-preconfigure --apt || true\";};\n")
	b.file("etc/apt/apt.conf.d/02nocache", "// The caches would be the largest files of a server: they are made anew each time.\nDir::Cache::pkgcache \"\";\nDir::Cache::srcpkgcache \"\";\n")
	b.file("etc/apt/apt.conf.d/15update-stamp", "// Tells when the lists were updated last, of which there may be none.\nAPT::Update::Post-Invoke {\"touch /var/lib/apt/periodic/update-success-stamp || true\";};\n")
	if b.family == ubuntu {
		b.file("etc/apt/apt.conf.d/20auto-upgrades", "APT::Periodic::Update-Package-Lists \"1\";\nAPT::Periodic::Unattended-Upgrade \"1\";\n")
		b.file("etc/apt/apt.conf.d/50unattended-upgrades", "Unattended-Upgrade::Allowed-Origins {\n\t\"${distro_id}:${distro_codename}\";\n\t\"${distro_id}:${distro_codename}-security\";\n};\n")
		b.dirsAs(0o750, "root:adm", "var/log/unattended-upgrades")
	}
	b.sources()
	b.dirs("var/cache/apt/archives", "var/lib/apt/lists", "var/lib/apt/mirrors/partial", "var/lib/apt/periodic", "var/log/apt")
	b.dirsAs(0o700, "_apt:root", "var/cache/apt/archives/partial", "var/lib/apt/lists/partial")
	b.file("var/lib/apt/extended_states", "")
	b.file("var/log/apt/history.log", "")
	b.fileAs(0o640, "root:adm", "var/log/apt/term.log", "")
}

// source is a place with packages.
type source struct{ url, suites string }

// sources adds where packages come from (sources.list(5)): Debian 12 and Ubuntu 22.04 list them on
// lines, the later ones as paragraphs. They are switched off: with a source that a server does not
// reach, each update of the lists would take seconds, and fail.
func (b *builder) sources() {
	components, keyring := "main contrib non-free-firmware", "/usr/share/keyrings/debian-archive-keyring.gpg"
	all := []source{{"http://deb.debian.org/debian", "NAME NAME-updates"}, {"http://deb.debian.org/debian-security", "NAME-security"}}
	if b.family == ubuntu {
		components, keyring = "main restricted universe multiverse", "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
		archive, security := "http://archive.ubuntu.com/ubuntu", "http://security.ubuntu.com/ubuntu"
		if arch := architecture(); arch != "amd64" && arch != "i386" {
			archive, security = "http://ports.ubuntu.com/ubuntu-ports", "http://ports.ubuntu.com/ubuntu-ports"
		}
		all = []source{{archive, "NAME NAME-updates NAME-backports"}, {security, "NAME-security"}}
	}
	name := map[family]string{debian: "debian", ubuntu: "ubuntu"}[b.family] + ".sources"
	var lines, paragraphs []string
	for _, s := range all {
		suites := strings.ReplaceAll(s.suites, "NAME", b.codename)
		for suite := range strings.FieldsSeq(suites) {
			lines = append(lines, "# deb "+s.url+" "+suite+" "+components+"\n")
		}
		paragraphs = append(paragraphs, "Enabled: no\nTypes: deb\nURIs: "+s.url+"\nSuites: "+suites+"\nComponents: "+components+"\nSigned-By: "+keyring+"\n")
	}
	if b.atLeast(13, 24) {
		b.file("etc/apt/sources.list", "# Packages come from what sources.list.d/"+name+" lists.\n")
		b.file("etc/apt/sources.list.d/"+name, "# A server of a lab reaches none of these.\n"+strings.Join(paragraphs, "\n"))
		return
	}
	b.file("etc/apt/sources.list", "# A server of a lab reaches none of these.\n"+strings.Join(lines, ""))
}

// debconf is where the answers to the questions of packages are stored (debconf.conf(5)).
const debconf = `Config: configdb
Templates: templatedb

Name: config
Driver: File
Mode: 644
Reject-Type: password
Filename: /var/cache/debconf/config.dat

Name: passwords
Driver: File
Mode: 600
Backup: false
Required: false
Accept-Type: password
Filename: /var/cache/debconf/passwords.dat

Name: configdb
Driver: Stack
Stack: config, passwords

Name: templatedb
Driver: File
Mode: 644
Filename: /var/cache/debconf/templates.dat
`
