package redfish

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// basic returns the Authorization header of HTTP Basic authentication.
func basic(name, password string) []string {
	return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))}
}

// step is a request with the expected response.
type step struct {
	who          as
	method, path string
	body         string
	header       []string
	want         int
	key          string // key of the first message of an error response
}

func converse(t *testing.T, s http.Handler, steps ...step) *httptest.ResponseRecorder {
	t.Helper()
	var w *httptest.ResponseRecorder
	for _, a := range steps {
		w = call(t, s, a.who, a.method, a.path, a.body, a.header...)
		if w.Code != a.want {
			t.Fatalf("%s; want %d", shape(a.method, a.path, a.body, w), a.want)
		}
		if a.key != "" {
			if keys, _ := errorOf(t, w); keys[0] != a.key {
				t.Fatalf("%s; want %s", shape(a.method, a.path, a.body, w), a.key)
			}
		}
	}
	return w
}

func decoded(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var body map[string]any
	must(t, json.Unmarshal(w.Body.Bytes(), &body))
	return body
}

func TestAccountIsCreatedUsedAndDeleted(t *testing.T) {
	for _, at := range []string{resource.AccountsURI, resource.AccountsURI + "/Members"} {
		s := newService(t, newHost(t))
		w := converse(t, s, step{"admin", "POST", at, `{"UserName":"new","Password":"new-secret-9","RoleId":"Operator"}`, nil, 201, ""})
		uri := w.Header().Get("Location")
		body := decoded(t, w)
		if uri != resource.AccountURI("5") || body["UserName"] != "new" || body["Enabled"] != true || body["Password"] != nil || w.Header().Get("ETag") == "" {
			t.Errorf("%s", shape("POST", at, "", w))
		}
		if diff := cmp.Diff([]any{"Redfish", "IPMI"}, body["AccountTypes"]); diff != "" {
			t.Errorf("AccountTypes (-want +got):\n%s", diff)
		}
		token := converse(t, s, step{"", "POST", sessions, `{"UserName":"new","Password":"new-secret-9"}`, nil, 201, ""}).Header().Get("X-Auth-Token")
		converse(t, s,
			step{"", "POST", sys + "/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`, []string{"X-Auth-Token", token}, 204, ""},
			step{"", "DELETE", resource.AccountURI("2"), "", basic("new", "new-secret-9"), 403, "InsufficientPrivilege"},
			step{"admin", "PATCH", uri, `{"RoleId":"ReadOnly"}`, nil, 200, ""},
			// The role of a session is that of its account.
			step{"", "POST", sys + "/Actions/ComputerSystem.Reset", `{"ResetType":"ForceOff"}`, []string{"X-Auth-Token", token}, 403, "InsufficientPrivilege"},
			step{"admin", "DELETE", uri, "", nil, 204, ""},
			step{"", "GET", sys, "", []string{"X-Auth-Token", token}, 401, "NoValidSession"},
			step{"", "GET", sys, "", basic("new", "new-secret-9"), 401, "NoValidSession"},
			step{"admin", "GET", uri, "", nil, 404, "ResourceNotFound"},
		)
	}
}

func TestInvalidAccountPropertyIsRejected(t *testing.T) {
	for _, tt := range []struct{ name, body, key, arg string }{
		{"user name in use", `{"UserName":"reader"}`, "ResourceAlreadyExists", "UserName"},
		{"name with a colon", `{"UserName":"a:b"}`, "PropertyValueFormatError", "UserName"},
		{"short password", `{"Password":"short"}`, "PasswordIncorrectLength", ""},
		{"password that is a number", `{"Password":12345678}`, "PropertyValueError", "Password"},
		{"no such role", `{"RoleId":"Boss"}`, "PropertyValueNotInList", "RoleId"},
		{"no such type", `{"AccountTypes":["Fax"]}`, "PropertyValueNotInList", "AccountTypes"},
		{"Locked set to true", `{"Locked":true}`, "PropertyValueNotInList", "Locked"},
		{"invalid date", `{"PasswordExpiration":"soon"}`, "PropertyValueFormatError", "PasswordExpiration"},
		{"too long for IPMI", `{"Password":"a-password-of-27-characters"}`, "PropertyValueConflict", "Password"},
		{"other ID", `{"Id":"9"}`, "PropertyNotWritable", "Id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, newHost(t))
			w := call(t, s, "admin", "PATCH", resource.AccountURI("2"), tt.body)
			keys, infos := errorOf(t, w)
			related := "#/" + strings.SplitN(tt.body, `"`, 3)[1]
			if w.Code != 400 || keys[0] != tt.key || !strings.HasPrefix(infos[0].Related[0], related) || strings.Contains(w.Body.String(), "a-password") {
				t.Errorf("%s; want %s about %s", shape("PATCH", "", tt.body, w), tt.key, related)
			}
			if tt.arg != "" && !strings.Contains(strings.Join(infos[0].Args, " "), tt.arg) {
				t.Errorf("arguments %q, want %s", infos[0].Args, tt.arg)
			}
		})
	}
	s := newService(t, newHost(t))
	converse(t, s,
		step{"admin", "POST", resource.AccountsURI, `{"UserName":"x","Password":"xxxxxxxx"}`, nil, 400, "PropertyMissing"},
		step{"admin", "POST", resource.AccountsURI, `{"UserName":"reader","Password":"xxxxxxxx","RoleId":"ReadOnly"}`, nil, 400, "ResourceAlreadyExists"},
		step{"operator", "POST", resource.AccountsURI, `{"UserName":"x","Password":"xxxxxxxx","RoleId":"ReadOnly"}`, nil, 403, "InsufficientPrivilege"},
	)
	for i := range 11 {
		converse(t, s, step{"admin", "POST", resource.AccountsURI, fmt.Sprintf(`{"UserName":"x%d","Password":"xxxxxxxx","RoleId":"ReadOnly"}`, i), nil, 201, ""})
	}
	converse(t, s, step{"admin", "POST", resource.AccountsURI, `{"UserName":"more","Password":"xxxxxxxx","RoleId":"ReadOnly"}`, nil, 400, "CreateLimitReachedForResource"})
}

func TestAccountPatchAppliesValidPropertiesOnly(t *testing.T) {
	s := newService(t, newHost(t))
	w := converse(t, s, step{"admin", "PATCH", resource.AccountURI("2"), `{"UserName":"reader","Password":"fine-secret-5","RoleId":"ReadOnly"}`, nil, 200, ""})
	body := decoded(t, w)
	if body["RoleId"] != "ReadOnly" || body["UserName"] != "operator" || body["UserName@Message.ExtendedInfo"] == nil || body["RoleId@Message.ExtendedInfo"] != nil {
		t.Errorf("%s", shape("PATCH", "", "", w))
	}
	converse(t, s, step{"", "GET", sys, "", basic("operator", "fine-secret-5"), 200, ""})
}

func TestConfigureSelfChangesOnlyItsAccountsPassword(t *testing.T) {
	s := newService(t, newHost(t))
	before, _ := get(t, s, resource.AccountURI("3"))
	converse(t, s,
		step{"reader", "PATCH", resource.AccountURI("3"), `{"RoleId":"Administrator"}`, nil, 403, "InsufficientPrivilege"},
		step{"reader", "PATCH", resource.AccountURI("2"), `{"Password":"mine-secret-1"}`, nil, 403, "InsufficientPrivilege"},
		step{"reader", "DELETE", resource.AccountURI("3"), "", nil, 403, "InsufficientPrivilege"},
	)
	w := converse(t, s, step{"reader", "PATCH", resource.AccountURI("3"), `{"RoleId":"Administrator","Password":"mine-secret-1"}`, nil, 200, ""})
	if body := decoded(t, w); body["RoleId"] != before["RoleId"] || body["RoleId@Message.ExtendedInfo"] == nil {
		t.Errorf("%s", shape("PATCH", "", "", w))
	}
	converse(t, s,
		step{"", "GET", sys, "", basic("reader", "mine-secret-1"), 200, ""},
		step{"reader", "GET", sys, "", nil, 401, "NoValidSession"},
	)
}

func TestPasswordChangeEndsOtherSessionsOfAccount(t *testing.T) {
	s := newService(t, newHost(t))
	mine, _ := logIn(t, s, "reader")
	other, _ := logIn(t, s, "reader")
	admin, _ := logIn(t, s, "admin")
	converse(t, s,
		step{"", "PATCH", resource.AccountURI("3"), `{"Password":"next-secret-1"}`, []string{"X-Auth-Token", mine}, 200, ""},
		step{"", "GET", sys, "", []string{"X-Auth-Token", mine}, 200, ""},
		step{"", "GET", sys, "", []string{"X-Auth-Token", other}, 401, "NoValidSession"},
		step{"", "PATCH", resource.AccountURI("3"), `{"Password":"last-secret-1"}`, []string{"X-Auth-Token", admin}, 200, ""},
		step{"", "GET", sys, "", []string{"X-Auth-Token", mine}, 401, "NoValidSession"},
		step{"", "GET", sys, "", []string{"X-Auth-Token", admin}, 200, ""},
	)
}

func TestPasswordChangeRequiredRestrictsAccount(t *testing.T) {
	s := newService(t, newHost(t))
	converse(t, s, step{"admin", "PATCH", resource.AccountURI("1"), `{"PasswordChangeRequired":true}`, nil, 200, ""})
	w := converse(t, s, step{"", "POST", sessions, `{"UserName":"admin","Password":"adm-secret-1"}`, nil, 201, ""})
	var response struct {
		Info []info `json:"@Message.ExtendedInfo"`
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &response))
	if len(response.Info) != 1 || !strings.HasSuffix(response.Info[0].ID, ".PasswordChangeRequired") || response.Info[0].Args[0] != resource.AccountURI("1") {
		t.Errorf("%s", shape("POST", sessions, "", w))
	}
	token, uri := w.Header().Get("X-Auth-Token"), w.Header().Get("Location")
	signed := []string{"X-Auth-Token", token}
	const refused = "PasswordChangeRequired"
	converse(t, s,
		step{"", "GET", resource.AccountURI("1"), "", signed, 200, ""},
		step{"admin", "GET", resource.AccountURI("1"), "", nil, 200, ""},
		step{"", "GET", sys, "", signed, 403, refused},
		step{"admin", "GET", sys, "", nil, 403, refused},
		step{"", "GET", sessions, "", signed, 403, refused},
		step{"", "GET", uri, "", signed, 403, refused},
		step{"", "GET", resource.AccountURI("2"), "", signed, 403, refused},
		step{"", "PATCH", resource.AccountURI("2"), `{"Password":"xxxxxxxx"}`, signed, 403, refused},
		step{"", "PATCH", resource.AccountURI("1"), `{"PasswordChangeRequired":false}`, signed, 403, refused},
		step{"", "DELETE", resource.AccountURI("1"), "", signed, 405, ""},
		step{"", "GET", "/redfish/v1/", "", signed, 200, ""},
		step{"", "PATCH", resource.AccountURI("1"), `{"Password":"other-secret-1"}`, signed, 200, ""},
		step{"", "GET", sys, "", signed, 200, ""}, // the same session, after the password change
	)
	if body, _ := read(t, s, resource.AccountURI("1"), signed); body["PasswordChangeRequired"] != false {
		t.Errorf("PasswordChangeRequired = %v after the change", body["PasswordChangeRequired"])
	}
	converse(t, s,
		step{"", "PATCH", resource.AccountURI("1"), `{"PasswordChangeRequired":true}`, signed, 200, ""},
		step{"", "DELETE", uri, "", signed, 204, ""}, // a session can always be deleted
	)
}

func read(t *testing.T, s http.Handler, uri string, header []string) (map[string]any, string) {
	t.Helper()
	w := call(t, s, "", "GET", uri, "", header...)
	if w.Code != 200 {
		t.Fatalf("%s", shape("GET", uri, "", w))
	}
	return decoded(t, w), w.Header().Get("ETag")
}

func TestPasswordExpirationRequiresChange(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	w := converse(t, s,
		step{"admin", "PATCH", "/redfish/v1/AccountService", `{"PasswordExpirationDays":30}`, nil, 200, ""},
		step{"admin", "PATCH", resource.AccountURI("3"), `{"Password":"good-secret-1"}`, nil, 200, ""},
	)
	if got, want := decoded(t, w)["PasswordExpiration"], h.Now().Add(30*24*time.Hour).Format(time.RFC3339); got != want {
		t.Errorf("PasswordExpiration = %v, want %s", got, want)
	}
	h.pass(30*24*time.Hour - time.Second)
	converse(t, s, step{"", "GET", sys, "", basic("reader", "good-secret-1"), 200, ""})
	h.pass(time.Second)
	converse(t, s,
		step{"", "GET", sys, "", basic("reader", "good-secret-1"), 403, "PasswordChangeRequired"},
		step{"", "PATCH", resource.AccountURI("3"), `{"Password":"next-secret-1"}`, basic("reader", "good-secret-1"), 200, ""},
		step{"", "GET", sys, "", basic("reader", "next-secret-1"), 200, ""},
		step{"admin", "PATCH", resource.AccountURI("3"), `{"PasswordExpiration":null,"AccountExpiration":"2026-05-01T00:00:00Z"}`, nil, 200, ""},
	)
	h.pass(60 * 24 * time.Hour)
	converse(t, s, step{"", "GET", sys, "", basic("reader", "next-secret-1"), 401, "NoValidSession"})
	if body, _ := get(t, s, resource.AccountURI("3")); body["Enabled"] != false || body["PasswordExpiration"] != nil {
		t.Errorf("after the account's time: Enabled %v, PasswordExpiration %v", body["Enabled"], body["PasswordExpiration"])
	}
}

func TestFailedLoginsLockAccount(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	converse(t, s, step{"admin", "PATCH", "/redfish/v1/AccountService",
		`{"AccountLockoutThreshold":3,"AccountLockoutDuration":600,"AccountLockoutCounterResetAfter":60}`, nil, 200, ""})
	_, before := get(t, s, resource.AccountURI("3"))
	fail := func() {
		converse(t, s, step{"", "GET", sys, "", basic("reader", "wrong"), 401, "NoValidSession"})
	}
	fail()
	fail()
	converse(t, s, step{"", "POST", sessions, `{"UserName":"reader","Password":"wrong"}`, nil, 401, "ResourceAtUriUnauthorized"})
	converse(t, s,
		step{"reader", "GET", sys, "", nil, 401, "NoValidSession"},
		step{"", "POST", sessions, `{"UserName":"reader","Password":"read-secret-3"}`, nil, 401, "ResourceAtUriUnauthorized"},
	)
	if body, etag := get(t, s, resource.AccountURI("3")); body["Locked"] != true || etag == before {
		t.Errorf("Locked = %v, ETag %s, before %s", body["Locked"], etag, before)
	}
	h.pass(600 * time.Second)
	if body, etag := get(t, s, resource.AccountURI("3")); body["Locked"] != false || etag != before {
		t.Errorf("after its time: Locked = %v", body["Locked"])
	}
	converse(t, s, step{"reader", "GET", sys, "", nil, 200, ""})
	for range 3 {
		fail()
	}
	converse(t, s,
		step{"reader", "PATCH", resource.AccountURI("3"), `{"Locked":false}`, nil, 401, ""},
		step{"admin", "PATCH", resource.AccountURI("3"), `{"Locked":false}`, nil, 200, ""},
		step{"reader", "GET", sys, "", nil, 200, ""},
	)
	converse(t, s, step{"admin", "PATCH", "/redfish/v1/AccountService", `{"AccountLockoutCounterResetAfter":601}`, nil, 400, "PropertyValueConflict"})
}

func TestLastAdministratorCannotBeRemoved(t *testing.T) {
	s := newService(t, newHost(t))
	w := converse(t, s,
		step{"admin", "DELETE", resource.AccountURI("1"), "", nil, 405, "ResourceCannotBeDeleted"},
		step{"admin", "PATCH", resource.AccountURI("1"), `{"Enabled":false}`, nil, 400, "PropertyValueResourceConflict"},
		step{"admin", "PATCH", resource.AccountURI("1"), `{"RoleId":"Operator"}`, nil, 400, "PropertyValueResourceConflict"},
		step{"admin", "GET", resource.AccountURI("1"), "", nil, 200, ""},
	)
	if allow := w.Header().Get("Allow"); strings.Contains(allow, "DELETE") {
		t.Errorf("Allow: %s", allow)
	}
	w = converse(t, s,
		step{"admin", "PATCH", resource.AccountURI("4"), `{"Enabled":true}`, nil, 200, ""},
		step{"admin", "GET", resource.AccountURI("1"), "", nil, 200, ""},
	)
	if allow := w.Header().Get("Allow"); !strings.Contains(allow, "DELETE") {
		t.Errorf("Allow of one of two administrators: %s", allow)
	}
	converse(t, s, step{"admin", "DELETE", resource.AccountURI("1"), "", nil, 204, ""}, step{"admin", "GET", sys, "", nil, 401, ""})
}

func TestFixedAccountSlotsAreUsedByPatch(t *testing.T) {
	h := newHost(t)
	h.d.BMC.Accounts.Fixed, h.d.BMC.Accounts.Most = true, 6
	h.bmc = bmc.New(&h.d.BMC, accounts, nil)
	h.bmcChanged()
	s := newService(t, h)
	if body, _ := get(t, s, resource.AccountsURI); body["Members@odata.count"] != 6.0 {
		t.Errorf("%v accounts, want 6", body["Members@odata.count"])
	}
	free, _ := get(t, s, resource.AccountURI("5"))
	if free["UserName"] != "" || free["Enabled"] != false {
		t.Errorf("an unused slot: %v", free)
	}
	w := converse(t, s,
		step{"admin", "POST", resource.AccountsURI, `{"UserName":"new","Password":"new-secret-9","RoleId":"Operator"}`, nil, 405, "OperationNotAllowed"},
		step{"admin", "DELETE", resource.AccountURI("3"), "", nil, 405, "ResourceCannotBeDeleted"},
		step{"admin", "PATCH", resource.AccountURI("5"), `{"UserName":"new","Password":"new-secret-9","RoleId":"Operator"}`, nil, 200, ""},
	)
	if body := decoded(t, w); body["Enabled"] != false || body["UserName"] != "new" {
		t.Errorf("%s", shape("PATCH", "", "", w))
	}
	converse(t, s,
		step{"admin", "PATCH", resource.AccountURI("5"), `{"Enabled":true}`, nil, 200, ""},
		step{"", "GET", sys, "", basic("new", "new-secret-9"), 200, ""},
		step{"admin", "PATCH", resource.AccountURI("5"), `{"UserName":"","Enabled":false}`, nil, 200, ""},
		step{"", "GET", sys, "", basic("new", "new-secret-9"), 401, ""},
	)
	if body, _ := get(t, s, resource.AccountURI("5")); body["UserName"] != "" {
		t.Errorf("a slot that was cleared: %v", body)
	}
	if _, err := openBundle(); err == nil {
		walk(t, s, newSchemas(t))
	}
}

func TestChangePasswordAction(t *testing.T) {
	s := newService(t, newHost(t))
	act := resource.AccountURI("3") + "/Actions/ManagerAccount.ChangePassword"
	converse(t, s,
		step{"admin", "PATCH", "/redfish/v1/AccountService", `{"RequireChangePasswordAction":true,"EnforcePasswordHistoryCount":2}`, nil, 200, ""},
		step{"reader", "PATCH", resource.AccountURI("3"), `{"Password":"next-secret-1"}`, nil, 400, "PropertyNotWritable"},
		step{"reader", "POST", act, `{"NewPassword":"next-secret-1"}`, nil, 400, "ActionParameterMissing"},
		step{"reader", "POST", act, `{"NewPassword":"next-secret-1","SessionAccountPassword":"wrong"}`, nil, 400, "ActionParameterValueError"},
		step{"operator", "POST", act, `{"NewPassword":"next-secret-1","SessionAccountPassword":"op-secret-2"}`, nil, 403, "InsufficientPrivilege"},
		step{"reader", "POST", act, `{"NewPassword":"next","SessionAccountPassword":"read-secret-3"}`, nil, 400, "PasswordIncorrectLength"},
		step{"reader", "POST", act, `{"NewPassword":"read-secret-3","SessionAccountPassword":"read-secret-3"}`, nil, 400, "PasswordReuseTooRecent"},
		step{"reader", "POST", act, `{"NewPassword":"next-secret-1","SessionAccountPassword":"read-secret-3"}`, nil, 204, ""},
		step{"", "GET", sys, "", basic("reader", "next-secret-1"), 200, ""},
		step{"admin", "POST", act, `{"NewPassword":"last-secret-1","SessionAccountPassword":"adm-secret-1"}`, nil, 204, ""},
		step{"", "GET", sys, "", basic("reader", "last-secret-1"), 200, ""},
	)
}

func TestCustomRoles(t *testing.T) {
	s := newService(t, newHost(t))
	uri := resource.RolesURI + "/Installer"
	w := converse(t, s,
		step{"operator", "POST", resource.RolesURI, `{"RoleId":"Installer"}`, nil, 403, "InsufficientPrivilege"},
		step{"admin", "POST", resource.RolesURI, `{"RoleId":"Installer","AssignedPrivileges":["Fly"]}`, nil, 400, "PropertyValueNotInList"},
		step{"admin", "POST", resource.RolesURI, `{"RoleId":"Operator"}`, nil, 400, "ResourceAlreadyExists"},
		step{"admin", "POST", resource.RolesURI, `{"RoleId":"a b"}`, nil, 400, "PropertyValueFormatError"},
		step{"admin", "POST", resource.RolesURI, `{"RoleId":"Installer","AssignedPrivileges":["Login","ConfigureManager"],"OemPrivileges":["OemPower"]}`, nil, 201, ""},
	)
	body := decoded(t, w)
	if w.Header().Get("Location") != uri || body["IsPredefined"] != false || !cmp.Equal(body["AssignedPrivileges"], []any{"Login", "ConfigureManager"}) {
		t.Errorf("%s", shape("POST", resource.RolesURI, "", w))
	}
	insert := sys + "/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
	image := `{"Image":"http://images.test/a.iso"}`
	converse(t, s,
		step{"operator", "POST", insert, image, nil, 403, "InsufficientPrivilege"},
		step{"admin", "PATCH", resource.AccountURI("2"), `{"RoleId":"Installer"}`, nil, 200, ""},
		step{"operator", "POST", insert, image, nil, 204, ""},
		step{"operator", "PATCH", sys, `{"AssetTag":"x"}`, nil, 403, "InsufficientPrivilege"},
		step{"admin", "DELETE", uri, "", nil, 409, "ResourceInUse"},
		step{"admin", "PATCH", uri, `{"AssignedPrivileges":["Login"]}`, nil, 200, ""},
		step{"operator", "POST", insert, image, nil, 403, "InsufficientPrivilege"},
		step{"admin", "PATCH", resource.AccountURI("2"), `{"RoleId":"ReadOnly"}`, nil, 200, ""},
		step{"admin", "DELETE", uri, "", nil, 204, ""},
		step{"admin", "GET", uri, "", nil, 404, "ResourceNotFound"},
	)
	for _, method := range []string{"PATCH", "DELETE"} {
		w := call(t, s, "admin", method, resource.RolesURI+"/Operator", `{"AssignedPrivileges":["Login"]}`)
		if allow := w.Header().Get("Allow"); w.Code != 405 || strings.Contains(allow, method) {
			t.Errorf("%s; want 405", shape(method, resource.RolesURI+"/Operator", "", w))
		}
	}
}

func TestHTTPBasicAuthDisabled(t *testing.T) {
	s := newService(t, newHost(t))
	token, _ := logIn(t, s, "admin")
	signed := []string{"X-Auth-Token", token}
	set := func(to string) {
		converse(t, s, step{"", "PATCH", "/redfish/v1/AccountService", `{"HTTPBasicAuth":"` + to + `"}`, signed, 200, ""})
	}
	set("Unadvertised")
	converse(t, s, step{"admin", "GET", sys, "", nil, 200, ""})
	w := converse(t, s, step{"", "GET", sys, "", nil, 401, "NoValidSession"})
	if got := w.Header().Get("WWW-Authenticate"); got != "" {
		t.Errorf("unadvertised, but WWW-Authenticate: %s", got)
	}
	set("Disabled")
	converse(t, s,
		step{"admin", "GET", sys, "", nil, 401, "NoValidSession"},
		// A token takes precedence over a password, and a session can still be created.
		step{"admin", "GET", sys, "", signed, 200, ""},
		step{"", "POST", sessions, `{"UserName":"admin","Password":"adm-secret-1"}`, nil, 201, ""},
	)
	set("Enabled")
	converse(t, s,
		step{"admin", "GET", sys, "", nil, 200, ""},
		step{"admin", "GET", sys, "", []string{"X-Auth-Token", "stale"}, 401, "NoValidSession"},
	)
}

func TestServiceEnabledFalseDisablesService(t *testing.T) {
	s := newService(t, newHost(t))
	token, uri := logIn(t, s, "admin")
	converse(t, s,
		step{"admin", "PATCH", "/redfish/v1/SessionService", `{"ServiceEnabled":false}`, nil, 200, ""},
		step{"", "POST", sessions, `{"UserName":"admin","Password":"adm-secret-1"}`, nil, 503, "ServiceDisabled"},
		step{"", "GET", sys, "", []string{"X-Auth-Token", token}, 200, ""},
		step{"admin", "DELETE", uri, "", nil, 503, "ServiceDisabled"},
		step{"admin", "PATCH", "/redfish/v1/SessionService", `{"ServiceEnabled":true}`, nil, 200, ""},
		step{"admin", "PATCH", "/redfish/v1/AccountService", `{"ServiceEnabled":false}`, nil, 200, ""},
		step{"admin", "PATCH", resource.AccountURI("2"), `{"Enabled":false}`, nil, 503, "ServiceDisabled"},
		step{"admin", "DELETE", resource.AccountURI("2"), "", nil, 503, "ServiceDisabled"},
		step{"", "POST", sessions, `{"UserName":"admin","Password":"adm-secret-1"}`, nil, 503, "ServiceDisabled"},
		step{"admin", "PATCH", "/redfish/v1/AccountService", `{"ServiceEnabled":true}`, nil, 200, ""},
		step{"admin", "DELETE", resource.AccountURI("2"), "", nil, 204, ""},
	)
}

func TestSessionShowsContextAndExpiration(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	converse(t, s,
		step{"admin", "PATCH", "/redfish/v1/SessionService", `{"AbsoluteSessionTimeout":29}`, nil, 400, "PropertyValueOutOfRange"},
		step{"admin", "PATCH", "/redfish/v1/SessionService", `{"AbsoluteSessionTimeout":100,"AbsoluteSessionTimeoutEnabled":true}`, nil, 200, ""},
	)
	w := converse(t, s, step{"", "POST", sessions, `{"UserName":"admin","Password":"adm-secret-1","Context":"rack 7"}`, nil, 201, ""})
	body := decoded(t, w)
	if body["Context"] != "rack 7" || body["ExpirationTime"] != h.Now().Add(100*time.Second).Format(time.RFC3339) {
		t.Errorf("%s", shape("POST", sessions, "", w))
	}
	signed := []string{"X-Auth-Token", w.Header().Get("X-Auth-Token")}
	h.pass(99 * time.Second)
	converse(t, s, step{"", "GET", sys, "", signed, 200, ""})
	h.pass(time.Second)
	converse(t, s, step{"", "GET", sys, "", signed, 401, "NoValidSession"})
}
