package host

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

func TestBMCKeys(t *testing.T) {
	for _, same := range [][]string{
		{"redfish://Bmc.Example/redfish/v1/Systems/1", "redfish-virtualmedia+https://bmc.example:443/redfish/v1/Systems/1/", "idrac-redfish://bmc.example/redfish/v1/Systems/1"},
		{"redfish://192.0.2.1:8443/a", "redfish+http://192.0.2.1:8443/a", "redfish://[::ffff:192.0.2.1]:8443/a"},
		{"192.0.2.1", "ipmi://192.0.2.1", "ipmi:192.0.2.1:623", "192.0.2.1:623", "ipmi://192.0.2.1?privilegelevel=OPERATOR"},
		{"ipmi://[2001:DB8::1]", "2001:db8:0::1"},
	} {
		want := bmcKeys(&metal3.BareMetalHost{Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{Address: same[0]}}})
		for _, a := range same {
			got := bmcKeys(&metal3.BareMetalHost{Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{Address: a}}})
			if len(got) != 1 || got[0] != want[0] {
				t.Errorf("the keys of %s are %q, those of %s %q", a, got, same[0], want)
			}
		}
	}
	seen := map[string]string{}
	for _, a := range []string{"redfish://192.0.2.1/redfish/v1/Systems/1", "redfish://192.0.2.1/redfish/v1/Systems/2", "redfish://192.0.2.1:8000/redfish/v1/Systems/1", "redfish://192.0.2.2/redfish/v1/Systems/1", "ipmi://192.0.2.1", "ipmi://192.0.2.1:6230"} {
		got := bmcKeys(&metal3.BareMetalHost{Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{Address: a}}})
		if len(got) != 1 || seen[got[0]] != "" {
			t.Errorf("the keys of %s are %q, as of %q", a, got, seen[strings.Join(got, "")])
			continue
		}
		seen[got[0]] = a
	}
	for _, a := range []string{"", "redfish://a b", "telnet://192.0.2.1"} {
		if got := bmcKeys(&metal3.BareMetalHost{Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{Address: a}}}); len(got) != 0 {
			t.Errorf("the keys of %q are %q", a, got)
		}
	}
}

// Of two hosts with one server the second is not registered: nothing of the server is switched,
// cleaned or written for it, until the first one is gone.
func TestServerOfAnotherHostIsRefused(t *testing.T) {
	const systemUUID = "4c4c4544-0042-3510-8052-b4c04f4d3132"
	address := func(a string) func(*metal3.BareMetalHost) {
		return func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress, h.Spec.BMC.Address = "", a }
	}
	registered := func(id, a string) func(*metal3.BareMetalHost) {
		return func(h *metal3.BareMetalHost) { address(a)(h); h.Status.Provisioning.ID = id }
	}
	id := systemID(bmc.System{UUID: strings.ToUpper(systemUUID)})
	for name, tt := range map[string]struct {
		other *metal3.BareMetalHost
		uuid  string
		want  string
	}{
		"address": {other("node-9", registered("x", "idrac-redfish://192.0.2.2:443/redfish/v1/Systems/1/")), "",
			"BMC address 192.0.2.2:443/redfish/v1/Systems/1 is that of BareMetalHost lab/node-9: correct spec.bmc.address, or remove one of the two"},
		"address of one that knows no account": {other("a-node", address("redfish://192.0.2.2/redfish/v1/Systems/1")), "", ""},
		"another system of it":                 {other("a-node", registered("x", "redfish://192.0.2.2/redfish/v1/Systems/2")), systemUUID, ""},
		"system": {other("node-9", registered(id, "ipmi://192.0.2.9")), systemUUID,
			"the system with the UUID " + systemUUID + " is that of BareMetalHost lab/node-9, whose BMC address is ipmi://192.0.2.9: correct spec.bmc.address, or remove one of the two"},
		"no UUID":                  {other("node-9", registered(systemID(bmc.System{}), "ipmi://192.0.2.9")), "", ""},
		"a UUID of many servers":   {other("node-9", registered(systemID(bmc.System{UUID: "03000200-0400-0500-0006-000700080009"}), "ipmi://192.0.2.9")), "03000200-0400-0500-0006-000700080009", ""},
		"a UUID of another server": {other("node-9", registered(systemID(bmc.System{UUID: "5c4c4544-0042-3510-8052-b4c04f4d3132"}), "ipmi://192.0.2.9")), systemUUID, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, nil)
			b.bmc.SetIdentity(bmc.System{ID: "/redfish/v1/Systems/1", UUID: tt.uuid})
			status := tt.other.Status
			b.create(tt.other)
			tt.other.Status = status
			if err := b.kube.Status().Update(t.Context(), tt.other); err != nil {
				t.Fatal(err)
			}
			b.until("an end of registering", func(h *metal3.BareMetalHost) bool {
				return h.Status.ErrorType != "" || in(metal3.StateInspecting)(h)
			})
			s := b.host().Status
			if !strings.HasPrefix(s.ErrorMessage, tt.want) || tt.want == "" && s.ErrorMessage != "" || tt.want != "" && s.ErrorType != metal3.RegistrationError {
				t.Fatalf("%s %q, want %q", s.ErrorType, s.ErrorMessage, tt.want)
			}
			if tt.want == "" {
				if got, want := s.Provisioning.ID, systemID(bmc.System{UUID: tt.uuid}); got == "" || want != "" && got != want {
					t.Errorf("the ID is %q, want %q", got, want)
				}
				return
			}
			for _, c := range b.bmc.Calls() {
				if c.Verb != "Open" && c.Verb != "System" {
					t.Errorf("the server was changed: %v", c)
				}
			}
			if err := b.kube.Delete(t.Context(), tt.other); err != nil {
				t.Fatal(err)
			}
			b.until("available once the other has gone", in(metal3.StateAvailable))
		})
	}
}

// Of two hosts that are registered for one server at the same time one is, until it is gone.
func TestServerIsClaimedOnce(t *testing.T) {
	const systemUUID = "4c4c4544-0042-3510-8052-b4c04f4d3132"
	for name, tt := range map[string]struct {
		address, uuid string
		want          string
	}{
		"by its system":  {"ipmi://192.0.2.9", systemUUID, "the system with the UUID " + systemUUID + " is that of BareMetalHost lab/node-9, whose BMC address is ipmi://192.0.2.9"},
		"by its address": {"redfish://192.0.2.2/redfish/v1/Systems/1", "", "BMC address 192.0.2.2:443/redfish/v1/Systems/1 is that of BareMetalHost lab/node-9"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, nil)
			b.bmc.SetIdentity(bmc.System{ID: "/redfish/v1/Systems/1", UUID: tt.uuid})
			o := other("node-9", func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress, h.Spec.BMC.Address = "", tt.address })
			b.create(o)
			if holder := b.r.memory.claim(o.UID, bmcKeys(o)[0], systemID(bmc.System{UUID: tt.uuid})); holder != "" {
				t.Fatalf("the server is claimed by %s", holder)
			}
			b.until("an error", hasError(metal3.RegistrationError))
			if s := b.host().Status; !strings.HasPrefix(s.ErrorMessage, tt.want) {
				t.Errorf("the error is %q, want %q", s.ErrorMessage, tt.want)
			}
			if err := b.kube.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			b.until("available once the other has gone", in(metal3.StateAvailable))
		})
	}
}
