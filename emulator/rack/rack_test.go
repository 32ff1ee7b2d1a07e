package rack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/fixtures"
)

const systemPath = "/redfish/v1/Systems/1"

// call sends a Redfish request to a host as its administrator.
func call(t *testing.T, l *racktest.Rack, h *rack.Host, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(l.Credentials(h))
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &answer); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, b)
		}
	}
	return resp.StatusCode, answer
}

func apply(t *testing.T, h *rack.Host, c machine.Command) {
	t.Helper()
	if err := h.Apply(t.Context(), c); err != nil {
		t.Fatalf("Apply(%+v) = %v", c, err)
	}
}

func power(t *testing.T, h *rack.Host, kind machine.ResetKind) {
	t.Helper()
	apply(t, h, machine.Reset{Kind: kind})
}

// hosts returns a rack with n hosts.
func hosts(n int) *rackfile.Lab { return new(rackfile.Default(n)) }

// diary records events, and answers every boot from a disk with a system.
type diary struct {
	mu     sync.Mutex
	events map[string][]string // by host
}

func (d *diary) event(h *rack.Host, ev machine.Event) {
	d.mu.Lock()
	if d.events == nil {
		d.events = map[string][]string{}
	}
	d.events[h.Name()] = append(d.events[h.Name()], strings.TrimPrefix(fmt.Sprintf("%T", ev), "machine."))
	d.mu.Unlock()
	tried, ok := ev.(machine.BootAttempted)
	if !ok {
		return
	}
	var answer machine.Command = machine.NotBootable{Boot: tried.Boot, Source: tried.Source}
	if tried.Source.Kind == machine.Hdd {
		answer = machine.Loaded{Boot: tried.Boot, Source: tried.Source, Name: "disk"}
	}
	if err := h.Apply(context.Background(), answer); err != nil && !errors.Is(err, machine.ErrStale) {
		panic(err)
	}
}

func (d *diary) of(h *rack.Host) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.events[h.Name()]
}

func TestPowerOnBootsAndPowerOffStops(t *testing.T) {
	var d diary
	l := racktest.Start(t, rack.Config{Events: d.event})
	h := l.First()
	code, got := call(t, l, h, "GET", systemPath, "")
	if code != http.StatusOK || got["PowerState"] != "Off" || got["SerialNumber"] != h.Machine().Identity.Serial {
		t.Fatalf("GET %s = %d, %v", systemPath, code, got)
	}
	if code, got := call(t, l, h, "POST", systemPath+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`); code >= 300 {
		t.Fatalf("reset = %d, %v", code, got)
	}
	if _, got = call(t, l, h, "GET", systemPath, ""); got["PowerState"] != "PoweringOn" {
		t.Errorf("PowerState right after the reset = %v, want PoweringOn", got["PowerState"])
	}
	l.Advance(2*time.Second + 90*time.Second + 25*time.Second)
	if _, got = call(t, l, h, "GET", systemPath, ""); got["PowerState"] != "On" {
		t.Errorf("PowerState after the boot = %v, want On", got["PowerState"])
	}
	if v := h.Machine(); v.Phase != machine.Running || v.OS.Name != "disk" {
		t.Errorf("machine is %s with %+v, want running", v.Phase, v.OS)
	}
	if err := h.Power(t.Context(), "GracefulShutdown"); err != nil {
		t.Error(err)
	}
	l.Advance(time.Minute)
	want := []string{"PowerChanged", "PowerChanged", "BootAttempted", "SystemStarted", "PowerChanged", "SystemStopping", "SystemStopped", "PowerChanged"}
	if d := cmp.Diff(want, d.of(h)); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if err := h.Power(t.Context(), "GracefulShutdown"); !errors.Is(err, machine.ErrPower) {
		t.Errorf("Power() of a machine that is off = %v, want %v", err, machine.ErrPower)
	}
}

// A jumping clock takes a machine through its boot by itself, and stands still while
// the rack is idle, also when sessions will time out.
func TestJumpingClockRunsToTheNextDeadline(t *testing.T) {
	running := make(chan struct{})
	var d diary
	l := racktest.Start(t, rack.Config{
		Clock: clock.NewJumping(racktest.Origin),
		Events: func(h *rack.Host, ev machine.Event) {
			d.event(h, ev)
			if _, ok := ev.(machine.SystemStarted); ok {
				close(running)
			}
		},
	})
	h := l.First()
	if _, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: bmc.Account{ID: "1"}, Token: "token"}); err != nil {
		t.Fatal(err)
	}
	power(t, h, machine.ResetOn)
	<-running
	if at, ok := l.Clock().Next(); ok {
		t.Errorf("an idle rack hurries to %v", at)
	}
	if got := l.Clock().Since(racktest.Origin); got < 117*time.Second || got > 10*time.Minute {
		t.Errorf("the boot took %v of the lab's time, want about 117s", got)
	}
	if _, ok := h.Resume("token"); !ok {
		t.Error("the session has expired in an idle rack")
	}
}

func TestSessionsExpire(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	a, ok := h.Account("admin")
	if !ok {
		t.Fatal("there is no admin")
	}
	for _, token := range []string{"one", "two"} {
		if _, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: a, Token: token}); err != nil {
			t.Fatal(err)
		}
	}
	l.Advance(29 * time.Minute)
	if _, ok := h.Resume("one"); !ok {
		t.Error("Resume(one) within its time = false")
	}
	if n := len(h.BMC().Sessions); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
	l.Advance(2 * time.Minute)
	if s := h.BMC().Sessions; len(s) != 1 || s[0].ID != "1" {
		t.Errorf("sessions = %+v, want the one that was used", s)
	}
	l.Advance(time.Hour)
	if n := len(h.BMC().Sessions); n != 0 {
		t.Errorf("%d sessions, want none", n)
	}
}

func TestAccounts(t *testing.T) {
	r := hosts(1)
	r.Accounts = []rackfile.Account{
		{Name: "watcher", Password: "look", Role: "ReadOnly"}, {Name: "root", Role: "Administrator"}, {Name: "op", Role: "Operator"},
	}
	l := racktest.Start(t, rack.Config{Rack: r})
	h := l.First()
	user, password := l.Credentials(h)
	if user != "root" || len(password) != 16 {
		t.Errorf("Credentials() = %q, %q, want root and a password of 16 characters", user, password)
	}
	if a, ok := h.Login(bmc.Credentials{Name: user, Password: password, To: bmc.ForRedfish}); !ok || a.Role != bmc.Administrator || a.ID != "2" {
		t.Errorf("Login(root) = %+v, %v", a, ok)
	}
	if a, ok := h.Login(bmc.Credentials{Name: "watcher", Password: "look", To: bmc.ForRedfish}); !ok || a.Role != bmc.ReadOnly {
		t.Errorf("Login(watcher) = %+v, %v", a, ok)
	}
	if op, ok := h.Account("op"); !ok || op.Password == password || len(op.Password) != 16 {
		t.Errorf("Account(op) = %+v, %v, want a generated password", op, ok)
	}
	if _, ok := h.Account("nobody"); ok {
		t.Error("Account(nobody) = true, want false")
	}
	if _, ok := h.Login(bmc.Credentials{Name: "root", Password: "", To: bmc.ForRedfish}); ok {
		t.Error("Login(root) without a password = true, want false")
	}
}

// A rack that is opened again is as it was, and a rack that differs from it is
// refused.
func TestOpenRestoresTheRack(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(2)})
	h := l.Hosts()[1]
	at, ca := h.Address(), l.CAFile()
	_, password := l.Credentials(h)
	before, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	power(t, h, machine.ResetOn)
	l.Advance(time.Hour)
	apply(t, h, machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.Cd, Mode: machine.UEFI}})
	want, wantBMC, end := h.Machine(), h.BMC(), l.Clock().Now()
	l.Stop()

	if got, err := rack.LastTime(dir); err != nil || !got.Equal(end) {
		t.Errorf("LastTime() = %v, %v, want %v", got, err, end)
	}
	for name, c := range map[string]rack.Config{
		"hosts: 2 in this lab, 3 asked":              {Rack: hosts(3), Clock: clock.NewVirtual(end)},
		"start the clock at LastTime or later":       {Clock: clock.NewVirtual(end.Add(-time.Second))},
		"Config.Clock: must not be nil":              {},
		"hosts[0].count: 0: must be 1 or more":       {Rack: hosts(0), Clock: clock.NewVirtual(end)},
		`listen "nonsense": use ADDRESS:FIRSTPORT`:   {Listen: "nonsense", Clock: clock.NewVirtual(end)},
		`listen "0.0.0.0:9000": name one IP address`: {Listen: "0.0.0.0:9000", Clock: clock.NewVirtual(end)},
		"there is no such profile":                   {Profiles: fstest.MapFS{}, Listen: "lo:0", Clock: clock.NewVirtual(end)},
	} {
		c.Dir = dir
		if l, err := rack.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Open() = %v, want an error with %q", err, name)
			if err == nil {
				l.Close()
			}
		}
	}

	l = racktest.Start(t, rack.Config{Dir: dir})
	h = l.Hosts()[1]
	if d := cmp.Diff(want, h.Machine()); d != "" {
		t.Errorf("machine after the restart (-want +got):\n%s", d)
	}
	if d := cmp.Diff(wantBMC, h.BMC()); d != "" {
		t.Errorf("BMC after the restart (-want +got):\n%s", d)
	}
	if got := h.Address(); got != at {
		t.Errorf("Address() = %v, want %v as before", got, at)
	}
	if _, got := l.Credentials(h); got != password {
		t.Error("the password is another one after the restart")
	}
	if after, err := os.ReadFile(ca); err != nil || string(after) != string(before) {
		t.Errorf("the CA is another one after the restart: %v", err)
	}
	if got := len(l.Hosts()); got != 2 {
		t.Errorf("%d hosts, want 2", got)
	}
	if code, _ := call(t, l, h, "GET", systemPath, ""); code != http.StatusOK {
		t.Errorf("GET after the restart = %d", code)
	}
}

// When a rack is opened again, Config.Events gets the boot that a machine tries, or
// the system that it runs.
func TestBootEventsAreRepeatedAfterARestart(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(3)}) // no Events: the boot is not answered
	for _, h := range l.Hosts()[:2] {
		power(t, h, machine.ResetOn)
	}
	l.Advance(2 * time.Minute)
	trying := l.Hosts()[1].Machine()
	apply(t, l.First(), machine.Loaded{Boot: 1, Source: *l.First().Machine().CurrentSource, Name: "disk"})
	l.Advance(2 * time.Minute)
	l.Stop()

	var mu sync.Mutex
	got := map[string][]machine.Event{}
	l = racktest.Start(t, rack.Config{Dir: dir, Events: func(h *rack.Host, ev machine.Event) {
		mu.Lock()
		defer mu.Unlock()
		got[h.Name()] = append(got[h.Name()], ev)
	}})
	l.Settle()
	mu.Lock()
	defer mu.Unlock()
	now := l.Clock().Now()
	want := map[string][]machine.Event{
		"node-0": {machine.SystemStarted{At: now, OS: *l.First().Machine().OS}},
		"node-1": {machine.BootAttempted{At: now, Source: *trying.CurrentSource, Boot: 1}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestOpenRefusesADirectoryInUse(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	_, err := rack.Open(t.Context(), rack.Config{Dir: l.Dir(), Clock: l.Clock(), Listen: "lo:0"})
	var held *rack.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() || held.Dir != l.Dir() {
		t.Errorf("Open() = %v, want a HeldError with pid %d", err, os.Getpid())
	}
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("Open() = %v, want the process in it", err)
	}
	if _, err := rack.LastTime(l.Dir()); !errors.As(err, &held) {
		t.Errorf("LastTime() = %v, want a HeldError", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rack.Released(ctx, l.Dir()); !errors.Is(err, context.Canceled) {
		t.Errorf("Released() = %v, want %v", err, context.Canceled)
	}
	l.Stop()
	if err := rack.Released(t.Context(), l.Dir()); err != nil {
		t.Errorf("Released() after Stop = %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close() again = %v", err)
	}
}

func TestOpenRefusesWrongProfiles(t *testing.T) {
	good, err := fs.ReadFile(fixtures.Profiles, "profiles/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{
		"profiles/generic.yaml:1: is not YAML: ":                                "name: [",
		`profiles/generic.yaml:149: colour: there is no such field`:             string(good) + "\ncolour: red\n",
		`name: "other": must be generic`:                                        strings.Replace(string(good), "name: generic", "name: other", 1),
		`profiles/generic.yaml:3: dialect: "klingon": there is no such dialect`: strings.Replace(string(good), "dialect: generic", "dialect: klingon", 1),
		"timings.post: \"soon\": use a form like 90s or 2m":                     strings.Replace(string(good), "post: 90s", "post: soon", 1),
	} {
		_, err := rack.Open(t.Context(), rack.Config{
			Dir: t.TempDir(), Clock: clock.NewVirtual(racktest.Origin), Listen: "lo:0",
			Profiles: fstest.MapFS{"profiles/generic.yaml": {Data: []byte(text)}},
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open() = %v, want an error with %q", err, want)
		}
	}
}

func TestIdleHostsHaveNoGoroutines(t *testing.T) {
	few := racktest.Start(t, rack.Config{Rack: hosts(1)})
	few.Settle()
	atRest := runtime.NumGoroutine()
	few.Stop()

	var d diary
	began := clock.Wall()
	l := racktest.Start(t, rack.Config{Rack: hosts(1000), Events: d.event})
	t.Logf("1000 hosts are up after %v", clock.Wall().Sub(began))
	for _, h := range l.Hosts() {
		power(t, h, machine.ResetOn)
	}
	l.Advance(3 * time.Minute)
	for _, h := range l.Hosts() {
		if h.Machine().Phase != machine.Running {
			t.Fatalf("%s is %s, want running", h.Name(), h.Machine().Phase)
		}
	}
	if got := runtime.NumGoroutine(); got > atRest+2 {
		t.Errorf("%d goroutines at rest with 1000 hosts, %d with one", got, atRest)
	}
	t.Logf("and have booted after %v", clock.Wall().Sub(began))
}

// BenchmarkOpen measures what a host costs: time to start, and memory when idle.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				l, err := rack.Open(b.Context(), rack.Config{
					Dir: b.TempDir(), Rack: hosts(n), Clock: clock.NewVirtual(racktest.Origin), Listen: "lo:0",
				})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "bytes/host")
				l.Close()
				b.StartTimer()
			}
		})
	}
}

func TestSecretFilesAreOnlyReadableByTheUser(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	for file, want := range map[string]fs.FileMode{"ca.crt": 0o644, "ca.key": 0o600, "state.db": 0o600, "lock": 0o600, "disks": 0o700, "media": 0o700} {
		st, err := os.Stat(filepath.Join(l.Dir(), file))
		if err != nil || st.Mode().Perm() != want {
			t.Errorf("%s = %v, %v, want mode %v", file, st.Mode(), err, want)
		}
	}
}

// BenchmarkApply measures what a stored command costs.
func BenchmarkApply(b *testing.B) {
	for _, fsync := range []bool{false, true} {
		b.Run(fmt.Sprintf("fsync=%v", fsync), func(b *testing.B) {
			l, err := rack.Open(b.Context(), rack.Config{
				Dir: b.TempDir(), Rack: hosts(1000), Clock: clock.NewVirtual(racktest.Origin), Listen: "lo:0", Fsync: fsync,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			all, n := l.Hosts(), 0
			for b.Loop() {
				o := machine.Override{Enabled: machine.Once, Target: machine.SourceKinds[n/len(all)%4], Mode: machine.UEFI}
				if err := all[n%len(all)].Apply(b.Context(), machine.SetOverride{Override: o}); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

// racktest.Rack.Advance stops at every deadline until all is done: an event handler
// acts at the event's time, and what follows happens within the same Advance.
func TestAdvanceStopsAtEveryDeadline(t *testing.T) {
	var at []time.Duration // read after Advance: events of one host come one by one
	l := racktest.Start(t, rack.Config{Events: func(h *rack.Host, ev machine.Event) {
		if !h.Now().Equal(ev.Time()) {
			t.Errorf("%T of %v is delivered at %v", ev, ev.Time(), h.Now())
		}
		at = append(at, h.Now().Sub(racktest.Origin))
		if tried, ok := ev.(machine.BootAttempted); ok {
			if err := h.Apply(context.Background(), machine.Loaded{Boot: tried.Boot, Source: tried.Source}); err != nil {
				t.Error(err)
			}
		}
	}})
	if err := l.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	l.Advance(time.Hour)
	want := []time.Duration{0, 2 * time.Second, 92 * time.Second, 117 * time.Second}
	for i := range want {
		if len(at) != len(want) || at[i] != want[i] {
			t.Fatalf("events at %v, want %v", at, want)
		}
	}
	if got := l.Clock().Now(); !got.Equal(racktest.Origin.Add(time.Hour)) {
		t.Errorf("Now() = %v, want an hour later", got)
	}
}
