package lab

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/configdrive"
	"github.com/metalab-dev/metalab/agent/gpt"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/images"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

const ofNoble = "ID=\"ubuntu\"\nVERSION_ID=\"24.04\"\nVERSION_CODENAME=\"noble\"\n"

// A first boot writes what it changes of the base, and nothing else: the default user is the
// release's, has a home, and the groups of the base.
func TestFirstBootWritesWhatItChanges(t *testing.T) {
	b := baseFor(ofNoble)
	before := maps.Clone(b.root)
	root := maps.Clone(b.root)
	cloudinit.Configure(cloudinit.Instance{ID: "i", Hostname: "web", PublicKeys: []string{"K"}, UserData: []byte("#cloud-config\nwrite_files: [{path: /etc/fstab, append: true, content: \"# mine\\n\"}]\n")}, root)
	files := treeOf(root, b.root)
	for name, want := range map[string]string{
		"etc/hostname":                     "-rw-r--r-- 0:0 web\n",
		"home/ubuntu":                      "drwxr-x--- 1000:1000 ",
		"home/ubuntu/.ssh":                 "drwx------ 1000:1000 ",
		"home/ubuntu/.ssh/authorized_keys": "-rw------- 1000:1000 K\n",
		"home/ubuntu/.profile":             "-rw-r--r-- 1000:1000 " + string(b.tree["etc/skel/.profile"].Content),
		"etc/shadow":                       "-rw-r----- 0:42 " + string(b.tree["etc/shadow"].Content) + "ubuntu:!:19000:0:99999:7:::\n",
		"etc/passwd":                       "-rw-r--r-- 0:0 " + string(b.tree["etc/passwd"].Content) + "ubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash\n",
		"etc/fstab":                        "-rw-r--r-- 0:0 " + string(b.tree["etc/fstab"].Content) + "# mine\n",
	} {
		n, ok := files[name]
		if got := fmt.Sprintf("%v %d:%d %s", n.Mode, n.UID, n.GID, n.Content); got != want || !ok {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"etc/hosts", "etc/sudoers", "etc/os-release", "etc", "var/log", "etc/localtime"} {
		if n, ok := files[name]; ok {
			t.Errorf("%s is written as %v, though nothing changes it", name, n.Mode)
		}
	}
	if len(before) != len(b.root) || string(before["etc/passwd"].Content) != string(b.root["etc/passwd"].Content) {
		t.Error("a first boot has changed the base")
	}
}

// Boot hooks run before bootcmd with their environment, and scripts of every boot after those of the
// first.
func TestCommandsOfABoot(t *testing.T) {
	r := cloudinit.Result{
		Hooks: []string{"/h"}, HookEnv: []string{"INSTANCE_ID=i"}, Boot: []string{"b"}, Scripts: []string{"/s"}, BootScripts: []string{"/e"},
	}
	for name, tt := range map[string]struct{ got, want [][]string }{
		"early":      {bootCommands(r), [][]string{{"/usr/bin/env", "INSTANCE_ID=i", "/h"}, {"/bin/sh", "-c", "b"}}},
		"first boot": {lastCommands(r, true), [][]string{{"/s"}, {"/e"}}},
		"later boot": {lastCommands(r, false), [][]string{{"/e"}}},
	} {
		if d := cmp.Diff(tt.got, tt.want); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Each installation has a machine-id (machine-id(5)) of its own, which stays over reboots and goes
// with a new installation. One that the user data bring counts.
func TestEachInstallationHasAMachineID(t *testing.T) {
	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 3, Speed: "max"}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	image, err := images.Build()
	if err != nil {
		t.Fatal(err)
	}
	install := func(h *rack.Host, userData string) {
		t.Helper()
		writeImage(t, h, image)
		drive, err := configdrive.Build(job.ConfigDrive{MetaData: []byte(`{"uuid": "` + h.Name() + `"}`), UserData: []byte(userData)})
		if err != nil {
			t.Fatal(err)
		}
		writeConfigDrive(t, h, drive)
	}
	// boot boots a server and returns its ID.
	boot := func(h *rack.Host, reset string) string {
		t.Helper()
		boots := h.Machine().Boots
		if _, err := w.Control().Power(t.Context(), h.Name(), reset); err != nil {
			t.Fatal(err)
		}
		var x *system
		patience.Await(t, "the server boots", func() bool {
			if h.Machine().Boots == boots {
				return false
			}
			x, err = w.agents.systems.of(t.Context(), h)
			return err == nil
		})
		id, err := x.ReadFile("etc/machine-id")
		if b, herr := hex.DecodeString(strings.TrimSuffix(string(id), "\n")); err != nil || herr != nil || len(b) != 16 {
			t.Errorf("the machine-id of %s is %q, %v, want 32 digits and a newline", h.Name(), id, errors.Join(err, herr))
		}
		if linked, err := x.ReadFile("var/lib/dbus/machine-id"); err != nil || string(linked) != string(id) {
			t.Errorf("D-Bus has the machine-id %q, %v, want %q", linked, err, id)
		}
		if n, err := x.Stat("etc/machine-id"); err != nil || n.Mode != 0o444 {
			t.Errorf("the machine-id has the mode %v, %v, want 0444", n.Mode, err)
		}
		if f, err := x.nodeFacts(t.Context()); err != nil || f.MachineID+"\n" != string(id) {
			t.Errorf("the node of %s reports the machine-id %q, %v, want %q", h.Name(), f.MachineID, err, id)
		}
		return string(id)
	}
	hosts := w.rack.Hosts()
	writeImage(t, hosts[0], image) // it has no data source
	install(hosts[1], "")
	given := strings.Repeat("0123456789abcdef", 2) + "\n"
	install(hosts[2], "#cloud-config\nwrite_files: [{path: /etc/machine-id, permissions: '0444', content: \""+strings.TrimSpace(given)+"\\n\"}]\n")
	var first []string
	for _, h := range hosts {
		first = append(first, boot(h, "On"))
	}
	if first[0] == first[1] || first[1] == first[2] || first[2] != given {
		t.Errorf("machine-ids are %q, want different ones, and %q", first, given)
	}
	for i, h := range hosts {
		if again := boot(h, "ForceRestart"); again != first[i] {
			t.Errorf("the machine-id of %s after a reboot is %q, want %q", h.Name(), again, first[i])
		}
	}
	install(hosts[1], "")
	if again := boot(hosts[1], "ForceRestart"); again == first[1] {
		t.Errorf("the machine-id after a new installation is %q as before", again)
	}
	x, err := w.agents.systems.of(t.Context(), hosts[0])
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := x.Changes(); err != nil || len(changes) > 0 {
		t.Errorf("a server without a data source has written %v, %v, want nothing", changes, err)
	}
	if b, err := x.ReadFile(debian.OSRelease); err != nil || string(b) != debian.Bookworm {
		t.Errorf("os-release is %q, %v, want that of Debian 12", b, err)
	}
	if _, err := x.ReadFile("etc/netplan/50-cloud-init.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("netplan: %v", err)
	}
	if err := x.Put(sandbox.Tree{"etc/machine-id": sandbox.File(0o444, given)}); err != nil {
		t.Fatal(err)
	}
	if got := boot(hosts[0], "GracefulRestart"); got != given {
		t.Errorf("the machine-id is %q, want the one that its user has written", got)
	}
}

// A server that boots the lab's image has the os-release of its rack file, from which its LCM agent
// takes the distribution.
func TestOSReleaseOfTheRackFileReachesTheLabsImage(t *testing.T) {
	const jammy = "ID=ubuntu\nVERSION_ID=\"22.04\"\nVERSION_CODENAME=jammy\n"
	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 2, Speed: "max"}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	image, err := images.Build()
	if err != nil {
		t.Fatal(err)
	}
	w.agents.systems.osReleases = osReleases([]rackfile.Host{{Index: 0}, {Index: 1, OSRelease: jammy}})
	for i, want := range []string{debian.Bookworm, jammy} {
		h := w.rack.Hosts()[i]
		writeImage(t, h, image)
		if _, err := w.Control().Power(t.Context(), h.Name(), "On"); err != nil {
			t.Fatal(err)
		}
		var x *system
		patience.Await(t, "the server boots", func() bool {
			x, err = w.agents.systems.of(t.Context(), h)
			return err == nil
		})
		if b, err := x.ReadFile(debian.OSRelease); err != nil || string(b) != want {
			t.Errorf("os-release of %s is %q, %v, want %q", h.Name(), b, err, want)
		}
		netplan, err := x.Stat("etc/netplan")
		if got := err == nil && netplan.Mode.IsDir(); got != (want == jammy) {
			t.Errorf("%s has /etc/netplan: %v, %v", h.Name(), got, err)
		}
	}
}

// writeConfigDrive writes a config drive to a partition of the second disk of a server.
func writeConfigDrive(t *testing.T, h *rack.Host, drive []byte) {
	t.Helper()
	const block, first = 512, 2048
	m, err := h.Medium(h.Drives()[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	blocks := m.Size() / block
	table := gpt.New(block, gpt.MustParse("5C0CF78E-2A58-4D6B-9F39-0D3B6D3F2B01"))
	table.Add(gpt.Partition{Type: gpt.LinuxData, ID: gpt.MustParse("5C0CF78E-2A58-4D6B-9F39-0D3B6D3F2B02"), First: first, Last: first + uint64(len(drive)/block)})
	mbr := make([]byte, block)
	gpt.Protect(mbr, blocks)
	for _, p := range append(table.Parts(blocks), gpt.Part{Off: 0, Bytes: mbr}, gpt.Part{Off: first * block, Bytes: drive}) {
		if _, err := m.WriteAt(p.Bytes, p.Off); err != nil {
			t.Fatal(err)
		}
	}
}
