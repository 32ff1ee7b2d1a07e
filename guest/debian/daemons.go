package debian

import "io/fs"

// This file has the daemons and tools that a server has installed, and their settings.

func (b *builder) daemons() {
	b.ssh()
	b.sudo()
	b.cron()
	b.time()
	b.dirsAs(0o750, "root:root", "etc/audit", "etc/audit/rules.d", "etc/audit/plugins.d")
	b.fileAs(0o640, "root:root", "etc/audit/auditd.conf", "# See auditd.conf(5).\nlog_file = /var/log/audit/audit.log\nlog_group = adm\nlog_format = ENRICHED\nflush = INCREMENTAL_ASYNC\nfreq = 50\nmax_log_file = 8\nnum_logs = 5\nmax_log_file_action = ROTATE\nspace_left = 75\nspace_left_action = SYSLOG\nadmin_space_left = 50\nadmin_space_left_action = SUSPEND\ndisk_full_action = SUSPEND\ndisk_error_action = SUSPEND\n")
	b.fileAs(0o640, "root:root", "etc/audit/rules.d/audit.rules", "## See auditctl(8): first all rules go.\n-D\n-b 8192\n--backlog_wait_time 60000\n-f 1\n")
	b.fileAs(0o640, "root:root", "etc/audit/audit.rules", "## augenrules(8) makes this file of /etc/audit/rules.d.\n-D\n-b 8192\n-f 1\n")
	b.dirs("etc/dbus-1/system.d", "etc/dbus-1/session.d", "etc/polkit-1/rules.d")
}

func (b *builder) ssh() {
	sftp := "/usr/lib/openssh/sftp-server"
	if !b.isDebian() {
		sftp = "/usr/libexec/openssh/sftp-server"
	}
	b.file("etc/ssh/sshd_config", "# See sshd_config(5): of a keyword that comes twice, the first counts.\nInclude /etc/ssh/sshd_config.d/*.conf\n\nKbdInteractiveAuthentication no\nUsePAM yes\nX11Forwarding yes\nPrintMotd no\nAcceptEnv LANG LC_*\nSubsystem sftp "+sftp+"\n")
	b.file("etc/ssh/ssh_config", "# See ssh_config(5).\nInclude /etc/ssh/ssh_config.d/*.conf\n\nHost *\n    SendEnv LANG LC_*\n    HashKnownHosts yes\n")
	b.dirs("etc/ssh/sshd_config.d", "etc/ssh/ssh_config.d")
	if b.family == ubuntu {
		b.fileAs(0o600, "root:root", "etc/ssh/sshd_config.d/60-cloudimg-settings.conf", "PasswordAuthentication no\n")
	}
}

func (b *builder) sudo() {
	group, path := "sudo", pathOfRoot
	switch b.family {
	case ubuntu:
		path += ":/snap/bin"
	case other:
		group = "wheel"
	}
	terminal := ""
	if b.atLeast(12, 22) {
		terminal = "Defaults use_pty\n"
	}
	b.fileAs(0o440, "root:root", "etc/sudoers", "# Edit with visudo(8), or add files to sudoers.d.\nDefaults env_reset\nDefaults mail_badpass\nDefaults secure_path=\""+path+"\"\n"+terminal+"\nroot ALL=(ALL:ALL) ALL\n%"+group+" ALL=(ALL:ALL) ALL\n\n@includedir /etc/sudoers.d\n")
	mode := fs.FileMode(0o755)
	if b.family != debian {
		mode = 0o750
	}
	b.dirsAs(mode, "root:root", "etc/sudoers.d")
	b.fileAs(0o440, "root:root", "etc/sudoers.d/README", "# sudo reads the files of this directory whose names have no dot and no ~ at the end. Their\n# mode is 0440.\n")
	b.file("etc/sudo.conf", "# See sudo.conf(5).\n")
}

func (b *builder) cron() {
	b.dirs("etc/cron.d", "etc/cron.hourly", "etc/cron.daily", "etc/cron.weekly", "etc/cron.monthly")
	b.file("etc/crontab", `# MINUTE HOUR DAY MONTH WEEKDAY USER COMMAND, see crontab(5).
SHELL=/bin/sh
PATH=`+pathOfRoot+`

17 * * * * root cd / && run-parts --report /etc/cron.hourly
25 6 * * * root cd / && run-parts --report /etc/cron.daily
47 6 * * 7 root cd / && run-parts --report /etc/cron.weekly
52 6 1 * * root cd / && run-parts --report /etc/cron.monthly
`)
	// Of the services it alone runs: a sandbox has it without a process.
	unit, program := "cron", "/usr/sbin/cron -f $EXTRA_OPTS"
	if !b.isDebian() {
		unit, program = "crond", "/usr/sbin/crond -n"
	}
	b.file("usr/lib/systemd/system/"+unit+".service", "[Unit]\nDescription=Regular background program processing daemon\n\n[Service]\nEnvironmentFile=-/etc/default/cron\nExecStart="+program+"\nKillMode=process\nRestart=on-failure\n\n[Install]\nWantedBy=multi-user.target\n")
	b.link("etc/systemd/system/multi-user.target.wants/"+unit+".service", "/usr/lib/systemd/system/"+unit+".service")
	b.dirs("etc/logrotate.d")
	user := ""
	if b.family == ubuntu { // its /var/log belongs to the group syslog, which logrotate refuses without
		user = "su root adm\n"
	}
	b.file("etc/logrotate.conf", "# See logrotate(8).\nweekly\nrotate 4\ncreate\n"+user+"include /etc/logrotate.d\n")
	rotate := func(name, files, rules string) {
		b.file("etc/logrotate.d/"+name, files+" {\n"+rules+"    missingok\n    notifempty\n    compress\n}\n")
	}
	const monthly = "    monthly\n    rotate 12\n"
	rotate("wtmp", "/var/log/wtmp", "    monthly\n    rotate 1\n    create 0664 root utmp\n")
	rotate("btmp", "/var/log/btmp", "    monthly\n    rotate 1\n    create 0660 root utmp\n")
	rotate("chrony", "/var/log/chrony/*.log", monthly)
	if b.isDebian() {
		rotate("dpkg", "/var/log/dpkg.log", monthly)
		rotate("apt", "/var/log/apt/term.log /var/log/apt/history.log", monthly)
		rotate("alternatives", "/var/log/alternatives.log", monthly)
	}
	if b.family == ubuntu {
		rotate("rsyslog", "/var/log/syslog /var/log/auth.log /var/log/kern.log", "    weekly\n    rotate 4\n    delaycompress\n")
	}
}

// time adds chrony's settings, which Debian has in a directory.
func (b *builder) time() {
	if !b.isDebian() {
		b.file("etc/chrony.conf", "# See chrony.conf(5).\npool 2.pool.ntp.org iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\n")
		return
	}
	pools := "pool 2.debian.pool.ntp.org iburst\n"
	if b.family == ubuntu {
		pools = "pool ntp.ubuntu.com iburst maxsources 4\n"
	}
	b.file("etc/chrony/chrony.conf", "# See chrony.conf(5).\nconfdir /etc/chrony/conf.d\n"+pools+"sourcedir /run/chrony-dhcp\nsourcedir /etc/chrony/sources.d\nkeyfile /etc/chrony/chrony.keys\ndriftfile /var/lib/chrony/chrony.drift\nntsdumpdir /var/lib/chrony\nlogdir /var/log/chrony\nmaxupdateskew 100.0\nrtcsync\nmakestep 1 3\nleapsectz right/UTC\n")
	b.fileAs(0o640, "root:_chrony", "etc/chrony/chrony.keys", "# ID TYPE KEY, see chrony.conf(5).\n")
	b.dirs("etc/chrony/conf.d", "etc/chrony/sources.d")
}
