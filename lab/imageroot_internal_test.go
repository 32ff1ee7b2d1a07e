package lab

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/configdrive"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/smalldisk"
	"github.com/metalab-dev/metalab/scenarios/smallroot"
)

// Servers with a user's image have the files and programs of its root file system, which this machine
// unpacks once; where the programs cannot run here, the lab's files stand for them. The console and
// the control API say which.
func TestServersBootTheRootOfTheirImage(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := smallroot.New(t, true)
	dir.Put("etc/motd", "of the image\n", 0o644)
	dir.Put("etc/hostname", "image\n", 0o644)
	ours := dir.Disk()
	shell, err := os.ReadFile(filepath.Join(dir.Path, "bin/sh"))
	if err != nil {
		t.Fatal(err)
	}
	const machine, arm64 = 18, 0xb7 // e_machine of ELF (elf(5)), and EM_AARCH64
	shell[machine], shell[machine+1] = arm64, 0
	dir.Put("bin/sh", string(shell), 0o755)
	other := dir.Disk()

	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 3, Speed: "max"}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	boot := func(h *rack.Host, reset string) *system {
		t.Helper()
		return bootOne(t, w, h, reset)
	}
	run := func(x *system, line string) string {
		t.Helper()
		var out strings.Builder
		if _, err := x.Exec(t.Context(), sandbox.Command{Args: []string{"/bin/sh", "-c", line}, Stdout: &out, Stderr: &out}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	hosts := w.rack.Hosts()
	for i, image := range [][]byte{ours, ours, other} {
		writeImage(t, hosts[i], image)
		drive, err := configdrive.Build(job.ConfigDrive{MetaData: []byte(`{"uuid": "` + hosts[i].Name() + `"}`), UserData: []byte("#cloud-config\nhostname: " + hosts[i].Name() + "\nusers: [{name: ann}]\nwrite_files: [{path: /etc/motd, content: more, append: true}]\npackages: [vim]\nruncmd: ['echo ran > /etc/ran']\n")})
		if err != nil {
			t.Fatal(err)
		}
		writeConfigDrive(t, hosts[i], drive)
	}
	for _, h := range hosts[:2] {
		x := boot(h, "On")
		want := "ID=small\n" + h.Name() + "\nof the image\nmoreran\nann\nno env\n"
		line := "read a < /etc/os-release; echo $a; cat /etc/hostname /etc/motd; until [ -s /etc/ran ]; do :; done; cat /etc/ran; while IFS=: read n rest; do case $n in ann) echo $n; esac; done < /etc/passwd; /usr/bin/env 2> /dev/null || echo no env"
		if diff := cmp.Diff(want, run(x, line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", h.Name(), diff)
		}
		d, err := w.Control().Host(t.Context(), h.Name())
		if want := "of the image: Small 1, ext4 of partition 1"; err != nil || d.Files != want {
			t.Errorf("the files of %s are %q, %v, want %q", h.Name(), d.Files, err, want)
		}
		says(t, h, "The files of this server are those of its image: Small 1, ext4 of partition 1.")
	}
	d, err := w.Control().Host(t.Context(), hosts[0].Name())
	if err != nil || d.CPU <= 0 {
		t.Errorf("the processes of %s have used %v s of processor time, %v, want some", hosts[0].Name(), d.CPU, err)
	}
	entries, _, err := w.rack.Journal().Select(journal.Query{Host: hosts[0].Name(), What: "cloud-init.*"})
	if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Text, "packages is not applied") {
		t.Errorf("the journal has %v, %v, want once that packages is not applied", entries, err)
	}
	roots, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "metalab/roots", strings.Repeat("[0-9a-f]", 64)))
	if err != nil || len(roots) != 1 {
		t.Errorf("the cache has %q, %v, want one root file system", roots, err)
	}
	x := boot(hosts[2], "On")
	if b, err := x.ReadFile("usr/bin/env"); err != nil || len(b) == 0 {
		t.Errorf("a server whose image is for another processor has no programs of this machine: %v", err)
	}
	d, err = w.Control().Host(t.Context(), hosts[2].Name())
	for _, want := range []string{"the lab's", "Debian GNU/Linux 12", "arm64", "this machine is " + runtime.GOARCH} {
		if err != nil || !strings.Contains(d.Files, want) {
			t.Errorf("the files of %s are %q, %v, want %q in it", hosts[2].Name(), d.Files, err, want)
		}
	}
	says(t, hosts[2], "The lab's files stand for them, with the os-release of Debian GNU/Linux 12 (bookworm).")

	// The digest is stored with the files; a reboot keeps both.
	x = boot(hosts[0], "GracefulRestart")
	store := &diskStore{Disk: mustDisk(t, hosts[0])}
	if _, err := store.Load(); err != nil || !strings.Contains(store.head, filepath.Base(roots[0])) {
		t.Errorf("stored before the files is %q, %v, want the digest %s", store.head, err, filepath.Base(roots[0]))
	}
	if got := run(x, "cat /etc/ran /etc/motd"); got != "ran\nof the image\nmore" {
		t.Errorf("after a reboot: %q", got)
	}
	// Another image on the disk is another root.
	dir.Put("bin/sh", string(mustRead(t, "/bin/sh")), 0o755)
	dir.Put("etc/motd", "of another image\n", 0o644)
	writeImage(t, hosts[0], dir.Disk())
	if got := run(boot(hosts[0], "ForceRestart"), "cat /etc/motd; until [ -s /etc/ran ]; do :; done; cat /etc/ran"); got != "of another image\nmoreran\n" {
		t.Errorf("with another image: %q", got)
	}
}

// A server whose image finds no room on this machine waits for it, and has the image's files then.
func TestTheRootOfAnImageWaitsForRoom(t *testing.T) {
	prerequisites.Need(t, "small file system")
	const cacheSize = 256 << 20 // what is unpacked leaves 64 MB free
	smalldisk.Run(t, cacheSize, func(cache string) {
		t.Setenv("XDG_CACHE_HOME", cache)
		empty := smalldisk.Fill(t, cache, 1<<20)
		dir := smallroot.New(t, true)
		dir.Put("etc/motd", "of the image\n", 0o644)
		w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 1, Speed: "max"}, Listen: AnyPort})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := w.Stop(); err != nil {
				t.Error(err)
			}
		}()
		h := w.rack.Hosts()[0]
		writeImage(t, h, dir.Disk())
		if _, err := w.Control().Power(t.Context(), h.Name(), "On"); err != nil {
			t.Fatal(err)
		}
		var x *system
		patience.Await(t, "the server boots", func() bool {
			if h.Machine().OS == nil {
				return false
			}
			w.agents.systems.mu.Lock()
			defer w.agents.systems.mu.Unlock()
			x = w.agents.systems.running[h.Name()]
			return x != nil
		})
		read := make(chan string)
		go func() {
			b, err := x.ReadFile("etc/motd")
			if err != nil {
				b = []byte(err.Error())
			}
			read <- string(b)
		}()
		says(t, h, "waiting for room: no space left on the file system of "+cache)
		empty()
		if got := <-read; got != "of the image\n" {
			t.Errorf("/etc/motd is %q, want the image's", got)
		}
	})
}

// Where the rack file asks for it, the cloud-init of an image boots its servers, at each boot: behind
// the seed and around the units. An image without one is booted by the lab's reader, with a word.
func TestTheCloudInitOfAnImageBootsIt(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := smallroot.New(t, true)
	without := dir.Disk()
	dir.Put("usr/bin/cloud-init", `#!/bin/sh
echo "$*" >> /var/stages
case $* in
"init --local") cat /run/cloud-init/cloud.cfg /var/lib/cloud/seed/config_drive/openstack/latest/user_data;;
init) read old < /var/instance; [ "$old" = one ] || echo one > /var/instance; exit 1;;
esac
`, 0o755)
	dir.Put("var/instance", "none\n", 0o644)
	dir.Put("etc/systemd/system/unit.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo unit >> /var/stages'\n", 0o644)
	dir.Link("/etc/systemd/system/unit.service", "etc/systemd/system/multi-user.target.wants/unit.service")
	with := dir.Disk()
	def, err := rackfile.Parse("lab.yaml", []byte("kind: Lab\nspeed: max\nhosts: [{count: 2, firstBoot: image}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 2, Speed: "max", Rack: &def}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	hosts := w.rack.Hosts()
	for i, image := range [][]byte{with, without} {
		writeImage(t, hosts[i], image)
		drive, err := configdrive.Build(job.ConfigDrive{MetaData: []byte(`{"uuid": "one"}`), UserData: []byte("#cloud-config\nhostname: node-7\n")})
		if err != nil {
			t.Fatal(err)
		}
		writeConfigDrive(t, hosts[i], drive)
	}
	x := bootOne(t, w, hosts[0], "On")
	says(t, hosts[0], "datasource_list: [ ConfigDrive, None ]\r\n#cloud-config\r\nhostname: node-7")
	says(t, hosts[0], "cloud-init: cloud-init init ended with code 1")
	stages := "init --local\ninit\nunit\nmodules --mode=config\nmodules --mode=final\n"
	awaitFile(t, x, "var/stages", stages)
	if n, err := x.Stat("var/lib/cloud/seed/config_drive/openstack/latest/user_data"); err != nil || n.Mode.Perm() != 0o600 {
		t.Errorf("the seed has mode %v, %v, want 0600: user data have passwords", n.Mode, err)
	}
	awaitFile(t, bootOne(t, w, hosts[0], "GracefulRestart"), "var/stages", stages+stages)

	x = bootOne(t, w, hosts[1], "On")
	says(t, hosts[1], "firstBoot is image, but the image has no /usr/bin/cloud-init: the lab reads the data source")
	awaitFile(t, x, "etc/hostname", "node-7\n")
}

// awaitFile waits until a file of a system has a content.
func awaitFile(t *testing.T, x *system, name, want string) {
	t.Helper()
	var got []byte
	patience.Await(t, name+" has its content", func() bool {
		got, _ = x.ReadFile(name) // it may not be there yet
		return string(got) == want
	}, &got)
}

// bootOne switches a server, and returns its system when the data source was applied.
func bootOne(t *testing.T, w *Lab, h *rack.Host, reset string) (x *system) {
	t.Helper()
	boots := h.Machine().Boots
	if _, err := w.Control().Power(t.Context(), h.Name(), reset); err != nil {
		t.Fatal(err)
	}
	var err error
	patience.Await(t, "the server boots", func() bool {
		if h.Machine().Boots == boots {
			return false
		}
		x, err = w.agents.systems.of(t.Context(), h)
		return err == nil
	}, &err)
	return x
}

// says fails the test unless the console of a server shows a text.
func says(t *testing.T, h *rack.Host, text string) {
	t.Helper()
	enough := errors.New("enough")
	var shown strings.Builder
	err := h.ReadConsole(patience.Within(t, time.Minute), 0, func(b []byte) error {
		shown.Write(b)
		if strings.Contains(shown.String(), text) {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("the console shows %q, %v, want %q", shown.String(), err, text)
	}
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustDisk(t *testing.T, h *rack.Host) *rack.Disk {
	t.Helper()
	os := h.Machine().OS
	d, err := h.Attach(os.Boot, os.Source.Device)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
