package debian

// logs adds the files of /var/log and the settings of rsyslog. Debian 12 and later install none:
// what they log is in the journal.
func (b *builder) logs() {
	b.dirs("etc/rsyslog.d")
	if b.family == ubuntu {
		b.file("etc/rsyslog.conf", "# See rsyslog.conf(5).\nmodule(load=\"imuxsock\")\nmodule(load=\"imklog\" permitnonkernelfacility=\"on\")\n$FileOwner syslog\n$FileGroup adm\n$FileCreateMode 0640\n$DirCreateMode 0755\n$Umask 0022\n$PrivDropToUser syslog\n$PrivDropToGroup syslog\n$WorkDirectory /var/spool/rsyslog\n$IncludeConfig /etc/rsyslog.d/*.conf\n")
		b.file("etc/rsyslog.d/50-default.conf", "auth,authpriv.* /var/log/auth.log\n*.*;auth,authpriv.none -/var/log/syslog\nkern.* -/var/log/kern.log\n*.emerg :omusrmsg:*\n")
		for _, name := range []string{"syslog", "auth.log", "kern.log"} {
			b.fileAs(0o640, "syslog:adm", "var/log/"+name, "")
		}
		b.dirsAs(0o775, "root:syslog", "var/log")
		b.dirsAs(0o700, "syslog:adm", "var/spool/rsyslog")
	} else {
		b.dirs("var/log")
	}
	b.dirsAs(0o755|setgid, "root:systemd-journal", "var/log/journal")
	b.dirsAs(0o700, "root:root", "var/log/private")
	b.fileAs(0o660, "root:utmp", "var/log/btmp", "")
	if b.family != debian || b.version < 13 { // there wtmpdb and lastlog2 have databases instead
		b.fileAs(0o664, "root:utmp", "var/log/wtmp", "")
		b.fileAs(0o664, "root:utmp", "var/log/lastlog", "")
	}
}
