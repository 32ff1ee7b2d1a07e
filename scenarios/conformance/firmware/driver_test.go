package firmware

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	"github.com/metalab-dev/metalab/emulator/machine"
	simfirmware "github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// start starts a lab whose first server has a profile.
func start(t *testing.T, profile string) *racktest.Rack {
	t.Helper()
	r := rackfile.Default(2)
	r.Hosts[0].Profile = profile
	return racktest.Start(t, rack.Config{Rack: &r, Events: answerBoot(t), Media: outbound.Config{}})
}

// answerBoot lets every boot source boot.
func answerBoot(t *testing.T) func(*rack.Host, machine.Event) {
	return func(h *rack.Host, ev machine.Event) {
		if try, ok := ev.(machine.BootAttempted); ok {
			if err := h.Apply(t.Context(), machine.Loaded{Boot: try.Boot, Source: try.Source, Name: "test"}); err != nil {
				t.Logf("boot: %v", err)
			}
		}
	}
}

func config(t *testing.T, l *racktest.Rack, h *rack.Host) bmc.Config {
	t.Helper()
	user, password := l.Credentials(h)
	at := h.URL()
	address, err := bmc.ParseAddress(strings.Replace(at, "https://", "redfish://", 1))
	if err != nil {
		t.Fatal(err)
	}
	return bmc.Config{
		Address: address, Credentials: bmc.Credentials{Username: user, Password: password}, RootCAs: l.CAs(), Clock: &bmctest.Clock{},
	}
}

// TestDriverWorksOnTheEmulator runs the drivers' suite, with images, so that it does
// not skip the tests of firmware.
func TestDriverWorksOnTheEmulator(t *testing.T) {
	for _, profile := range []string{"generic", "dense"} {
		t.Run(profile, func(t *testing.T) {
			bmctest.Run(t, bmctest.Fixture{Open: redfish.Open, New: func(t *testing.T) bmctest.BMC {
				l, files := start(t, profile), images(t)
				return bmctest.BMC{
					Config: config(t, l, l.First()),
					Images: [2]string{files.URL + "/bios.img", files.URL + "/nic.img"}, BadImage: files.URL + "/missing",
					Settle: func() { l.Advance(10 * time.Second); l.Settle() },
					Power:  func() bmc.Power { return bmc.Power(l.First().Machine().Power) },
				}
			}})
		})
	}
}

type client interface {
	bmc.Client
	bmc.Setup
	bmc.Updater
}

func open(t *testing.T, c bmc.Config) client {
	t.Helper()
	got, err := redfish.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(got.Close)
	return got.(client)
}

// Two servers of one model share one registry in memory, even though each BMC has
// sent its own.
func TestServersOfOneModelShareARegistry(t *testing.T) {
	l := start(t, "vast")
	var shared bmc.Registries
	var got []*bmc.AttributeRegistry
	for _, h := range l.Hosts() {
		c := config(t, l, h)
		c.Registries = &shared
		for range 2 {
			b, err := open(t, c).BIOS(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Settings) != 1000 || len(b.Registry.Attributes) != 1000 {
				t.Fatalf("%d settings, %d attributes: want 1,000 of both", len(b.Settings), len(b.Registry.Attributes))
			}
			got = append(got, b.Registry)
		}
	}
	for _, r := range got[1:] {
		if r != got[0] {
			t.Errorf("registries %p: want one", got)
			break
		}
	}
	want := map[string]bmc.Attribute{
		"BootMode":           {Name: "BootMode", Type: "Enumeration", Values: []string{"Uefi", "LegacyBios"}, Default: "Uefi", ResetRequired: true},
		"ProcCores":          {Name: "ProcCores", Type: "Integer", Lower: new(int64(0)), Upper: new(int64(64)), Default: int64(0), ResetRequired: true},
		"QuietBoot":          {Name: "QuietBoot", Type: "Boolean", Default: true, ResetRequired: true},
		"BootBanner":         {Name: "BootBanner", Type: "String", MinLength: new(int64(3)), MaxLength: new(int64(24)), Default: "xxx", ResetRequired: true},
		"SystemSerialNumber": {Name: "SystemSerialNumber", Type: "String", MaxLength: new(int64(32)), ReadOnly: true, Immutable: true, Unique: true},
	}
	for name, want := range want {
		if d := cmp.Diff(&want, got[0].Attribute(name)); d != "" {
			t.Errorf("Attribute(%s) (-want +got):\n%s", name, d)
		}
	}
}

// A setting that depends on another one is refused by name until that is applied.
func TestRefusedSettingsAreNamed(t *testing.T) {
	l := start(t, "dense")
	c := open(t, config(t, l, l.First()))
	err := c.SetBIOS(t.Context(), bmc.Settings{"MemoryMode": "Mirror", "MirrorPercent": 25})
	var refused *bmc.SettingsError
	if !asSettingsError(err, &refused) || len(refused.Refused) != 1 || !strings.Contains(refused.Refused["MirrorPercent"], "MemoryMode") {
		t.Errorf("SetBIOS = %v, want MirrorPercent refused because of MemoryMode", err)
	}
}

func asSettingsError(err error, to **bmc.SettingsError) bool {
	for e := err; e != nil; {
		if s, ok := e.(*bmc.SettingsError); ok { //nolint:errorlint // it is As that is done here
			*to = s
			return true
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		e = u.Unwrap()
	}
	return false
}

// images serves an image for each component, and one for another model.
func images(t *testing.T) *httptest.Server {
	image := func(kind simfirmware.Kind, model, version string) []byte {
		var b bytes.Buffer
		h := simfirmware.Image{Kind: kind, Vendor: "Metalab", Model: model, Version: version}
		if _, err := simfirmware.BuildImage(&b, h, strings.NewReader(strings.Repeat("firmware", 1000))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	files := map[string][]byte{
		"/bios.img":  image(simfirmware.KindBIOS, "Generic Server G1", "2.4.0"),
		"/nic.img":   image(simfirmware.KindNIC, "ML25G-2P", "22.40.1"),
		"/other.img": image(simfirmware.KindBIOS, "Another Server", "9.9.9"),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s
}

// awaitTask reads a task until it has one of the states.
func awaitTask(t *testing.T, l *racktest.Rack, c client, task string, until ...bmc.TaskState) bmc.Task {
	t.Helper()
	var last bmc.Task
	for range 400 {
		var err error
		if last, err = c.Task(t.Context(), task); err != nil {
			t.Fatalf("Task(%s) error = %v", task, err)
		}
		for _, s := range until {
			if last.State == s {
				return last
			}
		}
		l.Advance(10 * time.Second)
	}
	t.Fatalf("Task(%s) = %+v, want it %v", task, last, until)
	return last
}

func TestFirmwareIsUpdated(t *testing.T) {
	l := start(t, "generic")
	files := images(t)
	h := l.First()
	c := open(t, config(t, l, h))
	for _, tt := range []struct {
		component, image, version string
		push, breaks, missing     bool
	}{
		{component: "bios", image: "/nowhere.img", missing: true},
		{component: "bios", image: "/other.img", missing: true},
		{component: "nic:1", image: "/nic.img", version: "22.40.1"},
		{component: "bios", image: "/bios.img", breaks: true},
		{component: "bios", image: "/bios.img", version: "2.4.0", push: true},
	} {
		t.Run(fmt.Sprint(tt.component, tt.image, tt.breaks), func(t *testing.T) {
			if tt.breaks {
				if err := h.Apply(t.Context(), machine.Firmware{Command: simfirmware.Break{Component: "BIOS", Phase: simfirmware.Applying}}); err != nil {
					t.Fatal(err)
				}
			}
			begin := func() (string, error) { return c.Update(t.Context(), tt.component, files.URL+tt.image) }
			if tt.push {
				begin = func() (string, error) {
					resp, err := http.Get(files.URL + tt.image)
					if err != nil {
						return "", err
					}
					defer resp.Body.Close()
					return c.Push(t.Context(), tt.component, "bios.img", resp.Body, resp.ContentLength)
				}
			}
			task, err := begin()
			if err != nil || task == "" {
				t.Fatalf("begun with %q, %v", task, err)
			}
			if got, err := c.Component(t.Context(), tt.component); !tt.missing && (err != nil || !got.Updating) {
				t.Logf("Component() = %+v, %v: not yet", got, err)
			}
			got := awaitTask(t, l, c, task, bmc.TaskWaiting, bmc.TaskDone, bmc.TaskFailed)
			if got.State == bmc.TaskWaiting {
				if one, err := c.Component(t.Context(), tt.component); err != nil || !one.Updating {
					t.Errorf("Component() = %+v, %v: want an update under way", one, err)
				}
				if err := c.SetPower(t.Context(), bmc.PowerReset); err != nil {
					t.Fatal(err)
				}
				got = awaitTask(t, l, c, task, bmc.TaskDone, bmc.TaskFailed)
			}
			if want := map[bool]bmc.TaskState{true: bmc.TaskDone, false: bmc.TaskFailed}[tt.version != ""]; got.State != want || want == bmc.TaskFailed && got.Text == "" {
				t.Fatalf("the task ended as %+v, want %s", got, want)
			}
			one, err := c.Component(t.Context(), tt.component)
			if err != nil || tt.version != "" && one.Version != tt.version || one.Updating {
				t.Errorf("Component() = %+v, %v; want version %s", one, err, tt.version)
			}
		})
	}
}
