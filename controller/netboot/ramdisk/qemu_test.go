package ramdisk

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// packages are those that .ci/run gets with apt-get download.
func packages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(prerequisites.Need(t, "packages of an agent's image"), "*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// server is a PC that QEMU emulates, independently of package emulator. Its network
// ends in this test.
type server struct {
	name string
	args func(r *rig) []string
	file func(r *rig) string // that DHCP names; nil is none
}

const (
	// The address of this machine in QEMU's user network.
	gateway    = "10.0.2.2"
	diskSerial = "METALABDISK1"
	diskSize   = 64 << 20
	serverMAC  = "52:54:00:12:34:56"
)

// rig is a controller as far as agents see it.
type rig struct {
	*testing.T
	image   *netboot.Image
	agents  *inband.Server
	media   *netboot.Server
	boot    inband.Boot
	changed chan struct{}
}

func newRig(t *testing.T, image *netboot.Image) *rig {
	t.Helper()
	id, err := inband.LoadIdentity(t.TempDir(), time.Now(), net.ParseIP(gateway))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, image: image, boot: inband.Boot{Host: "h1", ID: "b1"}, changed: make(chan struct{}, 1)}
	serve := func(h func() http.Handler, secure bool) string {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { h().ServeHTTP(w, q) }))
		if secure {
			srv.TLS = &tls.Config{Certificates: []tls.Certificate{id.Certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
			srv.StartTLS()
		} else {
			srv.Start()
		}
		t.Cleanup(srv.Close)
		return strings.Replace(srv.URL, "127.0.0.1", gateway, 1)
	}
	var once sync.Mutex // the servers are made after their addresses are known
	once.Lock()
	get := func(s func() http.Handler) func() http.Handler {
		return func() http.Handler { once.Lock(); defer once.Unlock(); return s() }
	}
	agentsURL := serve(get(func() http.Handler { return r.agents }), true)
	mediaURL := serve(get(func() http.Handler { return r.media }), false)
	r.agents, err = inband.New(inband.Config{
		Key: id.Key, CA: id.CA, URL: agentsURL, Clock: testclock.NewFakePassiveClock(time.Now()),
		Changed: func(string) {
			select {
			case r.changed <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.media, err = netboot.New(netboot.Config{Key: id.Key, URL: mediaURL, Media: r.agents.Media, Image: image}); err != nil {
		t.Fatal(err)
	}
	once.Unlock()
	return r
}

// iso is the medium of the boot, as a BMC fetches it.
func (r *rig) iso() string {
	url := strings.Replace(r.media.ISO(r.boot), gateway, "127.0.0.1", 1)
	resp, err := http.Get(url) //nolint:gosec,noctx // our own server
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	name := filepath.Join(r.TempDir(), "agent.iso")
	f, err := os.Create(name)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := io.Copy(f, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		r.Fatalf("GET %s = %s, %v", url, resp.Status, err)
	}
	if err := f.Close(); err != nil {
		r.Fatal(err)
	}
	return name
}

func (r *rig) disk() string {
	name := filepath.Join(r.TempDir(), "disk.img")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Truncate(name, diskSize); err != nil {
		r.Fatal(err)
	}
	return name
}

// The agent boots on a PC that is not emulated by this project, and reports its
// hardware to a controller.
func TestAgentBootsOnARealLinux(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: QEMU takes a while")
	}
	qemu := prerequisites.Need(t, "QEMU")
	image := build(t)
	for _, s := range []server{
		{"ISO on PC BIOS", func(r *rig) []string { return []string{"-boot", "d", "-cdrom", r.iso()} }, nil},
		{"ISO on UEFI", func(r *rig) []string { return append(firmware(r), "-cdrom", r.iso()) }, nil},
		// QEMU's NICs have iPXE in them, and its DHCP names the script.
		{"iPXE", func(*rig) []string { return []string{"-boot", "n"} }, func(r *rig) string {
			return strings.Replace(r.media.ISO(r.boot), netboot.ISOFile, "boot.ipxe", 1)
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(t, image)
			r.agents.Expect(r.boot, "")
			r.media.Open(r.boot)
			const inventory = "b1-inspect"
			if err := r.agents.Offer(r.boot, job.Job{ID: inventory, Kind: job.Inventory, Inspect: &job.InspectSpec{ListenSeconds: 1}}); err != nil {
				t.Fatal(err)
			}
			nic := "user,model=virtio-net-pci,mac=" + serverMAC
			if s.file != nil {
				nic += ",bootfile=" + s.file(r)
			}
			report := r.run(qemu, inventory, append(s.args(r), "-nic", nic))
			check(t, report.Inventory)
			for _, n := range report.Inventory.NICs { // B-250
				if byNetwork := s.file != nil; n.MAC == serverMAC && n.PXE != byNetwork {
					t.Errorf("NIC %+v, but the server was loaded by the network: %v", n, byNetwork)
				}
			}
		})
	}
}

// build makes an image as `labctl image build agent` does.
func build(t *testing.T) *netboot.Image {
	t.Helper()
	from := packages(t)
	agent := filepath.Join(t.TempDir(), "lab-agent")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "-ldflags", "-s -w", "github.com/metalab-dev/metalab/cmd/lab-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	dir := t.TempDir()
	made, err := Build(t.Context(), Config{Agent: agent, Packages: from}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", made)
	image, err := netboot.LoadImage(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := image.Close(); err != nil {
			t.Error(err)
		}
	})
	return image
}

// firmware finds EDK II, built without variables to keep.
func firmware(r *rig) []string {
	return []string{"-drive", "if=pflash,format=raw,readonly=on,file=" + prerequisites.Need(r.T, "OVMF")}
}

// boots is how long a boot and a job of the agent may take. With an emulated processor (TCG)
// they take more than a minute on a machine at rest.
const boots = 10 * time.Minute

// run runs a server until its agent has reported a job.
func (r *rig) run(qemu, id string, args []string) job.Report {
	ctx, cancel := context.WithCancel(patience.Within(r.T, boots))
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, append([]string{
		"-m", "1024", "-smp", "1", "-accel", "tcg", "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot",
		"-smbios", "type=1,manufacturer=Metalab,product=Proof,serial=QEMU0001",
		"-drive", "if=none,id=d,format=raw,file=" + r.disk(), "-device", "virtio-blk-pci,drive=d,serial=" + diskSerial,
	}, args...)...)
	var console bytes.Buffer
	cmd.Stdout, cmd.Stderr = &console, &console
	if err := cmd.Start(); err != nil {
		r.Fatalf("%s: %v", qemu, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		st := r.agents.Expect(r.boot, "")
		r.agents.Confirm(r.boot, st.Key)
		if rep := st.Jobs[id]; rep.State == job.Done || rep.State == job.Failed {
			cancel()
			r.Logf("QEMU is ended: %v", <-ended)
			if rep.State == job.Failed {
				r.Fatalf("the job failed: %s", rep.Error)
			}
			return rep
		}
		select {
		case err := <-ended:
			r.Fatalf("QEMU ended (%v) before the agent had reported: %v; the end of its console:\n%s", err, context.Cause(ctx), tail(console.String()))
		case <-r.changed:
		}
	}
}

func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return fmt.Sprintf("(%d bytes before)\n%s", len(s)-most, s[len(s)-most:])
	}
	return s
}

func check(t *testing.T, h *job.Hardware) {
	t.Helper()
	if h == nil {
		t.Fatal("the report has no inventory")
	}
	t.Logf("%+v", h)
	found := false
	for _, d := range h.Disks {
		found = found || d.Serial == diskSerial && d.SizeBytes == diskSize
	}
	nic := false
	for _, n := range h.NICs {
		nic = nic || n.MAC == serverMAC
	}
	if !found || !nic || h.System.Serial != "QEMU0001" || h.System.Manufacturer != "Metalab" {
		t.Errorf("inventory %+v: want the disk %s, the NIC %s and the system QEMU0001", h, diskSerial, serverMAC)
	}
}
