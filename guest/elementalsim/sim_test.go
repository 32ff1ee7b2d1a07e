package elementalsim_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/agent/elemental"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/elementalsim"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/images"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

const workDir = elemental.DefaultWorkDir

// server is a server with a disk and the system that runs on it.
type server struct {
	t      *testing.T
	disk   *systest.Memory
	layer  []byte
	boots  int
	system *sandbox.System
	plugin elemental.Plugin
	done   chan string // units that were started, with their commands
}

// Load implements sandbox.Store.
func (s *server) Load() ([]byte, error) { return s.layer, nil }

// Save implements sandbox.Store.
func (s *server) Save(b []byte) error { s.layer = b; return nil }

func newServer(t *testing.T, c elementalsim.Config) *server {
	s := &server{t: t, disk: systest.NewMemory(8 << 30), done: make(chan string, 8)}
	c.Devices = systest.New(systest.Machine{Disks: []systest.Disk{{Size: s.disk.Size(), Open: func() (sys.Block, error) { return s.disk, nil }}}})
	s.boot(c)
	s.put("/etc/hostname", "m-1\n")
	s.put("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
	s.put("/etc/group", "root:x:0:\n")
	return s
}

// boot starts the next system, and its plugin.
func (s *server) boot(c elementalsim.Config) {
	s.t.Helper()
	if c.Devices == nil {
		c.Devices = systest.New(systest.Machine{Disks: []systest.Disk{{Size: s.disk.Size(), Open: func() (sys.Block, error) { return s.disk, nil }}}})
	}
	s.boots++
	s.system = sandbox.New(sandbox.Config{
		Base: sandbox.Tree{}, Store: s, Dir: filepath.Join(s.t.TempDir(), "root"), Now: time.Now, Boot: sys.Boot{ID: fmt.Sprint("boot-", s.boots)}, Programs: []string{"lab-agent"},
		Run: func(_ context.Context, unit string, args, _ []string) error {
			s.done <- unit + ": " + strings.Join(args[1:], " ")
			return nil
		},
		Reboot: func() {}, PowerOff: func() {},
	})
	s.t.Cleanup(func() { _ = s.system.Close() })
	s.plugin = elementalsim.New(c)(s.system.Host())
	if err := s.plugin.Init(s.t.Context(), elemental.PluginContext{WorkDir: workDir, ConfigPath: elemental.DefaultConfigFile}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) put(name, text string) {
	s.t.Helper()
	if err := s.system.Host().Put(sys.File{Name: name, Mode: 0o644, Content: []byte(text)}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) read(name string) string {
	b, err := s.system.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}

func (s *server) start() error { return s.plugin.(elemental.Starter).Start(s.t.Context()) }

// finalize writes the files that a registration leaves.
func (s *server) finalize() {
	for name, text := range map[string]string{"config.yaml": "c\n", "private.key": "k\n", "hostname": "m-1\n"} {
		s.put(workDir+"/"+name, text)
	}
	s.put(elemental.DefaultConfigFile, "c\n")
}

func serveImage(t *testing.T) (image []byte, url, sum string) {
	t.Helper()
	image, err := images.Build()
	if err != nil {
		t.Fatal(err)
	}
	l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/os.raw" {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "os.raw", time.Time{}, bytes.NewReader(image))
	}))
	t.Cleanup(l.Close)
	digest := sha256.Sum256(image)
	return image, l.URL + "/os.raw", hex.EncodeToString(digest[:])
}

// volume is a volume as fs.File, which go-diskfs needs.
type volume struct{ *bytes.Reader }

// Stat implements fs.File.
func (volume) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Close implements fs.File.
func (volume) Close() error { return nil }

// instance returns the data source of the config drive on the disk.
func (s *server) instance() cloudinit.Instance {
	s.t.Helper()
	const step = 1 << 20 // partitions begin at one (plugin/disk)
	at := int64(-1)
	for off := s.disk.Size()/step*step - step; off > 0 && at < 0 && off > s.disk.Size()-256*step; off -= step {
		p := make([]byte, 6)
		if _, err := s.disk.ReadAt(p, off+16*2048); err != nil {
			continue
		}
		if string(p) == "\x01CD001" {
			at = off
		}
	}
	if at < 0 {
		s.t.Fatal("the disk has no config drive")
	}
	drive := make([]byte, min(64<<20, s.disk.Size()-at))
	if _, err := s.disk.ReadAt(drive, at); err != nil {
		s.t.Fatal(err)
	}
	files, err := iso9660.Read(file.New(volume{bytes.NewReader(drive)}, true), int64(len(drive)), 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	i, err := cloudinit.Read(files)
	if err != nil {
		s.t.Fatal(err)
	}
	return i
}

// The image is written to the disk, and its first boot has the cloud-config of the registration,
// the agent's files and its unit.
func TestInstall(t *testing.T) {
	image, url, sum := serveImage(t)
	s := newServer(t, elementalsim.Config{})
	s.finalize()
	if err := s.plugin.InstallCloudInit(t.Context(), []byte(`{"users":[{"name":"ann"}],"runcmd":["echo hi"],"packages":["x"]}`)); err != nil {
		t.Fatal(err)
	}
	in := fmt.Sprintf(`{"device":"/dev/sda","system":{"uri":%q,"checksum":%q},"snapshotter":{"type":"btrfs"}}`, url, sum)
	if err := s.plugin.Install(t.Context(), []byte(in)); err != nil {
		t.Fatal(err)
	}
	if err := images.Written(s.disk, image); err != nil {
		t.Error(err)
	}
	root := cloudinit.Root{}
	i := s.instance()
	r := cloudinit.Configure(i, root)
	if r.Hostname != "m-1" || i.ID == "" {
		t.Errorf("host name %q, instance %q", r.Hostname, i.ID)
	}
	for name, want := range map[string]string{
		workDir + "/private.key": "0600 k\n", workDir + "/config.yaml": "0640 c\n", elemental.DefaultConfigFile: "0640 c\n", workDir + "/hostname": "0644 m-1\n",
		workDir + "/device": "0644 /dev/sda\n",
	} {
		f, _ := root.Get(name)
		if got := fmt.Sprintf("%04o %s", f.Mode, f.Content); got != want {
			t.Errorf("%s of the installed system = %q, want %q", name, got, want)
		}
	}
	if f, _ := root.Get("/etc/passwd"); !strings.Contains(string(f.Content), "ann:x:") {
		t.Errorf("users of the installed system = %q, want ann", f.Content)
	}
	if f, _ := root.Get("/etc/systemd/system/elemental-agent.service"); !strings.Contains(string(f.Content), "lab-agent elemental run\n") {
		t.Errorf("unit = %q", f.Content)
	}
	if got := strings.Join(r.Run, "; "); got != "echo hi; systemctl enable --now elemental-agent.service" {
		t.Errorf("runcmd = %s", got)
	}
}

func TestInstallRefuses(t *testing.T) {
	_, url, sum := serveImage(t)
	for _, tt := range []struct{ in, want string }{
		{`{}`, "install: give the URL of an image"},
		{`{"device":"/dev/sdz","system":{"uri":"` + url + `","checksum":"` + sum + `"}}`, "install.device: "},
		{`{"system":{"uri":"` + url + `"}}`, "checksum is missing"},
		{`{"system":{"uri":"` + url + `","checksum":"` + strings.Repeat("0", 64) + `"}}`, "checksum"},
		{`{"device":7}`, "install.yaml: json"},
	} {
		s := newServer(t, elementalsim.Config{})
		s.finalize()
		if err := s.plugin.InstallCloudInit(t.Context(), []byte("null")); err != nil {
			t.Fatal(err)
		}
		if err := s.plugin.Install(t.Context(), []byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Install(%s) = %v, want %q", tt.in, err, tt.want)
		}
		if _, boots, err := images.Bootable(s.disk, s.disk.Size()); boots || err != nil {
			t.Errorf("Install(%s): the disk boots: %v, %v", tt.in, boots, err)
		}
	}
	s := newServer(t, elementalsim.Config{})
	if err := s.plugin.InstallCloudInit(t.Context(), []byte(`{"write_files":7}`)); err == nil || !strings.Contains(err.Error(), "write_files") {
		t.Errorf("InstallCloudInit with a wrong list = %v", err)
	}
}

const cloudConfig = `#cloud-config
write_files:
- {path: /etc/role, content: worker, permissions: '0600'}
- {path: /etc/motd, content: "more\n", append: true}
users: [{name: ann, ssh_authorized_keys: []}]
runcmd:
- systemctl enable --now joined.service
`

const joined = "[Service]\nType=oneshot\nExecStart=/usr/local/bin/lab-agent join\nRemainAfterExit=yes\n[Install]\nWantedBy=multi-user.target\n"

// The bootstrap configuration is applied after the reboot, once; each boot has the sentinel.
func TestCloudConfigIsAppliedAfterTheReboot(t *testing.T) {
	s := newServer(t, elementalsim.Config{})
	s.put("/etc/motd", "hello\n")
	s.put("/home/ann/.profile", "") // the home is there
	s.put("/etc/systemd/system/joined.service", joined)
	if err := s.plugin.Bootstrap(t.Context(), "cloud-config", []byte(cloudConfig)); err != nil {
		t.Fatal(err)
	}
	if err := s.start(); err != nil || s.read("/etc/role") != "" || s.read(elemental.SentinelFile) != "" {
		t.Fatalf("Start() in the same boot = %v, /etc/role %q: want nothing done", err, s.read("/etc/role"))
	}
	for range 2 {
		s.boot(elementalsim.Config{})
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"/etc/role": "worker", "/etc/motd": "hello\nmore\n", "/etc/hostname": "m-1\n", elemental.SentinelFile: "success\n", "/var/lib/cloud/data/instance-id": "",
		} {
			if got := s.read(name); got != want {
				t.Errorf("boot %d: %s = %q, want %q", s.boots, name, got, want)
			}
		}
	}
	if got := s.read("/etc/passwd"); !strings.Contains(got, "root:x:0:") || strings.Count(got, "ann:x:") != 1 {
		t.Errorf("/etc/passwd = %q", got)
	}
	if got := <-s.done; got != "joined.service: join" || len(s.done) > 0 {
		t.Errorf("services = %q and %d more, want the one of runcmd once", got, len(s.done))
	}
}

// A configuration that fails leaves no sentinel, and is not applied again.
func TestBootstrapThatFailsLeavesNoSentinel(t *testing.T) {
	s := newServer(t, elementalsim.Config{})
	if err := s.plugin.Bootstrap(t.Context(), "cloud-config", []byte("#cloud-config\nruncmd: [systemctl start none.service]\n")); err != nil {
		t.Fatal(err)
	}
	s.boot(elementalsim.Config{})
	if err := s.start(); err == nil || !strings.Contains(err.Error(), "Unit none.service not found") {
		t.Errorf("Start() = %v, want the error of the command", err)
	}
	if err := s.start(); err != nil || s.read(elemental.SentinelFile) != "" {
		t.Errorf("second Start() = %v, sentinel %q; want nothing", err, s.read(elemental.SentinelFile))
	}
}

// Ignition: directories, files, links, users and units.
func TestIgnition(t *testing.T) {
	s := newServer(t, elementalsim.Config{})
	unit, err := json.Marshal(joined)
	if err != nil {
		t.Fatal(err)
	}
	in := `{"ignition":{"version":"3.3.0"},
		"passwd":{"users":[{"name":"core","uid":1500,"shell":"/bin/sh","sshAuthorizedKeys":[]}],"groups":[{"name":"ops"}]},
		"storage":{"directories":[{"path":"/opt/d","mode":448}],
			"files":[{"path":"/etc/a","mode":384,"contents":{"source":"data:,hello%20you"}},{"path":"/etc/hostname","overwrite":true,"contents":{"source":"data:,other%0A"}}],
			"links":[{"path":"/etc/l","target":"/etc/a"}]},
		"systemd":{"units":[{"name":"joined.service","enabled":true,"contents":` + string(unit) + `},{"name":"off.service","mask":true}]}}`
	if err := s.plugin.Bootstrap(t.Context(), "ignition", []byte(in)); err != nil {
		t.Fatal(err)
	}
	s.boot(elementalsim.Config{})
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"/etc/a": "hello you", "/etc/l": "hello you", "/etc/hostname": "other\n", elemental.SentinelFile: "success\n"} {
		if got := s.read(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if n, err := s.system.Stat("/etc/a"); err != nil || n.Mode.Perm() != 0o600 {
		t.Errorf("mode of /etc/a = %v, %v", n.Mode, err)
	}
	if got := s.read("/etc/passwd"); !strings.Contains(got, "core:x:1500:") || strings.Contains(got, "debian") {
		t.Errorf("/etc/passwd = %q, want core", got)
	}
	if got := <-s.done; got != "joined.service: join" {
		t.Errorf("service = %q", got)
	}
}

func TestIgnitionRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: "ignition: ", `{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a","contents":{"source":"https://x/"}}]}}`: "source https://x/ is not fetched",
		`{"ignition":{"version":"3.3.0"},"storage":{"filesystems":[{"device":"/dev/a","format":"ext4"}]}}`: "storage.disks, raid, filesystems and luks are not applied",
	} {
		s := newServer(t, elementalsim.Config{})
		if err := s.plugin.Bootstrap(t.Context(), "ignition", []byte(in)); err != nil {
			t.Fatal(err)
		}
		s.boot(elementalsim.Config{})
		if err := s.start(); err == nil || !strings.Contains(err.Error(), want) || s.read(elemental.SentinelFile) != "" {
			t.Errorf("Start() with %s = %v, sentinel %q; want %q", in, err, s.read(elemental.SentinelFile), want)
		}
	}
}

// The image of another version is fetched, and a reboot demanded until it has happened.
func TestOSVersion(t *testing.T) {
	_, url, sum := serveImage(t)
	s := newServer(t, elementalsim.Config{})
	s.put("/etc/os-release", "ID=debian\nIMAGE_VERSION=old\n")
	want := fmt.Appendf(nil, `{"osVersion":{"imageUri":%q,"debug":true}}`, url)
	reconcile := func(in []byte) (bool, error) { return s.plugin.ReconcileOSVersion(t.Context(), in) }
	if reboot, err := reconcile([]byte(`{"osVersion":{"imageUri":"` + url + `.none"}}`)); reboot || err == nil || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("an image that is not there: %v, %v", reboot, err)
	}
	for range 2 { // an agent that is killed before the reboot
		if reboot, err := reconcile(want); !reboot || err != nil {
			t.Fatalf("ReconcileOSVersion() = %v, %v, want a reboot", reboot, err)
		}
	}
	if got := s.read("/etc/os-release"); got != "ID=debian\nIMAGE_VERSION=\""+url+"\"\nIMAGE_ID=\"sha256:"+sum+"\"\n" {
		t.Errorf("os-release = %q", got)
	}
	s.boot(elementalsim.Config{})
	for _, in := range [][]byte{want, []byte("null"), []byte(`{}`)} {
		if reboot, err := reconcile(in); reboot || err != nil {
			t.Errorf("ReconcileOSVersion(%s) after the reboot = %v, %v, want none", in, reboot, err)
		}
	}
}

// A reset is prepared, its sentinel cleared, and the agent started with the command reset; then
// the disk does not boot any more.
func TestReset(t *testing.T) {
	_, url, sum := serveImage(t)
	s := newServer(t, elementalsim.Config{Image: url, Checksum: sum})
	s.finalize()
	for _, do := range []func(context.Context, []byte) error{s.plugin.InstallCloudInit, s.plugin.Install} {
		if err := do(t.Context(), []byte("null")); err != nil {
			t.Fatal(err)
		}
	}
	s.put(workDir+"/device", "/dev/sda\n") // as in the installed system
	for name, text := range elementalsim.Units(false) {
		s.put("/etc/systemd/system/"+name, text)
	}
	s.put(elemental.CloudConfigFile, "x")
	s.put(elemental.SentinelFile, "x")
	if err := s.plugin.TriggerReset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-s.done; got != "elemental-agent-reset.service: elemental reset" {
		t.Errorf("service = %q, want the reset", got)
	}
	for _, name := range []string{workDir + "/needs.reset", elemental.CloudConfigFile, elemental.SentinelFile} {
		if s.read(name) != "" {
			t.Errorf("%s is left after the preparation", name)
		}
	}
	if err := s.plugin.Reset(t.Context(), []byte(`{"resetOem":true}`)); err != nil || s.read(workDir+"/reset.yaml") != "resetOem: true\n" {
		t.Errorf("Reset() = %v, reset.yaml %q", err, s.read(workDir+"/reset.yaml"))
	}
	boots := func() bool {
		_, ok, err := images.Bootable(s.disk, s.disk.Size())
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !boots() {
		t.Error("the disk does not boot before the reset is reported")
	}
	if err := s.plugin.(elemental.Finisher).FinishReset(t.Context()); err != nil || boots() {
		t.Errorf("FinishReset() = %v, the disk boots: %v", err, boots())
	}
}

// Boot hooks, bootcmd and scripts of every boot run when the configuration is applied, in the order of
// cloud-init, and in each boot after, once.
func TestBootstrapRunsWhatIsForEveryBoot(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	s := newServer(t, elementalsim.Config{})
	s.finalize()
	const config = `#cloud-config-archive
- {type: text/x-shellscript-per-boot, content: "#!/bin/sh\necho per-boot >> /var/log-of-boots"}
- "#!/bin/sh\necho once >> /var/log-of-boots"
- "#cloud-boothook\n#!/bin/sh\necho hook ${INSTANCE_ID-none} >> /var/log-of-boots"
- "bootcmd: [\"echo bootcmd >> /var/log-of-boots\"]"
`
	if err := s.plugin.Bootstrap(t.Context(), "cloud-config", []byte(config)); err != nil {
		t.Fatal(err)
	}
	want := "hook\nbootcmd\nonce\nper-boot\n"
	for range 3 {
		s.boot(elementalsim.Config{})
		for range 2 { // the agent may start again
			if err := s.start(); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.read("var/log-of-boots"); got != want {
			t.Errorf("boot %d: executed %q, want %q", s.boots, got, want)
		}
		if err := s.system.Close(); err != nil {
			t.Fatal(err)
		}
		want += "hook\nbootcmd\nper-boot\n"
	}
}
