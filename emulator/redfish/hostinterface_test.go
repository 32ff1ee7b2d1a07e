package redfish

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func TestHostInterface(t *testing.T) {
	const at = "/redfish/v1/Managers/1/HostInterfaces/1"
	h := newHost(t)
	s := newService(t, h)
	for body, want := range map[string]bmc.Bootstrap{
		`{"CredentialBootstrapping":{"Enabled":false,"EnableAfterReset":false}}`:                   {Closed: true, Stays: true},
		`{"CredentialBootstrapping":{"Enabled":true,"EnableAfterReset":true,"RoleId":"ReadOnly"}}`: {Role: bmc.ReadOnly},
		`{"InterfaceEnabled":false,"CredentialBootstrapping":{"EnableAfterReset":true}}`:           {Disabled: true},
	} {
		if _, err := h.ApplyBMC(t.Context(), bmc.SetBootstrap{}); err != nil {
			t.Fatal(err)
		}
		w := call(t, s, "admin", http.MethodPatch, at, body)
		got := *h.BMC().HostBootstrap()
		if w.Code != http.StatusOK || got.Closed != want.Closed || got.Stays != want.Stays || got.Disabled != want.Disabled ||
			want.Role != "" && got.Role != want.Role {
			t.Errorf("%s= %+v, want %+v", shape(http.MethodPatch, at, body, w), got, want)
		}
		var is struct {
			InterfaceEnabled        bool
			CredentialBootstrapping struct {
				Enabled, EnableAfterReset bool
				RoleId                    bmc.Role
			}
		}
		w = call(t, s, "reader", http.MethodGet, at, "")
		if err := json.Unmarshal(w.Body.Bytes(), &is); err != nil {
			t.Fatal(err)
		}
		b := is.CredentialBootstrapping
		if is.InterfaceEnabled == want.Disabled || b.Enabled != (!want.Closed && !want.Disabled) || b.EnableAfterReset == want.Stays || b.RoleId != got.AccountRole() {
			t.Errorf("%s", shape(http.MethodGet, at, "", w))
		}
	}
	for body, status := range map[string]int{
		`{"CredentialBootstrapping":{"RoleId":"nobody"}}`: http.StatusBadRequest,
		`{"ExternallyAccessible":true}`:                   http.StatusBadRequest,
		`{"InterfaceEnabled":"yes"}`:                      http.StatusBadRequest,
	} {
		if w := call(t, s, "admin", http.MethodPatch, at, body); w.Code != status {
			t.Errorf("%s, want %d", shape(http.MethodPatch, at, body, w), status)
		}
	}
	if w := call(t, s, "operator", http.MethodPatch, at, `{"InterfaceEnabled":true}`); w.Code != http.StatusForbidden {
		t.Errorf("%s, want 403", shape(http.MethodPatch, at, "", w))
	}
}

// IPMI's bootstrap account is shown with its type.
func TestBootstrapAccount(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	if _, err := h.ApplyBMC(t.Context(), bmc.CreateBootstrapAccount{Name: "boot", Password: "boot-secret", Last: true}); err != nil {
		t.Fatal(err)
	}
	w := call(t, s, "admin", http.MethodGet, "/redfish/v1/AccountService/Accounts/5", "")
	if body := w.Body.String(); !strings.Contains(body, `"HostBootstrapAccount":true`) || !strings.Contains(body, `"AccountTypes":["Redfish"]`) {
		t.Errorf("account = %s", body)
	}
	if w := call(t, s, "admin", http.MethodGet, "/redfish/v1/AccountService/Accounts/1", ""); strings.Contains(w.Body.String(), "HostBootstrapAccount") {
		t.Errorf("account = %s", w.Body)
	}
	if w := call(t, s, "admin", http.MethodGet, "/redfish/v1/Managers/1/HostInterfaces/1", ""); !strings.Contains(w.Body.String(), `"Enabled":false`) {
		t.Errorf("host interface = %s", w.Body)
	}
}
