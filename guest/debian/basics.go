package debian

import (
	"fmt"
	"strings"
)

// basics adds what every Linux has below /etc, and the directories of the root.
func (b *builder) basics() {
	b.dirs("boot", "etc", "home", "media", "mnt", "opt", "srv", "usr", "var")
	b.dirsAs(0o700, "root:root", "root")
	b.file("etc/fstab", "# FILE-SYSTEM MOUNT-POINT TYPE OPTIONS DUMP PASS, see fstab(5).\n"+b.fileSystems())
	b.link("etc/mtab", "../proc/self/mounts")
	b.file("etc/hostname", "localhost\n")
	b.file("etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\nff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n")
	b.file("etc/host.conf", "multi on\n")
	b.file("etc/networks", "default 0.0.0.0\nloopback 127.0.0.0\nlink-local 169.254.0.0\n")
	// A host with systemd-resolved has a link to a file in /run, which it makes at each boot.
	b.file("etc/resolv.conf", "# Nothing answers: a server of a lab reaches no name server.\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n")
	b.file("etc/nsswitch.conf", b.nameServices())
	b.file("etc/gai.conf", "# See gai.conf(5): without rules here, those of RFC 3484 hold.\n")
	b.link("etc/localtime", "/usr/share/zoneinfo/Etc/UTC")
	b.file("etc/adjtime", "0.0 0 0.0\n0\nUTC\n")
	b.file("etc/login.defs", b.loginDefs())
	shells := "/bin/sh\n/usr/bin/sh\n/bin/bash\n/usr/bin/bash\n"
	if b.isDebian() {
		shells += "/bin/rbash\n/usr/bin/rbash\n/bin/dash\n/usr/bin/dash\n"
	}
	b.file("etc/shells", "# Shells that a user may have, see shells(5).\n"+shells)
	b.file("etc/default/useradd", "SHELL=/bin/sh\n")
	b.file("etc/issue", b.prettyName()+" \\n \\l\n\n")
	b.file("etc/issue.net", b.prettyName()+"\n")
	b.dirs("etc/opt", "etc/xdg", "etc/ssl/certs", "etc/alternatives", "etc/ld.so.conf.d", "etc/tmpfiles.d", "etc/binfmt.d", "etc/init.d")
	b.dirsAs(0o700, "root:root", "etc/ssl/private")
	b.file("etc/ssl/openssl.cnf", openssl)
	b.file("etc/inputrc", "# See readline(3).\nset input-meta on\nset output-meta on\n")
}

// fileSystems returns the file systems of the image's partitions.
func (b *builder) fileSystems() string {
	switch b.family {
	case ubuntu:
		return "LABEL=cloudimg-rootfs / ext4 discard,commit=30,errors=remount-ro 0 1\nLABEL=UEFI /boot/efi vfat umask=0077 0 1\n"
	case debian:
		return "PARTUUID=5c0cf78e-2a58-4d6b-9f39-0d3b6d3f2b01 / ext4 rw,discard,errors=remount-ro,x-systemd.growfs 0 1\n" +
			"PARTUUID=5c0cf78e-2a58-4d6b-9f39-0d3b6d3f2b15 /boot/efi vfat defaults 0 0\n"
	}
	return "LABEL=root / ext4 defaults 0 1\n"
}

func (b *builder) nameServices() string {
	var out strings.Builder
	for _, line := range [][2]string{
		{"passwd", "files systemd"}, {"group", "files systemd"}, {"shadow", "files systemd"}, {"gshadow", "files systemd"}, {"hosts", "files dns"},
		{"networks", "files"}, {"protocols", "files"}, {"services", "files"}, {"ethers", "files"}, {"rpc", "files"},
	} {
		fmt.Fprintf(&out, "%-12s %s\n", line[0]+":", line[1])
	}
	return out.String()
}

// loginDefs returns the settings of the programs that make accounts (login.defs(5)).
func (b *builder) loginDefs() string {
	text := `# See login.defs(5).
MAIL_DIR /var/mail
ENV_SUPATH PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV_PATH PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games
TTYGROUP tty
TTYPERM 0600
ERASECHAR 0177
KILLCHAR 025
UMASK 022
PASS_MAX_DAYS 99999
PASS_MIN_DAYS 0
PASS_WARN_AGE 7
UID_MIN 1000
UID_MAX 60000
GID_MIN 1000
GID_MAX 60000
SUB_UID_MIN 100000
SUB_UID_MAX 600100000
SUB_UID_COUNT 65536
SUB_GID_MIN 100000
SUB_GID_MAX 600100000
SUB_GID_COUNT 65536
LOGIN_RETRIES 5
LOGIN_TIMEOUT 60
CHFN_RESTRICT rwh
DEFAULT_HOME yes
# A new user gets a group of its own.
USERGROUPS_ENAB yes
`
	switch {
	case b.family == ubuntu:
		text += "HOME_MODE 0750\nENCRYPT_METHOD SHA512\n"
	case b.family == debian && b.version >= 13:
		text += "HOME_MODE 0700\nENCRYPT_METHOD YESCRYPT\n"
	case b.family == debian:
		text += "ENCRYPT_METHOD SHA512\n"
	default:
		text += "HOME_MODE 0700\nCREATE_HOME yes\nENCRYPT_METHOD SHA512\n"
	}
	return text
}

// openssl is as much as the program needs to make requests and certificates (config(5ssl)).
const openssl = `[req]
default_bits = 2048
distinguished_name = req_distinguished_name
x509_extensions = v3_ca
string_mask = utf8only

[req_distinguished_name]
countryName = Country (two letters)
stateOrProvinceName = State
localityName = Locality
organizationName = Organization
organizationalUnitName = Unit
commonName = Common name
emailAddress = Email

[v3_ca]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always,issuer
basicConstraints = critical,CA:true

[v3_req]
basicConstraints = CA:FALSE
keyUsage = nonRepudiation, digitalSignature, keyEncipherment
`
