// Package hostprograms has programs of a server whose real ones need a kernel or daemons of the
// server's own, or D-Bus: modprobe(8), mount(8), crontab(1), update-grub(8), chronyc(1),
// auditctl(8), timedatectl(1) and their kind. They read and write the server's files, answer with the
// texts and exit codes of the real ones, and fail with the reason at what they do not do. The package
// starts no process, and knows neither sandboxes nor the lab.
package hostprograms
