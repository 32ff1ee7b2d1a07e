package hostprograms

// Programs are the programs by name.
var Programs = map[string]Program{
	"modprobe": {run: modprobe}, "rmmod": {run: rmmod}, "lsmod": {run: lsmod}, "modinfo": {run: modinfo}, "insmod": {run: insmod}, "depmod": {run: depmod},
	"update-grub": {run: updateGrub}, "grub-mkconfig": {run: grubMkconfig}, "grub-probe": {run: grubProbe}, "grub-install": {run: grubInstall}, "update-initramfs": {run: updateInitramfs},
	"crontab":  {run: crontab, input: crontabInput},
	"auditctl": {run: auditctl}, "augenrules": {run: augenrules}, "chronyc": {run: chronyc},
	"timedatectl": {run: timedatectl}, "localectl": {run: localectl}, "loginctl": {run: loginctl},
}
