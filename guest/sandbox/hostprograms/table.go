package hostprograms

// Programs are the programs by name.
var Programs = map[string]Program{
	"modprobe": {run: modprobe}, "rmmod": {run: rmmod}, "lsmod": {run: lsmod}, "modinfo": {run: modinfo}, "insmod": {run: insmod}, "depmod": {run: depmod},
	"update-grub": {run: updateGrub}, "grub-mkconfig": {run: grubMkconfig}, "grub-probe": {run: grubProbe}, "grub-install": {run: grubInstall}, "update-initramfs": {run: updateInitramfs},
	"mount": {run: mount, input: mountInput, process: true}, "umount": {run: umount, input: mountInput, process: true}, "swapon": {run: swapon}, "swapoff": {run: swapoff},
	"netplan":  {run: netplan},
	"crontab":  {run: crontab, input: crontabInput},
	"auditctl": {run: auditctl}, "augenrules": {run: augenrules}, "chronyc": {run: chronyc},
	"timedatectl": {run: timedatectl}, "localectl": {run: localectl}, "udevadm": {run: udevadm}, "loginctl": {run: loginctl},
}
