package redfish

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// envelope is the body of an error response.
type envelope struct {
	Error struct {
		Code     string `json:"code"`
		Message  string `json:"message"`
		Extended []info `json:"@Message.ExtendedInfo"`
	} `json:"error"`
}

type info struct {
	ID       string           `json:"MessageId"`
	Text     string           `json:"Message"`
	Args     []string         `json:"MessageArgs"`
	Related  []string         `json:"RelatedProperties"`
	Severity message.Severity `json:"MessageSeverity"`
}

// errorOf reads an error response, checks its form, and lists the keys of its
// messages.
func errorOf(t testing.TB, w *httptest.ResponseRecorder) (keys []string, infos []info) {
	t.Helper()
	var e envelope
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || len(e.Error.Extended) == 0 {
		t.Fatalf("no error response (%v): %d %v\n%s", err, w.Code, w.Header(), w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json;charset=utf-8" {
		t.Errorf("Content-Type of an error = %s", got)
	}
	if _, err := openBundle(); err == nil {
		theSchemas().check(t, "error", "redfish-error.v1_0_2", w.Body.Bytes())
	}
	for _, i := range e.Error.Extended {
		key, ok := strings.CutPrefix(i.ID, "Base.1.22.")
		if !ok || i.Text == "" || i.Severity == "" {
			t.Errorf("message %+v lacks something", i)
		}
		keys = append(keys, key)
	}
	return keys, e.Error.Extended
}

const sys = "/redfish/v1/Systems/1"

// TestInvalidRequestsReturnErrors shows statements A3, A5, A8, A10 and A15.
func TestInvalidRequestsReturnErrors(t *testing.T) {
	reset := sys + "/Actions/ComputerSystem.Reset"
	insert := sys + "/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
	eject := sys + "/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia"
	sessions := "/redfish/v1/SessionService/Sessions"
	tests := []struct {
		name         string
		who          as
		method, path string
		body         string
		header       []string
		status       int
		keys         []string
		args         []string // MessageArgs of the first message
		related      string   // RelatedProperties of the first message
	}{
		{name: "GET without login", method: "GET", path: "/redfish/v1/Systems", status: 401, keys: []string{"NoValidSession"}},
		{name: "GET of unknown URI without login", method: "GET", path: "/redfish/v1/Nothing", status: 401, keys: []string{"NoValidSession"}},
		{name: "PATCH of root without login", method: "PATCH", path: "/redfish/v1/", body: `{}`, status: 401, keys: []string{"NoValidSession"}},
		{name: "wrong password", method: "GET", path: "/redfish/v1/Systems", header: []string{"Authorization", "Basic YWRtaW46YWRtaW4="}, status: 401, keys: []string{"NoValidSession"}},
		{name: "disabled account", who: "gone", method: "GET", path: "/redfish/v1/Systems", status: 401, keys: []string{"NoValidSession"}},
		{name: "wrong token beside a right password", who: "admin", method: "GET", path: "/redfish/v1/Systems", header: []string{"X-Auth-Token", "x"}, status: 401, keys: []string{"NoValidSession"}},
		{name: "login comes before all other headers", method: "GET", path: "/redfish/v1/Systems", header: []string{"OData-Version", "9"}, status: 401, keys: []string{"NoValidSession"}},
		{name: "login with a wrong password", method: "POST", path: sessions, body: `{"UserName":"admin","Password":"x"}`, status: 401, keys: []string{"ResourceAtUriUnauthorized"}},
		{name: "login to a disabled account", method: "POST", path: sessions, body: `{"UserName":"gone","Password":"gone-secret-4"}`, status: 401, keys: []string{"ResourceAtUriUnauthorized"}},
		{name: "login without a password", method: "POST", path: sessions + "/Members", body: `{"UserName":"admin"}`, status: 400, keys: []string{"PropertyMissing"}, args: []string{"Password"}, related: "#/Password"},
		{name: "login with unknown property", method: "POST", path: sessions, body: `{"UserName":"admin","Password":"adm-secret-1","Weather":1}`, status: 400, keys: []string{"PropertyUnknown"}},
		{name: "login with a number", method: "POST", path: sessions, body: `{"UserName":"admin","Password":17}`, status: 400, keys: []string{"PropertyValueError"}, args: []string{"Password"}},

		{name: "OData version", who: "admin", method: "GET", path: "/redfish/v1/", header: []string{"OData-Version", "4.1"}, status: 412, keys: []string{"HeaderInvalid"}, args: []string{"OData-Version"}},
		{name: "unknown verb", who: "admin", method: "FETCH", path: sys, status: 501, keys: []string{"OperationNotAllowed"}},
		{name: "unknown query option", who: "admin", method: "GET", path: sys + "?$expound=.", status: 501, keys: []string{"QueryParameterUnsupported"}, args: []string{"$expound"}},
		{name: "encoded query option", who: "admin", method: "HEAD", path: "/redfish/v1/Systems?x=1&%24stop=1", status: 501},
		{name: "expand a name", who: "admin", method: "GET", path: sys + "?$expand=Storage", status: 400, keys: []string{"QueryParameterValueFormatError"}, args: []string{"Storage", "$expand"}},
		{name: "expand too deep", who: "admin", method: "GET", path: sys + "?$expand=.($levels=7)", status: 400, keys: []string{"QueryParameterOutOfRange"}, args: []string{"7", "$levels", "1 to 6"}},
		{name: "$top is no number", who: "admin", method: "GET", path: "/redfish/v1/Systems?$top=all", status: 400, keys: []string{"QueryParameterValueTypeError"}, args: []string{"all", "$top"}},
		{name: "negative $skip", who: "admin", method: "GET", path: "/redfish/v1/Systems?$skip=-1", status: 400, keys: []string{"QueryParameterOutOfRange"}, args: []string{"-1", "$skip", "0 and above"}},
		{name: "only with a value", who: "admin", method: "GET", path: "/redfish/v1/SessionService/Sessions?only=foo", status: 400, keys: []string{"QueryParameterValueFormatError"}, args: []string{"foo", "only"}},
		{name: "excerpt with a value", method: "GET", path: "/redfish/v1/?excerpt=foo", status: 400, keys: []string{"QueryParameterValueFormatError"}, args: []string{"foo", "excerpt"}},
		{name: "only with $top", who: "admin", method: "GET", path: "/redfish/v1/Systems?only&$top=1", status: 400, keys: []string{"QueryCombinationInvalid"}},
		{name: "only of a resource", who: "admin", method: "GET", path: sys + "?only", status: 400, keys: []string{"QueryNotSupportedOnResource"}},
		{name: "page of a resource", who: "admin", method: "GET", path: sys + "?$top=1", status: 400, keys: []string{"QueryNotSupportedOnResource"}},
		{name: "query of a document", method: "GET", path: "/redfish/v1/$metadata?$select=x", status: 400, keys: []string{"QueryNotSupportedOnResource"}},
		{name: "malformed filter", who: "admin", method: "GET", path: "/redfish/v1/Systems?$filter=Name", status: 400, keys: []string{"QueryParameterValueFormatError"}, args: []string{"Name", "$filter"}},
		{name: "filter of another type", who: "admin", method: "GET", path: "/redfish/v1/Systems?$filter=Name+eq+7", status: 400, keys: []string{"QueryParameterValueTypeError"}, args: []string{"Name eq 7", "$filter"}},
		{name: "query of an action", who: "admin", method: "POST", path: reset + "?only", body: `{"ResetType":"On"}`, status: 400, keys: []string{"QueryNotSupportedOnOperation"}},
		{name: "query option of a write", who: "admin", method: "PATCH", path: sys + "?$select=Boot", body: `{"Boot":{}}`, status: 400, keys: []string{"QueryNotSupportedOnOperation"}},
		{name: "media type", who: "admin", method: "GET", path: sys, header: []string{"Accept", "text/html, application/json;q=0"}, status: 406, keys: []string{"HeaderInvalid"}, args: []string{"Accept"}},
		{name: "no such address", who: "admin", method: "GET", path: "/redfish/v1/Nothing", status: 404, keys: []string{"ResourceMissingAtURI"}, args: []string{"/redfish/v1/Nothing"}},
		{name: "outside of Redfish", who: "admin", method: "GET", path: "/", status: 404, keys: []string{"ResourceMissingAtURI"}},
		{name: "double slash", who: "admin", method: "GET", path: "/redfish/v1//Systems", status: 404, keys: []string{"ResourceMissingAtURI"}},
		{name: "encoded slash", who: "admin", method: "GET", path: "/redfish/v1/Systems%2F1", status: 404, keys: []string{"ResourceMissingAtURI"}},
		{name: "no such system", who: "admin", method: "GET", path: "/redfish/v1/Systems/2", status: 404, keys: []string{"ResourceNotFound"}, args: []string{"ComputerSystem", "2"}},
		{name: "below no such system", who: "admin", method: "GET", path: "/redfish/v1/Systems/2/Storage/1", status: 404, keys: []string{"ResourceNotFound"}, args: []string{"ComputerSystem", "2"}},
		{name: "action of no such drive slot", who: "admin", method: "POST", path: sys + "/VirtualMedia/Tape/Actions/VirtualMedia.EjectMedia", status: 404, keys: []string{"ResourceNotFound"}, args: []string{"VirtualMedia", "Tape"}},
		{name: "no such action", who: "admin", method: "POST", path: sys + "/Actions/ComputerSystem.Dance", body: `{}`, status: 404, keys: []string{"ResourceMissingAtURI"}},
		{name: "read an action", who: "admin", method: "GET", path: reset, status: 405, keys: []string{"OperationNotAllowed"}},
		{name: "replace", who: "admin", method: "PUT", path: sys, body: `{}`, status: 405, keys: []string{"OperationNotAllowed"}},
		{name: "delete a predefined role", who: "admin", method: "DELETE", path: "/redfish/v1/AccountService/Roles/Operator", status: 405, keys: []string{"ResourceCannotBeDeleted"}},

		{name: "no JSON", who: "admin", method: "PATCH", path: sys, body: `{"Boot":`, status: 400, keys: []string{"MalformedJSON"}},
		{name: "two documents", who: "admin", method: "PATCH", path: sys, body: `{} {}`, status: 400, keys: []string{"MalformedJSON"}},
		{name: "no body", who: "admin", method: "PATCH", path: sys, status: 400, keys: []string{"MalformedJSON"}},
		{name: "empty object", who: "admin", method: "PATCH", path: sys, body: `{}`, status: 400, keys: []string{"EmptyJSON"}},
		{name: "no object", who: "admin", method: "PATCH", path: sys, body: `["Boot"]`, status: 400, keys: []string{"UnrecognizedRequestBody"}},
		{name: "nested too deep", who: "admin", method: "PATCH", path: sys, body: strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), status: 400, keys: []string{"UnrecognizedRequestBody"}},
		{name: "form", who: "admin", method: "PATCH", path: sys, body: `Boot=1`, header: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415, keys: []string{"UnrecognizedRequestBody"}},
		{name: "too large", who: "admin", method: "PATCH", path: sys, body: `{"Boot":"` + strings.Repeat("x", maxBody) + `"}`, status: 413, keys: []string{"PayloadTooLarge"}},

		{name: "unknown property", who: "admin", method: "PATCH", path: sys, body: `{"NotAProp":1}`, status: 400, keys: []string{"PropertyUnknown"}, args: []string{"NotAProp"}, related: "#/NotAProp"},
		{name: "name in the wrong case", who: "admin", method: "PATCH", path: sys, body: `{"boot":{}}`, status: 400, keys: []string{"PropertyUnknown"}},
		{name: "read-only property", who: "admin", method: "PATCH", path: sys, body: `{"PowerState":"On"}`, status: 400, keys: []string{"PropertyNotWritable"}, args: []string{"PowerState"}},
		{name: "several", who: "admin", method: "PATCH", path: sys, body: `{"UUID":"","Z/y":1}`, status: 400, keys: []string{"PropertyNotWritable", "PropertyUnknown"}},
		{name: "value not in list", who: "admin", method: "PATCH", path: sys, body: `{"Boot":{"BootSourceOverrideTarget":"Moon"}}`, status: 400, keys: []string{"PropertyValueNotInList"}, args: []string{"Moon", "BootSourceOverrideTarget"}, related: "#/Boot/BootSourceOverrideTarget"},
		{name: "value of another type", who: "admin", method: "PATCH", path: sys, body: `{"Boot":{"BootSourceOverrideTarget":null}}`, status: 400, keys: []string{"PropertyValueTypeError"}, args: []string{"null", "BootSourceOverrideTarget"}},
		{name: "object of another type", who: "admin", method: "PATCH", path: sys, body: `{"Boot":[1]}`, status: 400, keys: []string{"PropertyValueTypeError"}},
		{name: "list of values", who: "admin", method: "PATCH", path: sys, body: `{"Boot":{"BootSourceOverrideTarget@Redfish.AllowableValues":[]}}`, status: 400, keys: []string{"PropertyNotWritable"}},
		{name: "twice", who: "admin", method: "PATCH", path: sys, body: `{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideTarget":"Cd"}}`, status: 400, keys: []string{"PropertyDuplicate"}},
		{name: "annotations only", who: "admin", method: "PATCH", path: sys, body: `{"@odata.id":"/x","@odata.etag":"y"}`, status: 400, keys: []string{"NoOperation"}},
		{name: "empty group", who: "admin", method: "PATCH", path: sys, body: `{"Boot":{}}`, status: 400, keys: []string{"NoOperation"}},
		{name: "apply time", who: "admin", method: "PATCH", path: sys, body: `{"@Redfish.SettingsApplyTime":{"ApplyTime":"OnReset"}}`, status: 400, keys: []string{"PropertyUnknown"}},
		{name: "below the range", who: "admin", method: "PATCH", path: "/redfish/v1/SessionService", body: `{"SessionTimeout":29}`, status: 400, keys: []string{"PropertyValueOutOfRange"}, args: []string{"29", "SessionTimeout"}},
		{name: "above the range", who: "admin", method: "PATCH", path: "/redfish/v1/SessionService", body: `{"SessionTimeout":1e300}`, status: 400, keys: []string{"PropertyValueOutOfRange"}},
		{name: "not an integer", who: "admin", method: "PATCH", path: "/redfish/v1/SessionService", body: `{"SessionTimeout":30.5}`, status: 400, keys: []string{"PropertyValueTypeError"}},
		{name: "text for a number", who: "admin", method: "PATCH", path: "/redfish/v1/SessionService", body: `{"SessionTimeout":"60"}`, status: 400, keys: []string{"PropertyValueTypeError"}},

		{name: "action without its parameter", who: "admin", method: "POST", path: reset, body: `{}`, status: 400, keys: []string{"ActionParameterMissing"}, args: []string{"ComputerSystem.Reset", "ResetType"}},
		{name: "action without a body", who: "admin", method: "POST", path: reset, status: 400, keys: []string{"ActionParameterMissing"}},
		{name: "parameter that is not listed", who: "admin", method: "POST", path: reset, body: `{"ResetType":"Dance"}`, status: 400, keys: []string{"ActionParameterValueNotInList"}, args: []string{"Dance", "ResetType", "ComputerSystem.Reset"}},
		{name: "parameter of another type", who: "admin", method: "POST", path: reset, body: `{"ResetType":true}`, status: 400, keys: []string{"ActionParameterValueTypeError"}},
		{name: "unknown parameter", who: "admin", method: "POST", path: reset, body: `{"ResetType":"On","Soon":1}`, status: 400, keys: []string{"ActionParameterUnknown"}, args: []string{"ComputerSystem.Reset", "Soon"}},
		{name: "parameter twice", who: "admin", method: "POST", path: reset, body: `{"ResetType":"On","ResetType":"On"}`, status: 400, keys: []string{"ActionParameterDuplicate"}},
		{name: "eject with a parameter", who: "admin", method: "POST", path: eject, body: `{"Force":true}`, status: 400, keys: []string{"ActionParameterUnknown"}},
		{name: "image of an unknown protocol", who: "admin", method: "POST", path: insert, body: `{"Image":"gopher://a/b.iso"}`, status: 400, keys: []string{"ActionParameterValueFormatError"}, args: []string{"gopher://a/b.iso", "Image", "VirtualMedia.InsertMedia"}, related: "#/Image"},
		{name: "image by a protocol that is not spoken", who: "admin", method: "POST", path: insert, body: `{"Image":"nfs://a/b.iso"}`, status: 400, keys: []string{"SourceDoesNotSupportProtocol"}, args: []string{"nfs://a/b.iso", "NFS"}, related: "#/Image"},
		{name: "protocol that is not spoken", who: "admin", method: "POST", path: insert, body: `{"Image":"http://a/b.iso","TransferProtocolType":"CIFS"}`, status: 400, keys: []string{"ActionParameterValueNotInList"}, related: "#/TransferProtocolType"},
		{name: "CD to be written to", who: "admin", method: "POST", path: insert, body: `{"Image":"http://a/b.iso","WriteProtected":false}`, status: 400, keys: []string{"ActionParameterValueConflict"}, related: "#/WriteProtected"},
		{name: "image without an address", who: "admin", method: "POST", path: insert, body: `{"Image":""}`, status: 400, keys: []string{"ActionParameterValueFormatError"}},
		{name: "image that contradicts the protocol", who: "admin", method: "POST", path: insert, body: `{"Image":"http://a/b.iso","TransferProtocolType":"HTTPS"}`, status: 400, keys: []string{"ActionParameterValueConflict"}, args: []string{"TransferProtocolType", "HTTPS"}},
		{name: "image not to be inserted", who: "admin", method: "POST", path: insert, body: `{"Image":"http://a/b.iso","Inserted":false}`, status: 400, keys: []string{"ActionParameterValueNotInList"}, args: []string{"false", "Inserted", "VirtualMedia.InsertMedia"}},

		{name: "operator inserts media", who: "operator", method: "POST", path: insert, body: `{"Image":"http://a/b.iso"}`, status: 403, keys: []string{"InsufficientPrivilege"}},
		{name: "reader resets", who: "reader", method: "POST", path: reset, body: `{"ResetType":"On"}`, status: 403, keys: []string{"InsufficientPrivilege"}},
		{name: "reader changes boot", who: "reader", method: "PATCH", path: sys, body: `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`, status: 403, keys: []string{"InsufficientPrivilege"}},
		{name: "operator sets the session time-out", who: "operator", method: "PATCH", path: "/redfish/v1/SessionService", body: `{"SessionTimeout":60}`, status: 403, keys: []string{"InsufficientPrivilege"}},
		{name: "reader reads another's account", who: "reader", method: "GET", path: "/redfish/v1/AccountService/Accounts/1", status: 403, keys: []string{"InsufficientPrivilege"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			// A wrong password counts as a failed login and is reported.
			state := func() any { b := h.BMC(); return [...]any{h.Machine(), b.Access, b.Media, b.Logins, b.Log, b.Tasks} }
			before := state()
			w := call(t, newService(t, h), tt.who, tt.method, tt.path, tt.body, tt.header...)
			if w.Code != tt.status {
				t.Fatalf("%s; want %d", shape(tt.method, tt.path, tt.body, w), tt.status)
			}
			if before != state() {
				t.Error("a rejected request changed the host")
			}
			if challenged := w.Header().Get("WWW-Authenticate") != ""; challenged != (tt.status == 401) {
				t.Errorf("%d with WWW-Authenticate %q", w.Code, w.Header().Get("WWW-Authenticate"))
			}
			if allow := w.Header().Get("Allow"); tt.status == 405 && allow == "" {
				t.Error("405 without Allow")
			}
			if tt.keys == nil {
				return
			}
			keys, infos := errorOf(t, w)
			if diff := cmp.Diff(tt.keys, keys); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.args, infos[0].Args); tt.args != nil && diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if tt.related != "" && !cmp.Equal(infos[0].Related, []string{tt.related}) {
				t.Errorf("RelatedProperties = %q, want %s", infos[0].Related, tt.related)
			}
		})
	}
}

// TestUnauthenticatedResources shows statements A1 and A2.
func TestUnauthenticatedResources(t *testing.T) {
	s := newService(t, newHost(t))
	for path, want := range map[string]string{
		"/redfish": "", "/redfish/": "", "/redfish/v1": "", "/redfish/v1/": "", "/redfish/v1/odata": "", "/redfish/v1/?unknown=1": "",
		"/redfish/v1/$metadata": "application/xml;charset=utf-8",
	} {
		if want == "" {
			want = "application/json;charset=utf-8"
		}
		// A token that has expired must not lock anyone out of logging in.
		w := call(t, s, "", "GET", path, "", "X-Auth-Token", "stale", "Origin", "https://elsewhere.test")
		if got := w.Header().Get("Content-Type"); w.Code != 200 || got != want {
			t.Errorf("%s; want 200 and %s", shape("GET", path, "", w), want)
		}
		for _, name := range []string{"OData-Version", "Cache-Control", "ETag", "Allow", "Content-Length"} {
			if w.Header().Get(name) == "" {
				t.Errorf("GET %s: no %s", path, name)
			}
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != "https://bmc.test" {
			t.Errorf("Access-Control-Allow-Origin = %q", got)
		}
	}
	if got := call(t, s, "", "GET", "/redfish", "").Body.String(); got != `{"v1":"/redfish/v1/"}` {
		t.Errorf("GET /redfish = %s", got)
	}
	one, other := call(t, s, "", "GET", "/redfish/v1", "").Body.String(), call(t, s, "", "GET", "/redfish/v1/", "").Body.String()
	if one != other {
		t.Errorf("/redfish/v1 differs from /redfish/v1/:\n%s\n%s", one, other)
	}
}

func TestErrorMessageCountIsBounded(t *testing.T) {
	var body strings.Builder
	for i := range 5000 {
		body.WriteString(`,"` + strings.Repeat("x", i%40+1) + string(rune('a'+i%26)) + `":1`)
	}
	w := call(t, newService(t, newHost(t)), "admin", "PATCH", sys, "{"+body.String()[1:]+"}")
	keys, _ := errorOf(t, w)
	if len(keys) != resource.MaxMessages+1 || keys[resource.MaxMessages] != "MaximumErrorsExceeded" {
		t.Errorf("%d messages, the last %s", len(keys), keys[len(keys)-1])
	}
}

func TestErrorMessagesHideSecrets(t *testing.T) {
	s := newService(t, newHost(t))
	insert := sys + "/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
	for _, body := range []string{
		`{"Image":"http://a/b.iso","Password":["hush"]}`, `{"Image":"ftp://u:hush@a/b.iso"}`, `{"Image":"http://u:hush@[bad/b.iso"}`,
		`{"Image":"http://u:hush@a/b.iso","TransferProtocolType":"HTTPS"}`,
	} {
		w := call(t, s, "admin", "POST", insert, body)
		if w.Code != 400 || strings.Contains(w.Body.String(), "hush") {
			t.Errorf("%s", shape("POST", insert, body, w))
		}
	}
}
