package debian

import "strings"

// This file has the accounts: those of the package base-passwd, whose IDs are the same on every
// Debian, and those that the packages of a server have added.

const (
	baseUsers = `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
sys:x:3:3:sys:/dev:/usr/sbin/nologin
sync:x:4:65534:sync:/bin:/bin/sync
games:x:5:60:games:/usr/games:/usr/sbin/nologin
man:x:6:12:man:/var/cache/man:/usr/sbin/nologin
lp:x:7:7:lp:/var/spool/lpd:/usr/sbin/nologin
mail:x:8:8:mail:/var/mail:/usr/sbin/nologin
news:x:9:9:news:/var/spool/news:/usr/sbin/nologin
uucp:x:10:10:uucp:/var/spool/uucp:/usr/sbin/nologin
proxy:x:13:13:proxy:/bin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
backup:x:34:34:backup:/var/backups:/usr/sbin/nologin
list:x:38:38:Mailing List Manager:/var/list:/usr/sbin/nologin
irc:x:39:39:ircd:/run/ircd:/usr/sbin/nologin
`
	nobody     = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	baseGroups = `root:x:0:
daemon:x:1:
bin:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
disk:x:6:
lp:x:7:
mail:x:8:
news:x:9:
uucp:x:10:
man:x:12:
proxy:x:13:
kmem:x:15:
dialout:x:20:
fax:x:21:
voice:x:22:
cdrom:x:24:
floppy:x:25:
tape:x:26:
sudo:x:27:
audio:x:29:
dip:x:30:
www-data:x:33:
backup:x:34:
operator:x:37:
list:x:38:
irc:x:39:
src:x:40:
shadow:x:42:
utmp:x:43:
video:x:44:
sasl:x:45:
plugdev:x:46:
staff:x:50:
games:x:60:
users:x:100:
`
	nogroup = "nogroup:x:65534:\n"
)

// addedUsers and addedGroups are those of a server's packages, by the codename of the release.
var addedUsers = map[string]string{
	"bookworm": `_apt:x:42:65534::/nonexistent:/usr/sbin/nologin
systemd-network:x:998:998:systemd Network Management:/:/usr/sbin/nologin
systemd-timesync:x:997:997:systemd Time Synchronization:/:/usr/sbin/nologin
systemd-resolve:x:996:996:systemd Resolver:/:/usr/sbin/nologin
messagebus:x:100:107::/nonexistent:/usr/sbin/nologin
sshd:x:101:65534::/run/sshd:/usr/sbin/nologin
_chrony:x:102:109:Chrony daemon,,,:/var/lib/chrony:/usr/sbin/nologin
polkitd:x:995:995:polkit:/nonexistent:/usr/sbin/nologin
`,
	"trixie": `_apt:x:42:65534::/nonexistent:/usr/sbin/nologin
systemd-network:x:998:998:systemd Network Management:/:/usr/sbin/nologin
dhcpcd:x:100:65534:DHCP Client Daemon:/usr/lib/dhcpcd:/bin/false
systemd-timesync:x:991:991:systemd Time Synchronization:/:/usr/sbin/nologin
systemd-resolve:x:990:990:systemd Resolver:/:/usr/sbin/nologin
messagebus:x:989:989:System Message Bus:/nonexistent:/usr/sbin/nologin
sshd:x:988:65534:sshd user:/run/sshd:/usr/sbin/nologin
_chrony:x:101:103:Chrony daemon:/var/lib/chrony:/usr/sbin/nologin
polkitd:x:987:987:User for polkitd:/:/usr/sbin/nologin
`,
	"jammy": `gnats:x:41:41:Gnats Bug-Reporting System (admin):/var/lib/gnats:/usr/sbin/nologin
_apt:x:100:65534::/nonexistent:/usr/sbin/nologin
systemd-network:x:101:102:systemd Network Management,,,:/run/systemd:/usr/sbin/nologin
systemd-resolve:x:102:103:systemd Resolver,,,:/run/systemd:/usr/sbin/nologin
messagebus:x:103:104::/nonexistent:/usr/sbin/nologin
systemd-timesync:x:104:105:systemd Time Synchronization,,,:/run/systemd:/usr/sbin/nologin
pollinate:x:105:1::/var/cache/pollinate:/bin/false
sshd:x:106:65534::/run/sshd:/usr/sbin/nologin
syslog:x:107:113::/home/syslog:/usr/sbin/nologin
_chrony:x:108:115:Chrony daemon,,,:/var/lib/chrony:/usr/sbin/nologin
`,
	"noble": `_apt:x:42:65534::/nonexistent:/usr/sbin/nologin
systemd-network:x:998:998:systemd Network Management:/:/usr/sbin/nologin
systemd-timesync:x:996:996:systemd Time Synchronization:/:/usr/sbin/nologin
dhcpcd:x:100:65534:DHCP Client Daemon,,,:/usr/lib/dhcpcd:/bin/false
messagebus:x:101:101::/nonexistent:/usr/sbin/nologin
syslog:x:102:102::/nonexistent:/usr/sbin/nologin
systemd-resolve:x:991:991:systemd Resolver:/:/usr/sbin/nologin
sshd:x:103:65534::/run/sshd:/usr/sbin/nologin
pollinate:x:104:1::/var/cache/pollinate:/bin/false
_chrony:x:105:106:Chrony daemon,,,:/var/lib/chrony:/usr/sbin/nologin
polkitd:x:990:990:User for polkitd:/:/usr/sbin/nologin
`,
}

var addedGroups = map[string]string{
	"bookworm": `systemd-journal:x:999:
systemd-network:x:998:
systemd-timesync:x:997:
systemd-resolve:x:996:
polkitd:x:995:
crontab:x:101:
input:x:102:
sgx:x:103:
kvm:x:104:
render:x:105:
netdev:x:106:
messagebus:x:107:
_ssh:x:108:
_chrony:x:109:
`,
	"trixie": `clock:x:102:
systemd-journal:x:999:
systemd-network:x:998:
crontab:x:997:
input:x:996:
sgx:x:995:
kvm:x:994:
render:x:993:
netdev:x:992:
systemd-timesync:x:991:
systemd-resolve:x:990:
messagebus:x:989:
_ssh:x:101:
_chrony:x:103:
polkitd:x:987:
`,
	"jammy": `gnats:x:41:
systemd-journal:x:101:
systemd-network:x:102:
systemd-resolve:x:103:
messagebus:x:104:
systemd-timesync:x:105:
input:x:106:
sgx:x:107:
kvm:x:108:
render:x:109:
crontab:x:110:
lxd:x:111:
_ssh:x:112:
syslog:x:113:
netdev:x:114:
_chrony:x:115:
`,
	"noble": `systemd-journal:x:999:
systemd-network:x:998:
crontab:x:997:
systemd-timesync:x:996:
input:x:995:
sgx:x:994:
kvm:x:993:
render:x:992:
messagebus:x:101:
syslog:x:102:
systemd-resolve:x:991:
_ssh:x:103:
lxd:x:104:
netdev:x:105:
_chrony:x:106:
polkitd:x:990:
`,
}

// Accounts that other distributions have, too.
const (
	otherUsers = `root:x:0:0:root:/root:/bin/bash
bin:x:1:1:bin:/bin:/usr/sbin/nologin
daemon:x:2:2:daemon:/sbin:/usr/sbin/nologin
dbus:x:81:81:System message bus:/:/usr/sbin/nologin
sshd:x:74:74:Privilege-separated SSH:/run/sshd:/usr/sbin/nologin
chrony:x:992:992:chrony:/var/lib/chrony:/usr/sbin/nologin
`
	otherGroups = `root:x:0:
bin:x:1:
daemon:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
disk:x:6:
lp:x:7:
kmem:x:9:
wheel:x:10:
cdrom:x:11:
mail:x:12:
man:x:15:
dialout:x:18:
floppy:x:19:
utmp:x:22:
audio:x:63:
sshd:x:74:
dbus:x:81:
video:x:39:
users:x:100:
systemd-journal:x:190:
chrony:x:992:
nobody:x:65534:
`
)

// accounts adds the users and groups. Nobody can log in with a password.
func (b *builder) accounts() {
	users, groups := otherUsers+nobody, otherGroups
	if b.isDebian() {
		users, groups = baseUsers+addedUsers[b.codename]+nobody, baseGroups+addedGroups[b.codename]+nogroup
	}
	b.users, b.groups = idsOf(users), idsOf(groups)
	var shadow, gshadow strings.Builder
	for line := range strings.Lines(users) {
		name, _, _ := strings.Cut(line, ":")
		shadow.WriteString(name + ":*:19000:0:99999:7:::\n")
	}
	for line := range strings.Lines(groups) {
		name, _, _ := strings.Cut(line, ":")
		gshadow.WriteString(name + ":*::\n")
	}
	owner := "root:root"
	if b.isDebian() {
		owner = "root:shadow"
	}
	b.file("etc/passwd", users)
	b.file("etc/group", groups)
	b.fileAs(0o640, owner, "etc/shadow", shadow.String())
	b.fileAs(0o640, owner, "etc/gshadow", gshadow.String())
	b.file("etc/subuid", "")
	b.file("etc/subgid", "")
	b.fileAs(0o600, "root:root", "etc/security/opasswd", "")
}
