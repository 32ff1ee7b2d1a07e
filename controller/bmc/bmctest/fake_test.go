package bmctest_test

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

func config(t *testing.T, address string) bmc.Config {
	t.Helper()
	a, err := bmc.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	return bmc.Config{
		Address:     a,
		Credentials: bmc.Credentials{Username: "admin", Password: "s3cret"},
		RootCAs:     x509.NewCertPool(),
	}
}

// withFirmware returns a fake with settings and components.
func withFirmware() *bmctest.Fake {
	f := &bmctest.Fake{Slow: true}
	f.Firmware(func(w *bmctest.Firmware) {
		w.Settings = bmc.Settings{"Serial": "1", "Cores": int64(4), "Turbo": "Enabled"}
		w.Registry = bmc.NewAttributeRegistry("Fake.v1_0_0", []bmc.Attribute{
			{Name: "Serial", Type: bmc.StringAttribute, ReadOnly: true, Unique: true},
			{Name: "Cores", Type: bmc.IntegerAttribute, ResetRequired: true},
			{Name: "Turbo", Type: bmc.EnumerationAttribute, Values: []string{"Enabled", "Disabled"}, ResetRequired: true},
		})
		w.Components = []bmc.Component{{Name: "bios", Version: "1.0"}, {Name: "bmc", Version: "2.0"}, {Name: "nic:1", Version: "3.0"}}
	})
	return f
}

// The fake behaves as every driver does.
func TestFake(t *testing.T) {
	for _, tt := range []struct {
		name    string
		address string
		fake    func() *bmctest.Fake
		images  [2]string
	}{
		{
			name:    "redfish",
			address: "redfish://bmc.example/redfish/v1/Systems/1",
			fake:    withFirmware,
			images:  [2]string{"http://images.example/a.iso", "http://images.example/b.iso"},
		},
		{
			name:    "ipmi",
			address: "ipmi://bmc.example",
			fake:    func() *bmctest.Fake { return &bmctest.Fake{NoMedia: true, NoEvents: true} },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var fake *bmctest.Fake
			bmctest.Run(t, bmctest.Fixture{
				Open: func(ctx context.Context, c bmc.Config) (bmc.Client, error) { return fake.Open(ctx, c) },
				New: func(t *testing.T) bmctest.BMC {
					fake = tt.fake()
					fake.Path = "/redfish/v1/Systems/1"
					fake.SelfSigned = true
					c := config(t, tt.address)
					fake.SetCredentials(c.Credentials)
					fake.SetSensors(bmc.Sensor{Name: "Inlet", Reading: 21, Unit: "Cel", Health: "OK", Enabled: true}, bmc.Sensor{Name: "Fan 1", Unit: "RPM"})
					return bmctest.BMC{
						Config:   c,
						Images:   tt.images,
						Settle:   fake.Settle,
						Power:    func() bmc.Power { s, _ := fake.Now(); return s.Power },
						Override: func() bmc.Boot { s, _ := fake.Now(); return s.Boot },
						Light:    func() bool { s, _ := fake.Now(); return s.Identify },
						Media:    func() string { _, m := fake.Now(); return m.Image },
						Event:    func() { fake.Record(bmc.Entry{Text: "a fan has failed", Severity: "Critical"}) },
						Unplug:   fake.Unplug,
						Stall:    fake.Stall,
						SetPassword: func(password string) {
							fake.SetCredentials(bmc.Credentials{Username: "admin", Password: password})
						},
					}
				},
			})
		})
	}
}

func TestFakeFailures(t *testing.T) {
	var f bmctest.Fake
	boom := errors.New("boom")
	f.FailNext(bmctest.SetPower, boom)
	for i, want := range []error{boom, nil} {
		if err := f.SetPower(t.Context(), bmc.PowerOn); !errors.Is(err, want) {
			t.Errorf("SetPower(on) number %d: error = %v, want %v", i+1, err, want)
		}
	}
	f.Fail(bmctest.InsertMedia, boom)
	for range 2 {
		if err := f.InsertMedia(t.Context(), "http://images.example/a.iso"); !errors.Is(err, boom) {
			t.Errorf("InsertMedia() error = %v, want %v", err, boom)
		}
	}
	f.Plug()
	if err := f.InsertMedia(t.Context(), "http://images.example/a.iso"); err != nil {
		t.Errorf("InsertMedia() error = %v after Plug", err)
	}
	want := []bmctest.Call{
		{Verb: bmctest.SetPower, Power: bmc.PowerOn},
		{Verb: bmctest.SetPower, Power: bmc.PowerOn},
		{Verb: bmctest.InsertMedia, Image: "http://images.example/a.iso"},
		{Verb: bmctest.InsertMedia, Image: "http://images.example/a.iso"},
		{Verb: bmctest.InsertMedia, Image: "http://images.example/a.iso"},
	}
	if diff := cmp.Diff(want, f.Calls()); diff != "" {
		t.Errorf("Calls() (-want +got):\n%s", diff)
	}
	f.Forget()
	if got := f.Calls(); len(got) != 0 {
		t.Errorf("Calls() = %v after Forget", got)
	}
}

func TestFakeSystem(t *testing.T) {
	f := bmctest.Fake{Slow: true, Deaf: true}
	f.SetIdentity(bmc.System{Serial: "ABC123", Power: bmc.On})
	power := func(want bmc.Power) {
		t.Helper()
		s, err := f.System(t.Context())
		if err != nil || s.Power != want || s.Serial != "ABC123" {
			t.Errorf("System() = %+v, %v; want power %s", s, err, want)
		}
	}
	power(bmc.Off)
	if err := f.SetPower(t.Context(), bmc.PowerOn); err != nil {
		t.Error(err)
	}
	power(bmc.PoweringOn)
	f.Settle()
	power(bmc.On)
	if err := f.SetPower(t.Context(), bmc.PowerSoftOff); err != nil {
		t.Error(err)
	}
	f.Settle()
	power(bmc.On) // the operating system ignores the request
	f.Press(bmc.Off)
	power(bmc.Off)
}

func TestFakeThatFetchesByHTTPSAlone(t *testing.T) {
	const plain, secure = "http://images.example/a.iso", "https://images.example/a.iso"
	f := bmctest.Fake{HTTPSOnly: true}
	if err := f.InsertMedia(t.Context(), plain); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("InsertMedia(%s) error = %v, want ErrUnsupported", plain, err)
	}
	if err := f.InsertMedia(t.Context(), plain, secure); err != nil {
		t.Fatalf("InsertMedia(both) error = %v", err)
	}
	if m, err := f.Media(t.Context()); err != nil || m.Image != secure {
		t.Errorf("Media() = %+v, %v, want %s", m, err, secure)
	}
}
