package redfish_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

func TestSetBootWritesOnce(t *testing.T) {
	for _, tt := range []struct {
		boot bmc.Boot
		want string // body of the change; "" is none
	}{
		{bmc.Boot{}, ""},
		{bmc.Boot{Mode: bmc.UEFI}, ""},
		{bmc.Boot{Device: bmc.BootPXE},
			`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`},
		{bmc.Boot{Device: bmc.BootDisk, Persistent: true, Mode: bmc.UEFI},
			`{"Boot":{"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideTarget":"Hdd"}}`},
		{bmc.Boot{Device: bmc.BootCD, Mode: bmc.LegacyBIOS},
			`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Cd","BootSourceOverrideMode":"Legacy"}}`},
		{bmc.Boot{Device: bmc.BootHTTP, URL: "http://images.example/a.iso"},
			`{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiHttp","HttpBootUri":"http://images.example/a.iso"}}`},
	} {
		s := newServer(t)
		c := s.open()
		for range 2 { // the second call finds it set
			if err := c.SetBoot(t.Context(), tt.boot); err != nil {
				t.Errorf("SetBoot(%+v) error = %v", tt.boot, err)
			}
		}
		if got := strings.Join(s.sent(), " "); got != tt.want {
			t.Errorf("SetBoot(%+v) twice sends %s, want %s", tt.boot, got, tt.want)
		}
		got, err := c.System(t.Context())
		want := tt.boot
		want.Mode = map[bmc.BootMode]bmc.BootMode{bmc.LegacyBIOS: bmc.LegacyBIOS}[want.Mode]
		if want.Mode == "" {
			want.Mode = bmc.UEFI
		}
		if diff := cmp.Diff(want, got.Boot); diff != "" || err != nil {
			t.Errorf("System() error = %v after SetBoot(%+v), (-want +got):\n%s", err, tt.boot, diff)
		}
	}
}

func TestSetBootSwitchesSecureBoot(t *testing.T) {
	s := newServer(t)
	c := s.open()
	for _, tt := range []struct {
		mode bmc.BootMode
		want bool
	}{{bmc.BootModeAny, false}, {bmc.UEFISecure, true}, {bmc.UEFISecure, true}, {bmc.BootModeAny, true}, {bmc.UEFI, false}, {bmc.UEFI, false}} {
		if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootCD, Mode: tt.mode}); err != nil {
			t.Errorf("SetBoot(mode %q) error = %v", tt.mode, err)
		}
		if s.secureBoot != tt.want {
			t.Errorf("secure boot is %v after SetBoot(mode %q)", s.secureBoot, tt.mode)
		}
	}
	if got := s.count("PATCH " + systemPath + "/SecureBoot"); got != 2 {
		t.Errorf("secure boot was written %d times, want twice", got)
	}
	s.system["SecureBoot"] = nil
	if err := c.SetBoot(t.Context(), bmc.Boot{Mode: bmc.UEFISecure}); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("SetBoot(UEFISecure) error = %v without secure boot, want ErrUnsupported", err)
	}
}

// SetBoot returns ErrUnsupported for what the service does not offer.
func TestSetBootUnsupported(t *testing.T) {
	boot := func(change map[string]any) func(*server) {
		return func(s *server) {
			b := s.bootProperty()
			maps.Copy(b, change)
			s.system["Boot"] = b
		}
	}
	for _, tt := range []struct {
		name  string
		build func(*server)
		boot  bmc.Boot
	}{
		{"no such target", boot(map[string]any{"BootSourceOverrideTarget@Redfish.AllowableValues": []string{"None", "Hdd"}}),
			bmc.Boot{Device: bmc.BootPXE}},
		{"no such device", boot(nil), bmc.Boot{Device: "tape"}},
		{"no override", func(s *server) { s.system["Boot"] = nil }, bmc.Boot{Device: bmc.BootPXE}},
	} {
		s := newServer(t, tt.build)
		c := s.open()
		if err := c.SetBoot(t.Context(), tt.boot); !errors.Is(err, bmc.ErrUnsupported) {
			t.Errorf("%s: SetBoot(%+v) error = %v, want ErrUnsupported", tt.name, tt.boot, err)
		}
		if got := s.sent(); got != nil {
			t.Errorf("%s: SetBoot(%+v) sent %s", tt.name, tt.boot, got)
		}
		if err := c.SetBoot(t.Context(), bmc.Boot{}); err != nil {
			t.Errorf("%s: SetBoot({}) error = %v", tt.name, err)
		}
	}
}

// A PATCH refused with 412 is retried with other forms of the ETag: as sent,
// fresh, strong, none, without quotes, any.
func TestStaleETagIsRetriedInOtherForms(t *testing.T) {
	const weak, fresh = `W/"1"`, `W/"2"`
	for _, tt := range []struct {
		name    string
		refuse  int // status
		accepts func(match string) bool
		want    []string // If-Match of each attempt
	}{
		{"as seen", 412, func(m string) bool { return m == weak }, []string{weak}},
		{"changed meanwhile", 412, func(m string) bool { return m == fresh }, []string{weak, fresh}},
		{"strong comparison", 412, func(m string) bool { return m == `"2"` }, []string{weak, fresh, `"2"`}},
		{"never its own (XCC)", 412, func(m string) bool { return m == "" }, []string{weak, fresh, `"2"`, ""}},
		{"only any", 428, func(m string) bool { return m == "*" }, []string{weak, fresh, `"2"`, "", "2", "*"}},
		{"nothing at all", 412, func(m string) bool { return false }, []string{weak, fresh, `"2"`, "", "2", "*"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			c := s.open()
			tags := []string{weak, fresh}
			s.route("GET "+systemPath, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", tags[0])
				tags = append(tags[1:], tags[len(tags)-1])
				reply(w, http.StatusOK, s.computerSystem())
			})
			var got []string
			s.wrap("PATCH "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					match := r.Header.Get("If-Match")
					got = append(got, match)
					if !tt.accepts(match) {
						fail(w, tt.refuse, "PreconditionFailed", "no")
						return
					}
					r.Header.Del("If-Match")
					next(w, r)
				}
			})
			err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE})
			if (err == nil) != tt.accepts(got[len(got)-1]) {
				t.Errorf("SetBoot() error = %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("If-Match (-want +got):\n%s", diff)
			}
			if err != nil || len(tt.want) <= 2 {
				return
			}
			// The second call uses the recorded form at once.
			if got = nil; c.SetBoot(t.Context(), bmc.Boot{}) != nil || len(got) != 1 {
				t.Errorf("the second time it sends If-Match %q, want what it has learned", got)
			}
		})
	}
}

// An iDRAC 9 that compresses adds a suffix that it does not compare; services
// without the header may have the ETag in the body.
func TestETagFromHeaderBodyOrCompressingServer(t *testing.T) {
	for _, tt := range []struct{ header, property, want string }{
		{`"abc-gzip"`, "", `"abc"`},
		{"", `"def"`, `"def"`},
		{`"abc"`, `"def"`, `"abc"`},
	} {
		s := newServer(t)
		c := s.open()
		s.system["@odata.etag"] = tt.property
		s.route("GET "+systemPath, func(w http.ResponseWriter, _ *http.Request) {
			if tt.header != "" {
				w.Header().Set("ETag", tt.header)
			}
			reply(w, http.StatusOK, s.computerSystem())
		})
		got := ""
		s.wrap("PATCH "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("If-Match")
				r.Header.Del("If-Match")
				next(w, r)
			}
		})
		if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootPXE}); err != nil || got != tt.want {
			t.Errorf("SetBoot() sends If-Match %s, error = %v; want %s", got, err, tt.want)
		}
	}
}

// AMI and ASRock Rack refuse a PATCH with fewer than target, enabled and mode.
func TestSetBootWithTargetEnabledAndModeTogether(t *testing.T) {
	s := newServer(t)
	c := s.open()
	s.wrap("PATCH "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			for _, name := range []string{"BootSourceOverrideEnabled", "BootSourceOverrideTarget", "BootSourceOverrideMode"} {
				if !strings.Contains(string(body), name) {
					fail(w, http.StatusBadRequest, "PropertyMissing", "The property "+name+" is required.", name)
					return
				}
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next(w, r)
		}
	})
	for _, b := range []bmc.Boot{{Device: bmc.BootCD}, {}} {
		if err := c.SetBoot(t.Context(), b); err != nil {
			t.Errorf("SetBoot(%+v) error = %v", b, err)
		}
		if got := s.override(); got != b {
			t.Errorf("the BMC's override is %+v after SetBoot(%+v)", got, b)
		}
	}
}

// iDRAC 10 takes Boot only in the settings resource, with the ETag of that
// resource.
func TestSetBootThroughSettingsResource(t *testing.T) {
	for _, refusal := range []http.HandlerFunc{
		nil, // no PATCH at all
		func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusBadRequest, "PropertyNotWritable", "The property Boot is a read only property and cannot be assigned a value.", "Boot")
		},
	} {
		s := newServer(t)
		const settings = systemPath + "/Settings"
		s.system["@Redfish.Settings"] = map[string]any{"SettingsObject": linkTo(settings)}
		s.route("PATCH "+systemPath, refusal)
		tag := ""
		pending := func() map[string]any { return map[string]any{"@odata.id": settings, "Boot": map[string]any{}} }
		s.route("GET "+settings, s.show(pending))
		s.route("PATCH "+settings, func(w http.ResponseWriter, r *http.Request) {
			tag = r.Header.Get("If-Match")
			w.WriteHeader(http.StatusOK)
		})
		c := s.open()
		if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootCD}); err != nil {
			t.Errorf("SetBoot() error = %v", err)
		}
		if want := s.tag(pending()); tag != want {
			t.Errorf("the settings were changed with tag %s, want %s", tag, want)
		}
	}
}

// Supermicro boots virtual media as UsbCd, and shows it as UsbCd.
func TestSetBootTargetUsbCd(t *testing.T) {
	s := newServer(t)
	s.system["Manufacturer"] = "Supermicro"
	s.system["Boot"] = map[string]any{
		"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget@Redfish.AllowableValues": []string{"None", "Cd", "UsbCd"},
	}
	s.route("PATCH "+systemPath, func(w http.ResponseWriter, r *http.Request) {
		body, _ := object(w, r)
		s.system["Boot"] = body["Boot"]
		reply(w, http.StatusOK, s.computerSystem())
	})
	c := s.open()
	if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootCD}); err != nil {
		t.Errorf("SetBoot() error = %v", err)
	}
	// The response to the PATCH shows the override, so no GET follows.
	s.wantRequests("GET "+systemPath, "PATCH "+systemPath)
	if got := s.sent(); len(got) != 1 || !strings.Contains(got[0], `"UsbCd"`) {
		t.Errorf("SetBoot(cd) sends %s, want UsbCd", got)
	}
	got, err := c.System(t.Context())
	if err != nil || got.Boot.Device != bmc.BootCD {
		t.Errorf("System().Boot = %+v, %v, want cd", got.Boot, err)
	}
}

// An override that the BMC accepts and does not set is an error; one that it shows
// late is not.
func TestSetBootIgnoredByTheBMC(t *testing.T) {
	s := newServer(t)
	c := s.open()
	s.route("PATCH "+systemPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootCD}); err == nil || !strings.Contains(err.Error(), "did not set it") {
		t.Errorf("SetBoot() error = %v though nothing happens", err)
	}
	reads := 0
	s.wrap("GET "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if reads++; reads == 3 {
				s.enabled, s.target = "Once", "Cd"
			}
			next(w, r)
		}
	})
	if err := c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootCD}); err != nil {
		t.Errorf("SetBoot() error = %v though it shows late", err)
	}
	if !slices.Contains(s.requests(), "PATCH "+systemPath) {
		t.Error("SetBoot() wrote nothing")
	}
}

// iLO boots by HTTP from the URL of the DHCP server, and takes no URL.
func TestHTTPBootWithoutURL(t *testing.T) {
	s := newServer(t)
	c := s.open()
	refused := 0
	s.wrap("PATCH "+systemPath, func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), "HttpBootUri") {
				refused++
				fail(w, http.StatusBadRequest, "PropertyUnknown", "no", "HttpBootUri")
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next(w, r)
		}
	})
	b := bmc.Boot{Device: bmc.BootHTTP, URL: "http://images.example/a.iso"}
	if err := c.SetBoot(t.Context(), b); err == nil {
		t.Errorf("SetBoot(%+v) error = nil, and nobody else names the URL", b)
	}
	b.DHCP = true
	if err := c.SetBoot(t.Context(), b); err != nil {
		t.Fatalf("SetBoot(%+v) error = %v", b, err)
	}
	refused = 0
	if err := errors.Join(c.SetBoot(t.Context(), bmc.Boot{Device: bmc.BootDisk}), c.SetBoot(t.Context(), b)); err != nil || refused != 0 {
		t.Errorf("SetBoot() again: %v, with %d requests that it knows to be in vain", err, refused)
	}
	if got, err := c.System(t.Context()); err != nil || got.Boot.Device != bmc.BootHTTP || got.Boot.URL != "" {
		t.Errorf("System() = %+v, %v, want HTTP without a URL", got.Boot, err)
	}
}
