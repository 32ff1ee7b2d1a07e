package lcm

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

var _ System = sandbox.Host{}

type layer struct {
	mu sync.Mutex
	b  []byte
}

func (l *layer) Load() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b, nil
}

func (l *layer) Save(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = b
	return nil
}

// statements H23 and H33: the agent in a server of the lab. The module changes the server's
// files alone, as the superuser, and its reboot request is reported.
func TestAnsibleInAServerOfTheLab(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	prerequisites.Need(t, "ansible-playbook")
	base := sandbox.MachineFiles()
	base["etc/passwd"], base["etc/group"] = sandbox.File(0o644, "root:x:0:0:root:/root:/bin/bash\n"), sandbox.File(0o644, "root:x:0:\n")
	base["etc/lab-agent/token"] = sandbox.File(0o600, "t\n")
	system := sandbox.New(sandbox.Config{Base: base, Store: &layer{}, Dir: filepath.Join(t.TempDir(), "root"), RequireLimits: true, Boot: sys.Boot{ID: "first"}})
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	host := system.Host()
	f := newAPI()
	data, m := fixture(t, "file-template")
	web := files(t, map[string][]byte{"/m.tgz": data})
	f.secret("s", map[string]string{"password": "secret{{word}}"})
	const dir = "/root/host-os-modules/file-template-1.0.0"
	values, err := json.Marshal(map[string]any{"path": "/etc/app.conf", "settings": map[string]any{"a": 1}, "mode": "0600", "reboot_reason": "the settings have changed"})
	if err != nil {
		t.Fatal(err)
	}
	f.change(machineWith(
		downloader(map[string]string{"url": web.URL + "/m.tgz", "sha256": m.SHA256, "path": dir}),
		playItem(map[string]string{"path": dir, "sha256": m.SHA256, "playbook": m.Playbook, "values": string(values), "secretRef": "default/s"}),
	))
	c := config(f, nil)
	c.System, c.Program = host, ""
	r := start(t, c)
	patience.Await(t, "the reboot request is reported", func() bool {
		h := f.machine().Status.HostInfo
		return h != nil && h.RebootRequired
	})
	check(t, f, map[string]string{"download": "0 after 1", "play": "0 after 1"})
	if got := f.machine().Status.HostInfo.RebootReason; got != "the settings have changed" {
		t.Errorf("reason = %q", got)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if b, err := host.ReadFile("/etc/app.conf"); err != nil || !strings.Contains(string(b), "\npassword=secret{{word}}\n") {
		t.Errorf("the module has written %q, %v", b, err)
	}
	f.leaks(t, "secret{{")
	if b, err := host.ReadFile(LogFile("play")); err != nil || !strings.Contains(string(b), "localhost ") || strings.Contains(string(b), "secret{{") {
		t.Errorf("the log of the play is %q, %v", b, err)
	}
	if _, err := host.ReadDir(runDir + "/item"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files of the play are left: %v", err)
	}
	if _, err := sysFile(t, "/etc/app.conf"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the play has written to this machine: %v", err)
	}
}

// sysFile reads a file of this machine.
func sysFile(t *testing.T, name string) ([]byte, error) {
	t.Helper()
	h, err := sys.OpenHost("/")
	if err != nil {
		t.Fatal(err)
	}
	return h.ReadFile(name)
}
