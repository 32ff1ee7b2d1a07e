package debian

import "io/fs"

const (
	sticky = fs.ModeSticky
	setgid = fs.ModeSetgid
)

// variable adds the directories of /var.
func (b *builder) variable() {
	b.dirs("var/cache", "var/lib/misc", "var/opt", "var/spool", "var/lib/dbus", "var/lib/systemd/catalog", "var/lib/systemd/coredump", "var/lib/systemd/linger", "var/lib/systemd/pstore", "var/lib/systemd/timers", "var/lib/logrotate")
	b.dirsAs(0o700, "root:root", "var/cache/ldconfig", "var/cache/private", "var/lib/private", "var/lib/sudo")
	b.dirsAs(0o777|sticky, "root:root", "var/tmp")
	b.link("var/run", "/run")
	b.link("var/lock", "/run/lock")
	b.link("var/spool/mail", "../mail")
	b.link("var/lib/dbus/machine-id", "/etc/machine-id")
	chrony, audit := "chrony:chrony", "root:root"
	if b.isDebian() {
		chrony, audit = "_chrony:_chrony", "root:adm"
		b.dirs("var/backups")
		b.dirsAs(0o775|setgid, "root:staff", "var/local")
		b.dirsAs(0o775|setgid, "root:mail", "var/mail")
		b.dirsAs(0o755, "man:man", "var/cache/man")
		b.dirsAs(0o730|sticky, "root:crontab", "var/spool/cron/crontabs")
	} else {
		b.dirsAs(0o775, "root:mail", "var/mail")
		b.dirsAs(0o700, "root:root", "var/spool/cron")
	}
	b.dirsAs(0o750, chrony, "var/lib/chrony", "var/log/chrony")
	b.dirsAs(0o750, audit, "var/log/audit")
}
