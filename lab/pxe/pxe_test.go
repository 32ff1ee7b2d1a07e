package pxe

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/netboot/cpio"
	"github.com/metalab-dev/metalab/controller/netboot/stub"
)

const uuid = "01234567-89ab-4def-8123-456789abcdef"

var (
	boot = inband.Boot{Host: "h1", ID: "b1"}
	ours = NIC{MAC: "02:00:00:00:00:01", UUID: uuid}
)

// rig is a netboot server on loopback, and a Network with its services.
type rig struct {
	*netboot.Server
	net Network
}

func newRig(t *testing.T, mode netboot.Mode) *rig {
	t.Helper()
	r := &rig{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.ServeHTTP(w, q) }))
	t.Cleanup(web.Close)
	var err error
	r.Server, err = netboot.New(netboot.Config{
		Key: make(inband.Key, inband.KeySize), URL: web.URL, OnDHCP: r.net.ReportExchange,
		Media: func(b inband.Boot) job.Media {
			return job.Media{Server: "https://127.0.0.1:2", Token: "secret of " + b.Host, Boot: b.String()}
		},
		Net: &netboot.Network{Mode: mode, Server: netip.MustParseAddr("127.0.0.1"), Pool: netip.MustParsePrefix("198.51.100.0/24")},
	})
	if err != nil {
		t.Fatal(err)
	}
	free := netip.MustParseAddrPort("127.0.0.1:0")
	on, err := netboot.Ports{DHCP: free, TFTP: free}.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	port := func(c *net.UDPConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }
	r.net.Serve(port(on.DHCP), port(on.TFTP).Port())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Serve(ctx, on) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

func (r *rig) know(t *testing.T, mac string) {
	t.Helper()
	if err := r.Know(netboot.Client{Host: boot.Host, Name: "node-0", MAC: mac, UUID: uuid}); err != nil {
		t.Fatal(err)
	}
	r.Open(boot)
}

func TestAgentBootsOverTheNetwork(t *testing.T) {
	legacy := ours
	legacy.Legacy = true
	for _, mode := range []netboot.Mode{netboot.Full, netboot.Proxy} {
		for name, how := range map[string]func(*rig) (System, error){
			"PXE, UEFI":      func(r *rig) (System, error) { return r.net.PXE(t.Context(), ours) },
			"PXE, BIOS":      func(r *rig) (System, error) { return r.net.PXE(t.Context(), legacy) },
			"HTTP, by DHCP":  func(r *rig) (System, error) { return r.net.HTTP(t.Context(), ours, "") },
			"HTTP, by a URI": func(r *rig) (System, error) { return r.net.HTTP(t.Context(), ours, r.ISO(boot)) },
			"PXE, by its UUID": func(r *rig) (System, error) {
				r.Forget(boot.Host)
				r.know(t, "")
				return r.net.PXE(t.Context(), ours)
			},
		} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				r := newRig(t, mode)
				r.know(t, ours.MAC)
				m, err := how(r)
				if err != nil || m.Token != "secret of h1" || m.Boot != boot.String() {
					t.Errorf("booted %+v, %v: want the agent of %s", m, err, boot)
				}
			})
		}
	}
}

func TestSeedBootsOverTheNetwork(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		r := newRig(t, netboot.Full)
		nic := ours
		nic.Legacy = legacy
		want := netboot.Seed{MetaData: []byte("instance-id: x\n"), UserData: []byte("#cloud-config\n")}
		r.OfferSeed("a registration", want, []string{nic.MAC})
		got, err := r.net.PXE(t.Context(), nic)
		if err != nil || got.Seed == nil || string(got.Seed.UserData) != string(want.UserData) || string(got.Seed.MetaData) != string(want.MetaData) || got.Token != "" {
			t.Errorf("legacy %v: booted %+v, %v: want the seed", legacy, got, err)
		}
		if !strings.Contains(got.Cmdline, "ds=nocloud") {
			t.Errorf("the kernel is told %q", got.Cmdline)
		}
	}
}

func TestUnknownNICGetsNoAnswer(t *testing.T) {
	r := newRig(t, netboot.Full)
	r.know(t, "02:00:00:00:00:09")
	start := time.Now()
	if m, err := r.net.PXE(t.Context(), ours); !errors.Is(err, ErrSilent) {
		t.Errorf("another MAC address: booted %+v, %v", m, err)
	}
	if m, err := r.net.HTTP(t.Context(), ours, ""); !errors.Is(err, ErrSilent) {
		t.Errorf("another MAC address, HTTP: booted %+v, %v", m, err)
	}
	if took := time.Since(start); took >= replyTimeout {
		t.Errorf("it took %s to know that nobody answers", took)
	}
	known := ours
	known.MAC = "02:00:00:00:00:09"
	r.Close(boot.Host)
	if m, err := r.net.PXE(t.Context(), known); err == nil || errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), "nothing to boot") {
		t.Errorf("known, and not to boot: booted %+v, %v", m, err)
	}
	r.net.Serve(netip.AddrPort{}, 0)
	if _, err := r.net.PXE(t.Context(), known); !errors.Is(err, ErrSilent) {
		t.Errorf("without DHCP: %v, want %v", err, ErrSilent)
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	r.net.Serve(c.LocalAddr().(*net.UDPAddr).AddrPort(), 0)
	if _, err := r.net.PXE(t.Context(), known); !errors.Is(err, ErrSilent) {
		t.Errorf("with a DHCP server that is gone: %v, want %v", err, ErrSilent)
	}
}

func TestNetworkBootProgramsAreChecked(t *testing.T) {
	sector, err := stub.BootSector("a network boot program without iPXE")
	if err != nil {
		t.Fatal(err)
	}
	efi := stub.EFI("a network boot program without iPXE")
	damaged := bytes.Clone(efi)
	damaged[0] = 'X'
	for _, tt := range []struct {
		name   string
		b      []byte
		legacy bool
		want   error
	}{
		{"ours for UEFI", efi, false, nil},
		{"ours for BIOS", sector, true, nil},
		{"iPXE for UEFI", append(bytes.Clone(stub.EFI("x")), "iPXE 1.21"...), false, nil},
		{"one for BIOS on UEFI", sector, false, errNoProgram},
		{"one for UEFI on BIOS", efi, true, errNoProgram},
		{"damaged", damaged, false, errNoProgram},
		{"text that names iPXE", []byte("iPXE"), false, errNoProgram},
		{"nothing", nil, true, errNoProgram},
		{"zeros", make([]byte, 512), true, errNoProgram},
		{"too long for BIOS", bytes.Repeat([]byte{0x90}, 700<<10), true, errNoProgram},
		{"another program", stub.EFI("hello"), false, errNotIPXE},
	} {
		if err := startsIPXE(tt.b, tt.legacy); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	linux := make([]byte, 0x210)
	copy(linux[0x1fe:], "\x55\xaa\x00\x00HdrS")
	for name, ok := range map[string]bool{string(linux): true, string(efi): true, string(sector): false, "": false, "HdrS": false} {
		if got := isKernel([]byte(name)); got != ok {
			t.Errorf("isKernel(%d bytes) = %v, want %v", len(name), got, ok)
		}
	}
}

// web serves files by name, and 404 for others. It returns the URL of boot.ipxe.
func web(t *testing.T, files map[string][]byte) *url.URL {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}))
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL + "/boot.ipxe")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestIPXEScript(t *testing.T) {
	config := []byte(`{"server": "https://127.0.0.1:2", "token": "t"}`)
	agent := cpio.Append(nil, cpio.Entry{Name: job.MediaConfigPath, Mode: cpio.File, Content: config})
	good := map[string][]byte{
		"k": stub.EFI("x"), "i": agent, "text": []byte("hello"),
		"bare": append(cpio.Append(nil, cpio.Entry{Name: "init", Mode: cpio.File}), "\x1f\x8bcompressed"...),
		"bad":  []byte("070701zzzz"), "empty": cpio.Append(nil, cpio.Entry{Name: job.MediaConfigPath, Mode: cpio.File, Content: []byte("{}")}),
	}
	for _, tt := range []struct{ name, script, err string }{
		{"ours", "#!ipxe\n\n# a comment\nkernel k console=ttyS0 BOOTIF=01-${netX/mac:hexhyp} x=${unknown}\ninitrd --name a bare\ninitrd --name b i\nboot\nnot reached\n", ""},
		{"no shebang", "kernel k\ninitrd i\nboot\n", "#!ipxe"},
		{"no boot", "#!ipxe\nkernel k\ninitrd i\n", "ends without booting"},
		{"no kernel", "#!ipxe\ninitrd i\nboot\n", "nothing to boot"},
		{"kernel is not there", "#!ipxe\nkernel nowhere\nboot\n", "404"},
		{"kernel is none", "#!ipxe\nkernel text\nboot\n", errNoKernel.Error()},
		{"no agent in it", "#!ipxe\nkernel k\ninitrd bare\nboot\n", "is in no initrd"},
		{"initrd is damaged", "#!ipxe\nkernel k\ninitrd bad\nboot\n", "cpio"},
		{"configuration is empty", "#!ipxe\nkernel k\ninitrd empty\nboot\n", "names no server"},
		{"unknown command", "#!ipxe\nsanboot k\n", "command not found"},
		{"other protocol", "#!ipxe\nkernel file:///etc/passwd\nboot\n", "only http"},
		{"names nothing", "#!ipxe\nkernel --name x\nboot\n", "names nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			good["boot.ipxe"] = []byte(tt.script)
			m, err := runScript(t.Context(), web(t, good).String(), ours)
			if tt.err == "" && (err != nil || m.Token != "t") {
				t.Errorf("booted %+v, %v", m, err)
			}
			if want := "console=ttyS0 BOOTIF=01-" + strings.ReplaceAll(ours.MAC, ":", "-") + " x="; tt.err == "" && m.Cmdline != want {
				t.Errorf("the kernel is told %q, want %q", m.Cmdline, want)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want one with %q", err, tt.err)
			}
		})
	}
}

func TestHTTPBootNeedsTheAgentsISO(t *testing.T) {
	iso, err := netboot.BuildISO(map[string][]byte{"/readme": []byte("nothing")})
	if err != nil {
		t.Fatal(err)
	}
	at := web(t, map[string][]byte{"a.iso": iso, "text": []byte("hello"), "empty": nil})
	var n Network
	for _, name := range []string{"a.iso", "text", "empty", "nowhere"} {
		if m, err := n.HTTP(t.Context(), ours, at.ResolveReference(&url.URL{Path: name}).String()); err == nil {
			t.Errorf("%s: booted %+v", name, m)
		}
	}
}

// FuzzScript checks that the loader ends with an error for any script when nothing
// can be fetched.
func FuzzScript(f *testing.F) {
	f.Add("#!ipxe\nkernel k\ninitrd --name a i\nboot\n")
	f.Add("#!ipxe\nkernel --name\ninitrd http://[::1]/\n")
	base, err := url.Parse("http://127.0.0.1:1/boot.ipxe")
	if err != nil {
		f.Fatal(err)
	}
	gone, end := context.WithCancel(f.Context())
	end() // nothing is fetched
	f.Fuzz(func(t *testing.T, script string) {
		if l, err := run(gone, base, script); err == nil || l != nil {
			t.Fatalf("run(%q) = %+v, nil: nothing could be fetched", script, l)
		}
	})
}

// A controller that has just started does not know the host yet: the boot can be tried
// again. No error shows the token.
func TestBootFromAControllerThatHasJustStartedIsTriedAgain(t *testing.T) {
	r := newRig(t, netboot.Full)
	url := r.ISO(boot)
	_, err := r.net.HTTP(t.Context(), ours, url)
	_, token, _ := strings.Cut(url, "token=")
	if !errors.Is(err, ErrSilent) || strings.Contains(err.Error(), token[:20]) {
		t.Errorf("HTTP boot = %v, want %v, without the token", err, ErrSilent)
	}
	r.know(t, ours.MAC)
	if _, err := r.net.HTTP(t.Context(), ours, url); err != nil {
		t.Errorf("HTTP boot = %v", err)
	}
	r.Close(boot.Host)
	if _, err = r.net.HTTP(t.Context(), ours, url); err == nil || errors.Is(err, ErrSilent) || strings.Contains(err.Error(), token[:20]) {
		t.Errorf("HTTP boot after the agent is up = %v, want an error for good, without the token", err)
	}
}
