package control_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// start serves the control API of a lab until the test ends or stop is called.
func start(t *testing.T, c control.Config) (stop func()) {
	t.Helper()
	s, err := control.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := s.Close(); err != nil { // a second Close is no error
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// runtimeDir gives the test its own directory for sockets.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "run") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

func TestStatusAndHosts(t *testing.T) {
	runtimeDir(t)
	r := rackfile.Default(2)
	r.Accounts[0].Password = "calvin"
	l := racktest.Start(t, rack.Config{Rack: &r})
	start(t, control.Config{Rack: l.Rack, Info: func() control.Status {
		return control.Status{Kubeconfig: "/k", Images: "http://i/", Speed: "60x"}
	}})
	c := control.NewClient(l.Dir())
	got, err := c.Status(t.Context())
	want := control.Status{PID: os.Getpid(), State: l.Dir(), Kubeconfig: "/k", Images: "http://i/", Hosts: 2, Speed: "60x",
		Name: "lab", Seed: 1, Time: racktest.Origin, Version: control.Version()}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("Status(), %v (-want +got):\n%s", err, d)
	}
	hosts, err := c.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := l.Hosts()[1]
	port := h.Address().Port()
	ipmi, on := h.IPMI()
	if !on {
		t.Error("IPMI is off")
	}
	wantHost := control.Host{
		Name: "node-1", Profile: "generic", Power: "Off", Phase: "off", Boot: "Hdd, Pxe",
		Redfish:        fmt.Sprintf("https://127.64.0.2:%d/redfish/v1/", port),
		BMCAddress:     fmt.Sprintf("redfish-virtualmedia://127.64.0.2:%d/redfish/v1/Systems/1", port),
		IPMI:           ipmi.String(),
		BootMACAddress: h.Machine().Identity.NICs[0].MAC,
		Reach:          "reachable", Username: "admin", Password: "calvin", CAFile: filepath.Join(l.Dir(), "ca.crt"),
	}
	if d := cmp.Diff(wantHost, hosts[1]); len(hosts) != 2 || d != "" {
		t.Errorf("%d hosts, the second (-want +got):\n%s", len(hosts), d)
	}
	if d := cmp.Diff(control.Hosts(l.Rack), hosts); d != "" {
		t.Errorf("Hosts() of the lab and over the socket differ (-lab +socket):\n%s", d)
	}
}

func TestStatusWithoutInfo(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	start(t, control.Config{Rack: l.Rack})
	c := control.NewClient(l.Dir())
	if st, err := c.Status(t.Context()); err != nil || st.Speed != "60x" || st.Kubeconfig != "" {
		t.Errorf("Status() = %+v, %v", st, err)
	}
	if err := c.Down(t.Context()); err == nil || !strings.Contains(err.Error(), "belongs to another program") {
		t.Errorf("Down() = %v, want a refusal", err)
	}
}

func TestPower(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	start(t, control.Config{Rack: l.Rack})
	c := control.NewClient(l.Dir())
	if h, err := c.Power(t.Context(), "node-0", "On"); err != nil || h.Power != "PoweringOn" || h.Phase != "starting" {
		t.Errorf("Power(On) = %+v, %v", h, err)
	}
	for want, in := range map[string][2]string{
		"not in this power state": {"node-0", "On"},
		`reset "Kick"`:            {"node-0", "Kick"},
		"there is no host node-7": {"node-7", "On"},
		"there is no host a/b":    {"a/b", "On"},
	} {
		if _, err := c.Power(t.Context(), in[0], in[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Power(%s, %s) = %v, want an error with %q", in[0], in[1], err, want)
		}
	}
}

func TestDown(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	asked := make(chan struct{})
	stop := start(t, control.Config{Rack: l.Rack, Down: func() { close(asked) }})
	var ending sync.WaitGroup
	ending.Go(func() { <-asked; stop(); l.Stop() })
	c := control.NewClient(l.Dir())
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := racktest.Start(t, rack.Config{Dir: l.Dir()}) // the directory is free
	again.Stop()
	ending.Wait()
	if err := c.Down(t.Context()); !errors.Is(err, control.ErrNoLab) {
		t.Errorf("Down() of a lab that has ended = %v, want %v", err, control.ErrNoLab)
	}
}

func TestNoLab(t *testing.T) {
	runtimeDir(t)
	dir := t.TempDir()
	want := "no lab is running in " + dir + ": start it with labctl up"
	if _, err := control.NewClient(dir).Status(t.Context()); !errors.Is(err, control.ErrNoLab) || err.Error() != want {
		t.Errorf("Status() = %v, want %s", err, want)
	}
	none := filepath.Join(dir, "none")
	if _, err := control.NewClient(none).Hosts(t.Context()); !errors.Is(err, control.ErrNoLab) {
		t.Errorf("Hosts() = %v, want %v", err, control.ErrNoLab)
	}
}

// The socket of a killed lab exists, but nobody answers. The next lab replaces it.
// Neither depends on the client's environment.
func TestStaleSocket(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	c := control.NewClient(l.Dir())
	stop := start(t, control.Config{Rack: l.Rack})
	path, err := os.Readlink(filepath.Join(l.Dir(), "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); !errors.Is(err, control.ErrNoLab) {
		t.Errorf("Status() of a killed lab = %v, want %v", err, control.ErrNoLab)
	}
	start(t, control.Config{Rack: l.Rack})
	t.Setenv("XDG_RUNTIME_DIR", "/nonexistent")
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("Status() of the next lab = %v", err)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	dir := runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	start(t, control.Config{Rack: l.Rack})
	path, err := os.Readlink(filepath.Join(l.Dir(), "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(path) != filepath.Join(dir, "metalab") || len(path) > 100 {
		t.Errorf("the socket is at %s, want it in %s/metalab", path, dir)
	}
	st, err := os.Stat(filepath.Dir(path))
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("its directory = %v, %v, want mode 0700", st.Mode(), err)
	}
}

func TestSocketPathChoosesADirectory(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T){
		"path too long": func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", filepath.Join(t.TempDir(), strings.Repeat("x", 100)))
		},
		"directory is open to all": func(t *testing.T) {
			dir := filepath.Join(runtimeDir(t), "metalab")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
				t.Fatal(err)
			}
		},
		"no such directory": func(t *testing.T) { t.Setenv("XDG_RUNTIME_DIR", "/nonexistent") },
		"not absolute":      func(t *testing.T) { t.Setenv("XDG_RUNTIME_DIR", "run") },
		"none":              func(t *testing.T) { t.Setenv("XDG_RUNTIME_DIR", "") },
	} {
		t.Run(name, func(t *testing.T) {
			spoil(t)
			tmp, err := os.MkdirTemp("/tmp", "tmp") //nolint:usetesting // t.TempDir is too long for a socket's path
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(tmp)
			l := racktest.Start(t, rack.Config{})
			t.Setenv("TMPDIR", tmp)
			stop := start(t, control.Config{Rack: l.Rack})
			defer stop()
			path, err := os.Readlink(filepath.Join(l.Dir(), "control.sock"))
			if want := filepath.Join(tmp, fmt.Sprintf("metalab-%d", os.Getuid())); err != nil || filepath.Dir(path) != want {
				t.Errorf("the socket is at %s, %v, want it in %s", path, err, want)
			}
			if _, err := control.NewClient(l.Dir()).Status(t.Context()); err != nil {
				t.Errorf("Status() = %v", err)
			}
		})
	}
}

func TestNewRefusesAMissingLab(t *testing.T) {
	if _, err := control.New(control.Config{}); err == nil {
		t.Error("New() without a lab = nil, want an error")
	}
}
