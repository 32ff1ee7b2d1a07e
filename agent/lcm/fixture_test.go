package lcm

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// server is a system below a scratch root that can reboot.
type server struct {
	*sys.Host
	dir string

	mu      sync.Mutex
	boot    sys.Boot
	reboots int
	fail    error                        // error of Reboot
	put     func(files []sys.File) error // if set, before Put
	ran     []sys.Command
}

func newServer(t *testing.T) *server {
	t.Helper()
	return newServerIn(t, t.TempDir())
}

// newServerIn is newServer with its root in a directory.
func newServerIn(t *testing.T, dir string) *server {
	t.Helper()
	h, err := sys.OpenHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Host: h, dir: dir, boot: sys.Boot{ID: "first", Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	s.write(t, "/etc/lab-agent/token", "t\n", 0o600)
	s.write(t, "/etc/os-release", "NAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\nVERSION_CODENAME=bookworm\n", 0o644)
	return s
}

func (s *server) Boot() (sys.Boot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boot, nil
}

func (s *server) Reboot(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.reboots++
	return nil
}

func (s *server) Put(files ...sys.File) error {
	if s.put != nil {
		if err := s.put(files); err != nil {
			return err
		}
	}
	return s.Host.Put(files...)
}

func (s *server) Exec(ctx context.Context, c sys.Command) (int, error) {
	s.mu.Lock()
	s.ran = append(s.ran, c)
	s.mu.Unlock()
	return s.Host.Exec(ctx, c)
}

func (s *server) commands() []sys.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran
}

// nextBoot boots the server, which empties /run and /tmp.
func (s *server) nextBoot(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	s.boot = sys.Boot{ID: s.boot.ID + "+", Time: s.boot.Time.Add(time.Hour)}
	s.mu.Unlock()
	if err := s.Remove("/run"); err != nil {
		t.Fatal(err)
	}
}

func (s *server) write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := s.Host.Put(sys.File{Name: name, Mode: mode, Content: []byte(content)}); err != nil {
		t.Fatal(err)
	}
}

// read returns a file; "" if there is none.
func (s *server) read(t *testing.T, name string) string {
	t.Helper()
	b, err := s.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// lock is a buffer that a log writes to.
type lock struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lock) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lock) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// running is an agent that runs in a test.
type running struct {
	log  *lock
	done chan error
	end  context.CancelFunc
}

// stop ends the agent and returns its error.
func (r *running) stop() error {
	r.end()
	return <-r.done
}

func config(f *fakeAPI, s *server) Config {
	c := Config{
		Account:  Account{Account: kubeapi.Account{Server: "https://api.example", CAFile: "/etc/lab-agent/ca.crt", TokenFile: "/etc/lab-agent/token"}, Namespace: "default", Machine: "worker-0"},
		Hardware: hardware("0c:00:00:00:00:01", "192.0.2.7"),
		Version:  "v0.3.0-300", SHA256: Sum([]byte("this program")), Program: "/usr/local/bin/lab-agent",
		API: f,
	}
	if s != nil {
		c.System = s
	}
	return c
}

func hardware(mac, ip string) func(context.Context) (job.Hardware, error) {
	return func(context.Context) (job.Hardware, error) {
		return job.Hardware{
			Hostname: "worker-0", CPU: job.CPU{Arch: "x86_64", Count: 8}, RAMMiB: 1024,
			NICs:  []job.NIC{{Name: "eth0", MAC: mac, IP: "2001:db8::7"}, {Name: "eth0", MAC: mac, IP: ip}, {Name: "eth1", MAC: mac[:15] + "ff", IP: "198.51.100.9", PCIAddress: "0000:01:00.0"}},
			Disks: []job.Disk{{Name: "/dev/sda", SizeBytes: 1 << 40, Type: "SSD", Serial: "S1"}},
		}, nil
	}
}

// start runs an agent until the test ends.
func start(t *testing.T, c Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{log: &lock{}, done: make(chan error, 1), end: cancel}
	c.Log = slog.New(slog.NewTextHandler(r.log, nil))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.done <- Run(ctx, c)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("log of the agent:\n%s", r.log)
		}
	})
	return r
}

// inBubble runs a test on a virtual clock.
func inBubble(t *testing.T, test func(t *testing.T)) { t.Helper(); synctest.Test(t, test) }

// pass lets time pass, and then the agent do all that is due.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time of the bubble
	synctest.Wait()
}

// script is an item that runs a line of bash.
func script(name, text string, phase lcmv1.Phase) lcmv1.LCMStateItem {
	return lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: name, Version: "v1", Phase: phase, Params: map[string]string{"script": text}}
}

// machineWith is an LCMMachine with items.
func machineWith(items ...lcmv1.LCMStateItem) func(*lcmv1.LCMMachine) {
	return func(m *lcmv1.LCMMachine) {
		m.Namespace, m.Name = "default", "worker-0"
		m.Spec.Type, m.Spec.LCMType, m.Spec.StateItems = lcmv1.MachineWorker, lcmv1.LCMTypeK0s, items
	}
}

// path is a file below the scratch root, as this machine sees it.
func (s *server) path(name string) string { return filepath.Join(s.dir, name) }
