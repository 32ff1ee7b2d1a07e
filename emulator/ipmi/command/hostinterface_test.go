package command

import (
	"crypto/sha256"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

func TestBootstrapCredentials(t *testing.T) {
	h := newHost(t)
	exchanges{{"over LAN", "52 a5", InsufficientPrivilege, ""}}.try(t, h, wire.Group, 0x02)
	get := func(control byte) (Code, []byte) {
		t.Helper()
		return askAs(t, h, system, wire.Group, 0x02, redfishGroup, control)
	}
	seen := map[string]bool{}
	for range 2 {
		code, got := get(keepBootstrappingEnabled)
		if code != Completed || len(got) != 32 || seen[string(got)] {
			t.Fatalf("credentials = %v [% x]", code, got)
		}
		seen[string(got)] = true
		a, ok := h.Login(bmc.Credentials{Name: string(got[:16]), Password: string(got[16:]), To: bmc.ForRedfish})
		if !ok || a.Role != bmc.Administrator || !a.Bootstrap {
			t.Errorf("login with them = %+v, %t", a, ok)
		}
		if limit := h.found(string(got[:16])); limit != 0 {
			t.Errorf("they are good for IPMI up to %d", limit)
		}
	}
	if code, got := get(0); code != Completed || len(got) != 32 {
		t.Errorf("the last credentials = %v [% x]", code, got)
	}
	if code, _ := get(keepBootstrappingEnabled); code != bootstrappingDisabled {
		t.Errorf("after the last = %v, want %v", code, bootstrappingDisabled)
	}
	for data, want := range map[string]Code{"52": DataLengthInvalid, "52 a5 00": DataLengthInvalid} {
		if code, _ := askAs(t, h, system, wire.Group, 0x02, unhex(t, data)...); code != want {
			t.Errorf("[%s] = %v, want %v", data, code, want)
		}
	}
	h.applyBMCCommand(t, bmc.SetBootstrap{})
	for range h.Dialect().BMC.Accounts.Most {
		_, _ = get(keepBootstrappingEnabled)
	}
	if code, _ := get(keepBootstrappingEnabled); code != OutOfSpace {
		t.Errorf("when there is no room = %v, want %v", code, OutOfSpace)
	}
}

func TestCertificateFingerprint(t *testing.T) {
	h := newHost(t)
	exchanges{{"over LAN", "52 01", InsufficientPrivilege, ""}}.try(t, h, wire.Group, 0x01)
	factory, err := h.FactoryCertificate()
	must(t, err)
	sum := sha256.Sum256(factory.Chain[0])
	for data, want := range map[string]string{"52 01": "01 " + tohex(sum[:]), "52 00": "", "52 02": ""} {
		code, got := askAs(t, h, system, wire.Group, 0x01, unhex(t, data)...)
		if tohex(got) != want || want == "" && code != NotPresent {
			t.Errorf("[%s] = %v [% x], want [%s]", data, code, got, want)
		}
	}
	h.applyBMCCommand(t, bmc.SetBootstrap{Bootstrap: bmc.Bootstrap{Closed: true}})
	if code, _ := askAs(t, h, system, wire.Group, 0x01, redfishGroup, 1); code != bootstrappingDisabled {
		t.Errorf("where nobody gets an account = %v, want %v", code, bootstrappingDisabled)
	}
}
