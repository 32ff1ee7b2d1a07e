package capture_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/capture"
)

// secrets are values that must not leave a server, by what they are.
var secrets = map[string]string{
	"serial":   "SGH123X9QW",
	"tag":      "7KQ2Z93",
	"uuid":     "4c4c4544-004b-5110-8032-b7c04f5a3933",
	"mac":      "b8:2a:72:de:ad:01",
	"dashed":   "b8-2a-72-de-ad-02",
	"wwn":      "5002538e40a1b2c3",
	"ip":       "10.47.11.8",
	"gateway":  "10.47.11.1",
	"ip6":      "fd12:3456:789a:1::8",
	"host":     "db-prod-17",
	"domain":   "corp.internal.example",
	"asset":    "FIN-00421",
	"licence":  "ABCD-1234-EFGH-5678",
	"user":     "jane.doe",
	"email":    "jane.doe@corp.internal.example",
	"password": "hunter2-hunter2",
	"cert":     "-----BEGIN CERTIFICATE-----\nMIIBsecret\n-----END CERTIFICATE-----",
	"iqn":      "iqn.1998-01.com.vendor:host17",
	"bare":     "B82A72DEAD01",            // the MAC address
	"dashes":   "50-02-53-8E-40-A1-B2-C3", // the world wide name
	"hex":      "0x5002538e40a1b2c3",
}

func pages() map[string]any {
	type o = map[string]any
	ref := func(at string) o { return o{"@odata.id": at} }
	s := secrets
	return map[string]any{
		"/redfish/v1": o{
			"@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_11_0.ServiceRoot", "Name": "Root", "UUID": s["uuid"], "RedfishVersion": "1.11.0",
			"Systems": ref("/redfish/v1/Systems"), "Managers": ref("/redfish/v1/Managers"),
		},
		"/redfish/v1/Systems": o{
			"@odata.id": "/redfish/v1/Systems", "@odata.type": "#ComputerSystemCollection.ComputerSystemCollection",
			"Members": []any{ref("/redfish/v1/Systems/" + s["serial"])},
		},
		"/redfish/v1/Systems/" + s["serial"]: o{
			"@odata.id": "/redfish/v1/Systems/" + s["serial"], "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem", "Name": "System " + s["serial"],
			"Manufacturer": "Dell Inc.", "Model": "PowerEdge R750", "SKU": s["tag"], "SerialNumber": s["serial"], "UUID": strings.ToUpper(s["uuid"]),
			"HostName": s["host"], "AssetTag": s["asset"], "BiosVersion": "1.2.3.4", "PartNumber": "0J2XYZ",
			"Description": "Host " + s["host"] + "." + s["domain"] + " at " + s["ip6"],
			"Oem": o{"Dell": o{
				"ServiceTag": s["tag"], "LicenseKey": s["licence"], "Owner": s["user"], "AdminEmail": s["email"],
				"Attributes": []any{o{"Name": "SNMP.1.CommunityName", "Value": "public-of-us"}, o{"Name": "NIC.1.MACAddress", "Value": s["dashed"]}},
			}},
			"Bios": ref("/redfish/v1/Systems/" + s["serial"] + "/Bios"),
		},
		"/redfish/v1/Systems/" + s["serial"] + "/Bios": o{
			"@odata.id": "/redfish/v1/Systems/" + s["serial"] + "/Bios", "@odata.type": "#Bios.v1_1_0.Bios",
			"Attributes": o{"SystemServiceTag": s["tag"], "AssetTag": s["asset"], "IscsiInitiatorName": s["iqn"], "SetupPassword": s["password"], "BootMode": "Uefi"},
		},
		"/redfish/v1/Managers": o{
			"@odata.id": "/redfish/v1/Managers", "@odata.type": "#ManagerCollection.ManagerCollection",
			"Members": []any{ref("/redfish/v1/Managers/1")},
		},
		"/redfish/v1/Managers/1": o{
			"@odata.id": "/redfish/v1/Managers/1", "@odata.type": "#Manager.v1_9_0.Manager", "Name": "Manager", "FirmwareVersion": "7.0.30.10",
			"EthernetInterfaces": o{"@odata.id": "/redfish/v1/Managers/1/EthernetInterfaces"},
			"LogServices":        ref("/redfish/v1/Managers/1/Entries"), "Certificates": ref("/redfish/v1/Managers/1/Certificates"),
			"Elsewhere": ref("https://203.0.113.9/redfish/v1/Trap"), "Up": ref("/redfish/v1/../../secret"),
		},
		"/redfish/v1/Managers/1/EthernetInterfaces": o{
			"@odata.id": "/redfish/v1/Managers/1/EthernetInterfaces", "@odata.type": "#EthernetInterface.v1_5_0.EthernetInterface",
			"MACAddress": s["mac"], "PermanentMACAddress": strings.ToUpper(s["mac"]), "FQDN": s["host"] + "." + s["domain"], "HostName": s["host"],
			"IPv4Addresses": []any{o{"Address": s["ip"], "SubnetMask": "255.255.255.0", "Gateway": s["gateway"]}},
			"IPv6Addresses": []any{o{"Address": s["ip6"]}}, "NameServers": []any{s["gateway"]},
			"Identifiers": []any{o{"DurableName": s["wwn"], "DurableNameFormat": "NAA"}}, "Note": "reach " + s["ip"] + ":443",
			"UefiDevicePath": "PciRoot(0x3B)/MAC(" + s["bare"] + ",0x1)/NVMe(0x1," + s["dashes"] + ")/SAS(" + s["hex"] + ",0x0)",
		},
		"/redfish/v1/Managers/1/Entries": o{
			"@odata.id": "/redfish/v1/Managers/1/Entries", "@odata.type": "#LogEntryCollection.LogEntryCollection",
			"Members": []any{ref("/redfish/v1/Managers/1/Entries/1")},
		},
		"/redfish/v1/Managers/1/Certificates": o{
			"@odata.id": "/redfish/v1/Managers/1/Certificates", "@odata.type": "#CertificateCollection.CertificateCollection",
			"Members": []any{ref("/redfish/v1/Managers/1/Certificates/1")}, "Inline": o{"CertificateString": s["cert"]},
		},
	}
}

// bmc serves resources and records the requests.
type bmc struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	most  atomic.Int32
	busy  atomic.Int32
	now   atomic.Int32
}

func serve(t *testing.T, all map[string]any) *bmc {
	b := &bmc{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := b.now.Add(1); n > b.most.Load() {
			b.most.Store(n)
		}
		defer b.now.Add(-1)
		b.mu.Lock()
		b.asked = append(b.asked, r.Method+" "+r.URL.Path)
		b.mu.Unlock()
		if b.busy.Add(-1) >= 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if _, password, _ := r.BasicAuth(); password != "pass" && r.URL.Path != "/redfish/v1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, ok := all[strings.TrimRight(r.URL.Path, "/")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error": {"code": "iLO.0.10.ExtendedInfo", "message": "x", "@Message.ExtendedInfo": [{"MessageId": "Base.1.4.X"}]}}`)
			return
		}
		w.Header().Set("ETag", `W/"1"`)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(b.Close)
	return b
}

func take(t *testing.T, b *bmc, c capture.Config) *capture.Capture {
	t.Helper()
	c.URL, c.Username, c.Password = b.URL, "u", "pass"
	got, err := capture.Take(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCaptureHasAllLinkedResources(t *testing.T) {
	b := serve(t, pages())
	b.busy.Store(2)
	got := take(t, b, capture.Config{Parallel: 4})
	if d := cmp.Diff(slices.Sorted(maps.Keys(pages())), slices.Sorted(maps.Keys(got.Resources))); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	for _, q := range b.asked {
		if !strings.HasPrefix(q, "GET /redfish/v1") {
			t.Errorf("it sent %s", q)
		}
		if strings.HasSuffix(q, "/Entries/1") || strings.HasSuffix(q, "/Certificates/1") {
			t.Errorf("it read %s", q)
		}
	}
	if b.most.Load() > 4 {
		t.Errorf("%d requests at once", b.most.Load())
	}
	want := capture.Behavior{
		ETag: capture.WeakETag, Error: capture.ErrorForm{Status: 404, Code: "iLO.0.10.ExtendedInfo", IDsOnly: true},
		Queries: map[string]string{"$select": "ignored", "$top": "ignored", "$filter": "ignored", "$expand": "ignored", "only": "ignored", "$nonsense": "ignored"},
	}
	if d := cmp.Diff(want, got.Habits); d != "" {
		t.Errorf("habits (-want +got):\n%s", d)
	}
}

// TestScrubRemovesSecrets shows statement E19.
func TestScrubRemovesSecrets(t *testing.T) {
	got := take(t, serve(t, pages()), capture.Config{})
	before, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	got.Scrub()
	after, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	low := strings.ToLower(string(after))
	for name, s := range secrets {
		if !strings.Contains(strings.ToLower(string(before)), strings.ToLower(strings.Split(s, "\n")[0])) {
			t.Fatalf("the BMC has no %s", name)
		}
		for _, part := range strings.Split(s, "\n") {
			if strings.Contains(low, strings.ToLower(part)) {
				t.Errorf("%s is still there: %q", name, part)
			}
		}
	}
	if strings.Contains(low, "public-of-us") {
		t.Error("the community is still there")
	}
	// Equal values have equal placeholders, and the model's values stay.
	var system map[string]any
	at := got.OfType("ComputerSystem")[0]
	system = got.Resources[at]
	if system["SerialNumber"] == "" || !strings.HasSuffix(at, "/"+system["SerialNumber"].(string)) || system["@odata.id"] != at {
		t.Errorf("the serial number is %v in the resource, and at %s", system["SerialNumber"], at)
	}
	root := got.Resources["/redfish/v1"]
	if root["UUID"] != system["UUID"] {
		t.Errorf("the UUID is %v and %v", root["UUID"], system["UUID"])
	}
	bios := got.Resources[got.Link(at, "Bios")]["Attributes"].(map[string]any)
	oem := system["Oem"].(map[string]any)["Dell"].(map[string]any)
	if bios["SystemServiceTag"] != system["SKU"] || oem["ServiceTag"] != system["SKU"] {
		t.Errorf("the service tag is %v, %v and %v", bios["SystemServiceTag"], system["SKU"], oem["ServiceTag"])
	}
	for name, want := range map[string]any{"BiosVersion": "1.2.3.4", "Model": "PowerEdge R750", "PartNumber": "0J2XYZ"} {
		if system[name] != want {
			t.Errorf("%s = %v, want %v", name, system[name], want)
		}
	}
	if m := got.Resources["/redfish/v1/Managers/1"]; m["FirmwareVersion"] != "7.0.30.10" {
		t.Errorf("FirmwareVersion = %v", m["FirmwareVersion"])
	}
	if bios["BootMode"] != "Uefi" {
		t.Errorf("BootMode = %v", bios["BootMode"])
	}
}

func TestCaptureIsBounded(t *testing.T) {
	all := pages()
	b := serve(t, all)
	if got := take(t, b, capture.Config{MaxRequests: 3}); got.Incomplete == "" || len(b.asked) > 3 {
		t.Errorf("%d requests were sent, cut is %q", len(b.asked), got.Incomplete)
	}
	b = serve(t, all)
	_, err := capture.Take(t.Context(), capture.Config{URL: b.URL, Username: "u", Password: "wrong"})
	if !errors.Is(err, capture.ErrLogin) || len(b.asked) != 2 { // the root is open
		t.Errorf("a wrong password: %v after %d requests", err, len(b.asked))
	}
	for _, c := range []capture.Config{{URL: "bmc"}, {URL: b.URL, Parallel: 9}, {URL: b.URL, MaxRequests: -1}, {URL: b.URL, MaxRequests: 1 << 30}} {
		if _, err := capture.Take(t.Context(), c); err == nil {
			t.Errorf("Take(%+v) = nil error", c)
		}
	}
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer stuck.Close()
	if _, err := capture.Take(t.Context(), capture.Config{URL: stuck.URL, RequestTimeout: 20 * time.Millisecond}); err == nil {
		t.Error("a BMC that never answers: nil error")
	}
}

// A certificate that nobody trusts is an error that names the flags that help.
func TestUntrustedCertificateNamesItsFlags(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // drops the errors of the handshakes
	s.StartTLS()
	defer s.Close()
	_, err := capture.Take(t.Context(), capture.Config{URL: s.URL})
	for _, want := range []string{"certificate", "--ca", "--insecure"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Take() error = %v, want one with %s", err, want)
		}
	}
	if _, err := capture.Take(t.Context(), capture.Config{URL: s.URL, Insecure: true}); err != nil {
		t.Errorf("Take() error = %v with Insecure", err)
	}
}

// The last page of some services links to one that was read before.
func TestPagesOfACollectionAreJoined(t *testing.T) {
	for _, last := range []string{"", "/redfish/v1/More", "/redfish/v1/Managers", "/redfish/v1/Most"} {
		all := pages()
		m := all["/redfish/v1/Managers"].(map[string]any)
		m["Members@odata.nextLink"] = "/redfish/v1/More"
		all["/redfish/v1/More"] = map[string]any{
			"Members":                []any{map[string]any{"@odata.id": "/redfish/v1/Managers/2"}},
			"Members@odata.nextLink": "/redfish/v1/Most",
		}
		all["/redfish/v1/Most"] = map[string]any{
			"Members": []any{map[string]any{"@odata.id": "/redfish/v1/Managers/3"}}, "Members@odata.nextLink": last,
		}
		for _, id := range []string{"2", "3"} {
			all["/redfish/v1/Managers/"+id] = map[string]any{"@odata.type": "#Manager.v1_9_0.Manager"}
		}
		got := take(t, serve(t, all), capture.Config{MaxRequests: 100})
		want := []string{"/redfish/v1/Managers/1", "/redfish/v1/Managers/2", "/redfish/v1/Managers/3"}
		if d := cmp.Diff(want, got.Members("/redfish/v1/Managers")); d != "" || got.Incomplete != "" {
			t.Errorf("the last page links to %q: incomplete %q, members (-want +got):\n%s", last, got.Incomplete, d)
		}
	}
}
