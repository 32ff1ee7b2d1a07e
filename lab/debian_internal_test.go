package lab

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/configdrive"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/sample"
	"github.com/metalab-dev/metalab/scenarios/smallroot"
)

// A Debian as debootstrap(8) makes it boots by its own cloud-init, and has its own packages, programs
// and daemons. It downloads 80 MB, and is a part of the full run alone.
func TestADebianOfDebootstrapBoots(t *testing.T) {
	if !sample.Full() {
		return
	}
	debootstrap := prerequisites.Need(t, "debootstrap")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	// cloud-init needs the back end of CFFI by a virtual package, which debootstrap does not resolve.
	out, err := exec.CommandContext(t.Context(), debootstrap, "--variant=minbase", "--include=systemd-sysv,udev,iproute2,python3-cffi-backend,cloud-init,netplan.io,openssh-server,cron,locales", "bookworm", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("debootstrap: %v: %s", err, out[max(0, len(out)-2000):])
	}
	def, err := rackfile.Parse("lab.yaml", []byte("kind: Lab\nspeed: max\nhosts: [{count: 1, firstBoot: image}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 1, Speed: "max", Rack: &def}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	h := w.rack.Hosts()[0]
	const size = 800
	writeImage(t, h, smallroot.Disk(t, dir, size))
	drive, err := configdrive.Build(job.ConfigDrive{MetaData: []byte(`{"uuid": "one", "hostname": "node-7"}`), UserData: []byte("#cloud-config\nlocale: C.UTF-8\nusers: [default, {name: ann, groups: sudo, shell: /bin/bash}]\nwrite_files: [{path: /etc/motd, content: more, append: true}]\nruncmd: ['systemctl start cron', 'echo ran > /var/ran']\n")})
	if err != nil {
		t.Fatal(err)
	}
	writeConfigDrive(t, h, drive)
	x := bootOne(t, w, h, "On")
	awaitFile(t, x, "var/ran", "ran\n")
	says(t, h, "Datasource DataSourceConfigDrive")
	for line, want := range map[string]string{
		"id -nG ann":                      "ann sudo\n",
		"hostname; cat /etc/hostname":     "node-7\nnode-7\n",
		"tail -c 4 /etc/motd":             "more",
		"systemctl is-active cron ssh":    "active\ninactive\n",
		"dpkg-query -Wf '${Status}' cron": "install ok installed",
		"apt-get install -y cron 2>&1 | grep -c 'cron is already the newest version'": "1\n",
		"dpkg -S /usr/sbin/sshd":                                                "openssh-server: /usr/sbin/sshd\n",
		"systemctl restart ssh && systemctl is-active ssh":                      "active\n",
		"cloud-init query ds.meta_data.uuid":                                    "one\n",
		"cloud-init status":                                                     "status: done\n",
		"cat /sys/class/dmi/id/product_name":                                    h.Machine().Identity.Model + "\n",
		"ls /lib/systemd/systemd /etc/machine-id; systemctl --failed | head -1": "/etc/machine-id\n/lib/systemd/systemd\n0 loaded units listed. Pass --all to see loaded but inactive units, too.\n",
		"python3 -c 'import platform; print(platform.node())'":                  "node-7\n",
		"useradd -m bob && su - bob -c 'echo $HOME' && userdel bob":             "/home/bob\n",
	} {
		var got strings.Builder
		if code, err := x.Exec(t.Context(), sandbox.Command{Args: []string{"/bin/sh", "-c", line}, Stdout: &got, Stderr: &got}); err != nil || code != 0 && !strings.Contains(line, "is-active") || got.String() != want {
			t.Errorf("%s: code %d, %v, %q, want %q", line, code, err, got.String(), want)
		}
	}
}
