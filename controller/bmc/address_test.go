package bmc_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Each scheme of today (B-131) and of old (B-133), with each suffix that it
// permits: the transport and the path of the system that it implies (B-132), and
// its traits, such as RAID at each scheme of Redfish (B-175).
func TestSchemes(t *testing.T) {
	var (
		ipmi = bmc.Traits{Driver: "ipmi", Hardware: "ipmi", Boot: bmc.MediumPXE, RAID: "no-raid", NeedsNetwork: true}
		virt = bmc.Traits{Driver: "ipmi", Hardware: "ipmi", Boot: bmc.MediumPXE, RAID: "no-raid", NeedsNetwork: true, NeedsMAC: true}

		redfish = bmc.Traits{Driver: "redfish", Hardware: "redfish", Boot: bmc.MediumPXE, RAID: "redfish", Firmware: "redfish",
			NeedsNetwork: true, SecureBoot: true, FastInspect: true}
		redfishCD = bmc.Traits{Driver: "redfish", Hardware: "redfish", Boot: bmc.MediumCD, RAID: "redfish", Firmware: "redfish",
			SecureBoot: true, FastInspect: true, ISO: true}
		redfishHTTP = bmc.Traits{Driver: "redfish", Hardware: "redfish", Boot: bmc.MediumHTTP, RAID: "redfish", Firmware: "redfish",
			SecureBoot: true, FastInspect: true, ISO: true}
		idrac = bmc.Traits{Driver: "redfish", Hardware: "idrac", Boot: bmc.MediumPXE, RAID: "idrac-redfish", Manage: "idrac-redfish",
			Firmware: "redfish", NeedsNetwork: true, SecureBoot: true, FastInspect: true}
		idracCD = bmc.Traits{Driver: "redfish", Hardware: "idrac", Boot: bmc.MediumCD, RAID: "idrac-redfish", Manage: "idrac-redfish",
			Firmware: "redfish", SecureBoot: true, FastInspect: true, ISO: true}

		ibmc = bmc.Traits{Driver: "redfish", Hardware: "ibmc", Boot: bmc.MediumPXE, RAID: "no-raid", Manage: "ibmc",
			NeedsMAC: true, NeedsNetwork: true}
		wsman = bmc.Traits{Driver: "redfish", Hardware: "idrac", Boot: bmc.MediumPXE, RAID: "idrac-wsman", NeedsNetwork: true}
		ilo4  = bmc.Traits{Driver: "redfish", Hardware: "ilo", Boot: bmc.MediumPXE, RAID: "no-raid",
			NeedsMAC: true, NeedsNetwork: true, SecureBoot: true}
		ilo4CD = bmc.Traits{Driver: "redfish", Hardware: "ilo", Boot: bmc.MediumCD, RAID: "no-raid",
			NeedsMAC: true, SecureBoot: true, ISO: true}
		ilo5 = bmc.Traits{Driver: "redfish", Hardware: "ilo5", Boot: bmc.MediumPXE, RAID: "ilo5",
			NeedsMAC: true, NeedsNetwork: true, SecureBoot: true}
		irmc = bmc.Traits{Driver: "redfish", Hardware: "irmc", Boot: bmc.MediumPXE, RAID: "irmc",
			NeedsMAC: true, NeedsNetwork: true, SecureBoot: true}
	)
	const system = "/redfish/v1/Systems/1"
	for _, tt := range []struct {
		scheme string
		url    string // "" for IPMI
		path   string // path of scheme://bmc.example/redfish/v1/Systems/1
		traits bmc.Traits
	}{
		{"ipmi", "", "", ipmi},
		{"libvirt", "", "", virt},
		{"redfish", "https://bmc.example", system, redfish},
		{"redfish+http", "http://bmc.example", system, redfish},
		{"redfish+https", "https://bmc.example", system, redfish},
		{"ilo5-redfish", "https://bmc.example", system, redfish},
		{"ilo5-redfish+http", "http://bmc.example", system, redfish},
		{"ilo5-redfish+https", "https://bmc.example", system, redfish},
		{"idrac-redfish", "https://bmc.example", system, idrac},
		{"idrac-redfish+http", "http://bmc.example", system, idrac},
		{"idrac-redfish+https", "https://bmc.example", system, idrac},
		{"redfish-virtualmedia", "https://bmc.example", system, redfishCD},
		{"redfish-virtualmedia+http", "http://bmc.example", system, redfishCD},
		{"redfish-virtualmedia+https", "https://bmc.example", system, redfishCD},
		{"ilo5-virtualmedia", "https://bmc.example", system, redfishCD},
		{"ilo5-virtualmedia+http", "http://bmc.example", system, redfishCD},
		{"ilo5-virtualmedia+https", "https://bmc.example", system, redfishCD},
		{"idrac-virtualmedia", "https://bmc.example", system, idracCD},
		{"idrac-virtualmedia+http", "http://bmc.example", system, idracCD},
		{"idrac-virtualmedia+https", "https://bmc.example", system, idracCD},
		{"redfish-uefihttp", "https://bmc.example", system, redfishHTTP},
		{"redfish-uefihttp+http", "http://bmc.example", system, redfishHTTP},
		{"redfish-uefihttp+https", "https://bmc.example", system, redfishHTTP},
		{"ibmc", "https://bmc.example", system, ibmc},
		{"ibmc+http", "http://bmc.example", system, ibmc},
		{"ibmc+https", "https://bmc.example", system, ibmc},
		{"idrac", "https://bmc.example", "", wsman},
		{"idrac+http", "http://bmc.example", "", wsman},
		{"idrac+https", "https://bmc.example", "", wsman},
		{"ilo4", "https://bmc.example", "", ilo4},
		{"ilo4+https", "https://bmc.example", "", ilo4},
		{"ilo4-virtualmedia", "https://bmc.example", "", ilo4CD},
		{"ilo4-virtualmedia+https", "https://bmc.example", "", ilo4CD},
		{"ilo5", "https://bmc.example", "", ilo5},
		{"ilo5+https", "https://bmc.example", "", ilo5},
		{"irmc", "https://bmc.example", "", irmc},
	} {
		t.Run(tt.scheme, func(t *testing.T) {
			in := tt.scheme + "://bmc.example" + system
			got, err := bmc.ParseAddress(in)
			if err != nil {
				t.Fatalf("ParseAddress(%q) error = %v", in, err)
			}
			if got.Scheme != tt.scheme || got.Host != "bmc.example" || got.Path != tt.path {
				t.Errorf("ParseAddress(%q) = scheme %q, host %q, path %q; want %q, bmc.example, %q",
					in, got.Scheme, got.Host, got.Path, tt.scheme, tt.path)
			}
			if got.URL() != tt.url {
				t.Errorf("ParseAddress(%q).URL() = %q, want %q", in, got.URL(), tt.url)
			}
			if got.TLS != strings.HasPrefix(tt.url, "https:") {
				t.Errorf("ParseAddress(%q).TLS = %v with URL %q", in, got.TLS, tt.url)
			}
			if diff := cmp.Diff(tt.traits, got.Traits); diff != "" {
				t.Errorf("ParseAddress(%q).Traits (-want +got):\n%s", in, diff)
			}
		})
	}
}

// B-130: hosts with and without port, IPv6 literals, scheme:host; without a scheme
// it is IPMI. B-131: default port and privilege level of IPMI. B-132: the port; an
// empty path and /redfish/v1 name the only system, except with redfish-uefihttp.
func TestParseAddress(t *testing.T) {
	for _, tt := range []struct {
		in      string
		host    string
		port    uint16
		path    string
		level   string
		url     string
		written string // result of String; "" means the value of in
	}{
		{in: "192.0.2.1", host: "192.0.2.1", port: 623, level: "ADMINISTRATOR", written: "ipmi://192.0.2.1"},
		{in: "192.0.2.1:6230", host: "192.0.2.1", port: 6230, level: "ADMINISTRATOR", written: "ipmi://192.0.2.1:6230"},
		{in: "bmc.example", host: "bmc.example", port: 623, level: "ADMINISTRATOR", written: "ipmi://bmc.example"},
		{in: "bmc.example:6230", host: "bmc.example", port: 6230, level: "ADMINISTRATOR", written: "ipmi://bmc.example:6230"},
		{in: "bmc:623", host: "bmc", port: 623, level: "ADMINISTRATOR", written: "ipmi://bmc"},
		{in: "2001:db8::1", host: "2001:db8::1", port: 623, level: "ADMINISTRATOR", written: "ipmi://[2001:db8::1]"},
		{in: "fe80::1", host: "fe80::1", port: 623, level: "ADMINISTRATOR", written: "ipmi://[fe80::1]"},
		{in: "[2001:db8::1]", host: "2001:db8::1", port: 623, level: "ADMINISTRATOR", written: "ipmi://[2001:db8::1]"},
		{in: "[2001:db8::1]:6230", host: "2001:db8::1", port: 6230, level: "ADMINISTRATOR", written: "ipmi://[2001:db8::1]:6230"},
		{in: "ipmi:192.0.2.1", host: "192.0.2.1", port: 623, level: "ADMINISTRATOR", written: "ipmi://192.0.2.1"},
		{in: "ipmi:192.0.2.1:6230", host: "192.0.2.1", port: 6230, level: "ADMINISTRATOR", written: "ipmi://192.0.2.1:6230"},
		{in: "IPMI://192.0.2.1", host: "192.0.2.1", port: 623, level: "ADMINISTRATOR", written: "ipmi://192.0.2.1"},
		{in: "ipmi://192.0.2.1:6230?privilegelevel=OPERATOR", host: "192.0.2.1", port: 6230, level: "OPERATOR"},
		{in: "ipmi://192.0.2.1?a;b", host: "192.0.2.1", port: 623, level: "ADMINISTRATOR", written: "ipmi://192.0.2.1"},
		{in: "libvirt://192.0.2.1:6233/?abc=def", host: "192.0.2.1", port: 6233, level: "ADMINISTRATOR", written: "libvirt://192.0.2.1:6233"},
		{in: "redfish:192.0.2.1", host: "192.0.2.1", port: 443, url: "https://192.0.2.1", written: "redfish://192.0.2.1"},
		{in: "redfish://192.0.2.1/", host: "192.0.2.1", port: 443, url: "https://192.0.2.1", written: "redfish://192.0.2.1"},
		{in: "redfish://192.0.2.1/redfish/v1/", host: "192.0.2.1", port: 443, url: "https://192.0.2.1", written: "redfish://192.0.2.1"},
		{in: "redfish://192.0.2.1:443", host: "192.0.2.1", port: 443, url: "https://192.0.2.1", written: "redfish://192.0.2.1"},
		{in: "redfish+http://192.0.2.1:8000/redfish/v1/Systems/a%2Fb/", host: "192.0.2.1", port: 8000, path: "/redfish/v1/Systems/a%2Fb/", url: "http://192.0.2.1:8000"},
		{in: "redfish+http://192.0.2.1/foo", host: "192.0.2.1", port: 80, path: "/foo", url: "http://192.0.2.1"},
		{in: "redfish://[2001:db8::1]/foo", host: "2001:db8::1", port: 443, path: "/foo", url: "https://[2001:db8::1]"},
		{in: "redfish-virtualmedia://[2001:db8::1]:8443/foo", host: "2001:db8::1", port: 8443, path: "/foo", url: "https://[2001:db8::1]:8443"},
		{in: "redfish-uefihttp://192.0.2.1", host: "192.0.2.1", port: 443, url: "https://192.0.2.1"},
		{in: "redfish-uefihttp://192.0.2.1/redfish/v1/", host: "192.0.2.1", port: 443, path: "/redfish/v1/", url: "https://192.0.2.1"},
		{in: "redfish://root:calvin@192.0.2.1/foo", host: "192.0.2.1", port: 443, path: "/foo", url: "https://192.0.2.1", written: "redfish://192.0.2.1/foo"},
	} {
		got, err := bmc.ParseAddress(tt.in)
		if err != nil {
			t.Errorf("ParseAddress(%q) error = %v", tt.in, err)
			continue
		}
		if got.Host != tt.host || got.Port != tt.port || got.Path != tt.path || got.Privilege != tt.level {
			t.Errorf("ParseAddress(%q) = host %q, port %d, path %q, privilege %q; want %q, %d, %q, %q",
				tt.in, got.Host, got.Port, got.Path, got.Privilege, tt.host, tt.port, tt.path, tt.level)
		}
		if got.URL() != tt.url {
			t.Errorf("ParseAddress(%q).URL() = %q, want %q", tt.in, got.URL(), tt.url)
		}
		want := tt.written
		if want == "" {
			want = tt.in
		}
		if got.String() != want {
			t.Errorf("ParseAddress(%q).String() = %q, want %q", tt.in, got.String(), want)
		}
	}
}

// B-112: an unknown scheme, and an empty address. B-130: a host name that is none.
func TestParseAddressErrors(t *testing.T) {
	const invalid = "failed to parse BMC address information: "
	long := strings.Repeat("a", 64)
	for _, tt := range []struct {
		in, err string
	}{
		{"", "Empty BMC address Missing BMC connection detail 'Address'"},
		{"foo://192.0.2.1", "Unknown BMC type 'foo' for address foo://192.0.2.1"},
		{"foo://a:secret@192.0.2.1", "Unknown BMC type 'foo' for address foo://a:xxxxx@192.0.2.1"},
		{"redfish+ftp://192.0.2.1", "Unknown BMC type 'redfish+ftp' for address redfish+ftp://192.0.2.1"},
		{"ipmi+http://192.0.2.1", "Unknown BMC type 'ipmi+http' for address ipmi+http://192.0.2.1"},
		{"ilo4+http://192.0.2.1", "Unknown BMC type 'ilo4+http' for address ilo4+http://192.0.2.1"},
		{"irmc+https://192.0.2.1", "Unknown BMC type 'irmc+https' for address irmc+https://192.0.2.1"},
		{"redfish+://192.0.2.1", "Unknown BMC type 'redfish+' for address redfish+://192.0.2.1"},
		{"//192.0.2.1", "Unknown BMC type '' for address //192.0.2.1"},
		{"my-.example.com", invalid + "BMC address hostname/IP : [my-.example.com] is invalid"},
		{"redfish://my_bmc/", invalid + "BMC address hostname/IP : [my_bmc] is invalid"},
		{"redfish://" + long, invalid + "BMC address hostname/IP : [" + long + "] is invalid"},
		{"redfish:///redfish/v1/Systems/1", invalid + "BMC address hostname/IP : [] is invalid"},
		{"[fe80::fc33:62ff:fe33:8xff]:6223", invalid + "BMC address hostname/IP : [fe80::fc33:62ff:fe33:8xff] is invalid"},
		{"redfish://192.0.2.1:99999", invalid + "port [99999] is invalid"},
		{"redfish://192.0.2.1:0", invalid + "port [0] is invalid"},
		{"ipmi://192.0.2.1?privilegelevel=ROOT", invalid + "privilege level [ROOT] is invalid"},
		{"redfish://a:secret@192.0.2.1:x", invalid + `invalid port ":x" after host`},
	} {
		got, err := bmc.ParseAddress(tt.in)
		if err == nil || err.Error() != tt.err {
			t.Errorf("ParseAddress(%q) = %v, %v; want error %q", tt.in, got, err, tt.err)
		}
	}

	_, err := bmc.ParseAddress("foo:192.0.2.1")
	unknown := &bmc.UnknownTypeError{}
	if !errors.As(err, &unknown) || unknown.Type != "foo" || unknown.Address != "foo:192.0.2.1" {
		t.Errorf("ParseAddress(foo:192.0.2.1) error = %#v, want an UnknownTypeError of type foo", err)
	}
	if _, err := bmc.ParseAddress(""); !errors.Is(err, bmc.ErrNoAddress) {
		t.Errorf("ParseAddress() error = %v, want ErrNoAddress", err)
	}
}

// An address that parses has a String that parses to the same address, and a URL
// with the same host and path and without credentials.
func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{
		"192.0.2.1", "bmc.example:623", "[2001:db8::1]:623", "fe80::1%eth0", "ipmi:192.0.2.1",
		"redfish://root@[2001:db8::1]:8443/redfish/v1/Systems/a%2Fb?x=y#z",
		"redfish-uefihttp+http://192.0.2.1/redfish/v1/", "ipmi://bmc?privilegelevel=USER", "ilo4://bmc:443",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		a, err := bmc.ParseAddress(in)
		if err != nil {
			return
		}
		b, err := bmc.ParseAddress(a.String())
		if err != nil || a != b {
			t.Fatalf("ParseAddress(%q) = %+v, which is written %q and read as %+v, %v", in, a, a.String(), b, err)
		}
		if a.URL() == "" {
			return
		}
		u, err := url.Parse(a.URL() + a.Path)
		if err != nil || u.Hostname() != a.Host || u.EscapedPath() != a.Path || u.User != nil {
			t.Fatalf("ParseAddress(%q): %q is read as %+v, %v", in, a.URL()+a.Path, u, err)
		}
	})
}
