package redfish

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// states lists states of a host that clients may see.
var states = []struct {
	name string
	make func(t *testing.T, h *host)
}{
	{"off", func(*testing.T, *host) {}},
	{"post", func(t *testing.T, h *host) {
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.pass(10 * time.Second)
	}},
	{"halted, overridden", func(t *testing.T, h *host) {
		must(t, h.Apply(t.Context(), machine.SetOverride{Override: machine.Override{Enabled: machine.Continuous, Target: machine.Pxe, Mode: machine.Legacy}}))
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.pass(5 * time.Minute)
	}},
	{"running, all set", func(t *testing.T, h *host) {
		h.boots = true
		must(t, h.Apply(t.Context(), machine.Transaction{
			machine.SetAsset{Asset: machine.Asset{Tag: "a", ChassisTag: "b", HostName: "c", IndicatorLED: machine.IndicatorLit}},
			machine.SetHTTPBoot{URI: "http://images.test/x.efi"}, machine.SetRetry{Retry: machine.RetryAttempts, Attempts: 3},
			machine.SetLink{NIC: h.Machine().Identity.NICs[1].ID}, machine.SetSecureBoot{Enable: true},
			machine.SetWatchdog{Enabled: true, Action: machine.WatchdogReset, Warning: machine.WarnBySMI}, machine.OpenCover{Open: true},
			machine.SetBootOrder{Order: []string{"Boot0100", h.Machine().BootOptions()[0].ID}}, machine.SetBootOption{ID: "Boot0100"},
			machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.UefiBootNext, Mode: machine.UEFI, BootNext: "Boot0200", Path: "PciRoot(0x1)"}},
			machine.Reset{Kind: machine.ResetOn},
		}))
		h.pass(10 * time.Minute)
		must(t, h.Apply(t.Context(), machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.Diags, Mode: machine.UEFI}}))
	}},
	{"hot, and failing", func(t *testing.T, h *host) {
		h.boots = true
		hot, odd := 41.0, 13.4
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.pass(10 * time.Minute)
		must(t, h.Apply(t.Context(), machine.Transaction{
			machine.Thermal{Command: thermal.SetAmbient{Celsius: &hot}}, machine.Thermal{Command: thermal.FailFan{ID: "Fan2", Failed: true}},
			machine.Thermal{Command: thermal.FailFan{ID: "Fan3", Failed: true}}, machine.Thermal{Command: thermal.SetSupply{ID: "PSU2", Fault: thermal.Absent}},
			machine.Thermal{Command: thermal.Force{Sensor: "12V", Reading: &odd}}, machine.Thermal{Command: thermal.SetLimit{Watts: 400}},
		}))
		h.pass(10 * time.Minute)
	}},
	{"reporting", func(t *testing.T, h *host) {
		must(t, h.Apply(t.Context(), machine.Transaction{
			machine.SetMetricReportDefinition{MetricReportDefinition: machine.MetricReportDefinition{
				ID: "power", Name: "Power", Kind: machine.Periodic, Enabled: true, LogToCollection: true, Metrics: []string{"TotalPower", "CPU1Temp"}, Interval: machine.Duration{Duration: time.Minute},
			}},
			machine.SetMetricReportDefinition{MetricReportDefinition: machine.MetricReportDefinition{Name: "Heat", Kind: machine.OnChange, Enabled: true, LogToCollection: true, SendEvents: true, Metrics: []string{"InletTemp"}}},
			machine.Reset{Kind: machine.ResetOn},
		}))
		h.pass(10 * time.Minute)
	}},
	{"in the diagnostics", func(t *testing.T, h *host) {
		must(t, h.Apply(t.Context(), machine.SetOverride{Override: machine.Override{Enabled: machine.Once, Target: machine.Diags, Mode: machine.UEFI}}))
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.pass(10 * time.Minute)
	}},
	{"media and sessions", func(t *testing.T, h *host) {
		_, err := h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: "Cd", Image: "https://user:hidden-7@images.test/a/live.iso?x=1", User: "u", Password: "hidden-8"})
		must(t, err)
		for _, a := range accounts[:3] {
			_, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: a, Token: "hidden-9" + a.Name, From: "192.0.2.9"})
			must(t, err)
		}
	}},
	{"certificates", func(t *testing.T, h *host) {
		factory, err := h.FactoryCertificate()
		must(t, err)
		_, err = h.ApplyBMC(t.Context(), bmc.InstallHTTPS{Chain: [][]byte{factory.Chain[0], factory.Chain[0]}, Key: factory.Key})
		must(t, err)
		for _, store := range []bmc.StoreName{bmc.BootStore, bmc.MediaStore("Cd"), bmc.AccountStore("3")} {
			_, err := h.ApplyBMC(t.Context(), bmc.Trust{Store: store, Chain: factory.Chain})
			must(t, err)
		}
	}},
	{"accounts of all kinds", func(t *testing.T, h *host) {
		for _, c := range []bmc.Command{
			bmc.CreateRole{RoleSpec: bmc.RoleSpec{ID: "Guest", Privileges: []bmc.Privilege{bmc.PrivLogin}, OEM: []string{"OemSing"}}},
			bmc.CreateAccount{AccountChange: bmc.AccountChange{
				Name: new("guest"), Password: new("guest-secret-5"), Role: new(bmc.Role("Guest")), Types: &[]bmc.AccountType{}, ChangeRequired: new(true),
				Expires: new(h.now.Add(time.Hour)), PasswordExpires: new(h.now.Add(time.Minute)), StrictTypes: new(true),
			}},
			bmc.CreateBootstrapAccount{Name: "boot", Password: "hidden-10", Last: true},
			bmc.SetPolicy{Policy: bmc.Policy{
				MinPassword: 1, MaxPassword: 20, PasswordLifetime: 24 * time.Hour, LockoutThreshold: 1, LockForever: true, Basic: bmc.BasicUnadvertised,
				Lockdown: true, NoSessions: true, AbsoluteSessionTimeoutEnabled: true, AbsoluteSessionTimeout: time.Hour,
			}},
		} {
			_, err := h.ApplyBMC(t.Context(), c)
			must(t, err)
		}
		h.Login(bmc.Credentials{Name: "reader", Password: "wrong", To: bmc.ForRedfish})
	}},
	{"logs", func(t *testing.T, h *host) {
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.pass(time.Minute)
		_, err := h.ApplyBMC(t.Context(), bmc.CollectDump{Log: bmc.AuditLog})
		must(t, err)
		h.pass(time.Minute)
		_, err = h.ApplyBMC(t.Context(), bmc.SetZone{UTCOffset: -150, Name: "America/St_Johns"})
		must(t, err)
		_, err = h.ApplyBMC(t.Context(), bmc.ResolveEntry{Log: bmc.EventLog, ID: 1, Resolved: true})
		must(t, err)
	}},
	{"subscriptions", func(t *testing.T, h *host) {
		all := bmc.Filter{
			Registries: []string{"Base"}, NotRegistries: []string{"Power"}, Messages: []string{"Update.UpdateInProgress"}, NotMessages: []string{"Base.Success"},
			Types: []string{"Drive"}, Kinds: []string{"Alert"}, Severities: []string{"OK"}, Origins: []string{sys}, Subordinate: true,
		}
		for _, s := range []bmc.Subscription{
			{Destination: "https://user:hidden-1@hooks.test/a", Filter: all, IncludeOriginOfCondition: true, Heartbeat: time.Hour, Headers: []bmc.Header{{Name: "X-Key", Value: "hidden-2"}}},
			{Destination: "http://hooks.test/b", Retry: bmc.Suspend},
			{Stream: true, Destination: "redfish-sse://192.0.2.9:4711", Context: "c"},
		} {
			_, err := h.ApplyBMC(t.Context(), bmc.Subscribe{Subscription: s})
			must(t, err)
		}
		_, err := h.ApplyBMC(t.Context(), bmc.SetDelivery{Attempts: new(0)})
		must(t, err)
		_, err = h.ApplyBMC(t.Context(), bmc.DeliveryFailed{ID: "2"})
		must(t, err)
	}},
	{"settings and updates", func(t *testing.T, h *host) {
		do := func(c firmware.Command) { must(t, h.Apply(t.Context(), machine.Firmware{Command: c})) }
		do(setting("BootMode", "LegacyBios"))
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.pass(5 * time.Minute)
		c := setting("NumLock", "Off")
		c.When = firmware.When{Apply: firmware.InMaintenanceWindowOnReset, Start: h.now, Length: time.Hour}
		do(c)
		do(firmware.Stage{ID: "1", Image: nicImage, Keep: true})
		h.pass(time.Hour)
		do(firmware.Break{Component: "BIOS", Phase: firmware.Applying})
		do(firmware.Stage{ID: "2", Image: biosImage})
		h.pass(time.Hour)
		do(firmware.Break{Component: "Disk.0", Phase: firmware.Applying})
		do(firmware.Stage{ID: "3", Image: firmware.Image{Kind: "drive", Vendor: "ATA", Model: "METALAB SSD 480G", Version: "ML02"}})
		h.pass(time.Hour)
		do(firmware.ResetBIOS{})
		do(firmware.Stage{ID: "4", Image: biosImage, When: firmware.When{Apply: firmware.OnStartUpdateRequest}})
		h.pass(time.Hour)
	}},
	{"tasks", func(t *testing.T, h *host) {
		drive := &event.Subject{Part: event.Drive, ID: "Disk.0", In: h.Machine().Identity.Storage[0].ID}
		lost := &event.Subject{Part: event.Drive, ID: "Disk.99", In: drive.In}
		for _, end := range []bmc.CloseTask{{Made: drive}, {Made: lost}, {Fault: "something broke"}, {Cancelled: true}} {
			end.ID = begin(t, h, bmc.Request{Method: "POST", Target: sys, Body: `{"A":1}`})
			h.pass(10 * time.Second)
			closeJob(t, h, end)
		}
		begin(t, h, bmc.Request{Method: "PATCH", Target: sys})
		_, err := h.ApplyBMC(t.Context(), bmc.CancelTask{ID: begin(t, h, bmc.Request{Hidden: true})})
		must(t, err)
	}},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// links returns all @odata.id in a body, and the targets of its actions.
func links(value any) (resources, targets []string) {
	switch x := value.(type) {
	case []any:
		for _, y := range x {
			r, a := links(y)
			resources, targets = append(resources, r...), append(targets, a...)
		}
	case map[string]any:
		for name, y := range x {
			text, _ := y.(string)
			switch name {
			case "@odata.id", "@Redfish.ActionInfo":
				resources = append(resources, text)
			case "target":
				targets = append(targets, text)
			}
			r, a := links(y)
			resources, targets = append(resources, r...), append(targets, a...)
		}
	}
	return resources, targets
}

func TestEveryLinkLeadsToValidResource(t *testing.T) {
	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			h := newHost(t)
			state.make(t, h)
			s := newService(t, h)
			var check *schemaSet
			if _, err := openBundle(); err == nil {
				check = newSchemas(t)
			} else {
				t.Logf("bodies are not checked against DMTF's schemas: %v", err)
			}
			seen := walk(t, s, check)
			for _, r := range s.tree.Rows {
				reached := slices.ContainsFunc(seen, func(uri string) bool { return fits([]string{r.URI, r.URI + "/"}, uri) })
				if r.URI == "/redfish/v1/Managers/{manager}/NetworkProtocol/HTTPS/Certificates" { // NetworkProtocol links to it, if the tree has that
					reached = reached || !slices.ContainsFunc(s.tree.Rows, func(r resource.Row) bool { return strings.HasSuffix(r.URI, "/NetworkProtocol") })
				}
				if r.Schema != "" && !reached && !empty(h, &r) {
					t.Errorf("no link leads to %s", r.URI)
				}
			}
		})
	}
}

// empty reports whether a host has no resource of a row.
func empty(h *host, r *resource.Row) bool {
	at := resource.TakeSnapshot(h)
	var some func(vars []string, ids map[string]string) bool
	some = func(vars []string, ids map[string]string) bool {
		m := &resource.Match{Route: &resource.Route{Row: r}, IDs: ids}
		if len(vars) == 0 {
			return m.ConditionsHold(m.View(at))
		}
		return slices.ContainsFunc(resource.Members[vars[0]](m.View(at)), func(id string) bool {
			more := maps.Clone(ids)
			more[vars[0]] = id
			return some(vars[1:], more)
		})
	}
	return !some(resource.Variables(r.URI), map[string]string{})
}

// walk follows every link from the root, checks each resource, and returns the URIs.
func walk(t *testing.T, s *Service, check *schemaSet) []string {
	t.Helper()
	todo, seen := []string{"/redfish/v1/"}, []string{}
	bodies := map[string]map[string]any{}
	var fragments []string
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if uri, fragment, ok := strings.Cut(at, "#"); ok {
			fragments = append(fragments, fragment+" "+uri)
			at = uri
		}
		if slices.Contains(seen, at) {
			continue
		}
		seen = append(seen, at)
		body := visit(t, s, at, check)
		bodies[at] = body
		resources, targets := links(body)
		for _, target := range targets {
			if prefix := strings.TrimSuffix(at, "/") + "/Actions/"; !strings.HasPrefix(target, prefix) {
				t.Errorf("%s: action target %s, want %s…", at, target, prefix)
			}
			truthful(t, s, target, call(t, s, "admin", "OPTIONS", target, "").Header().Get("Allow"))
		}
		todo = append(todo, resources...)
	}
	if check != nil {
		checkTypes(t, s, &dialect.Record{}, seen, func(string, string) bool { return false })
	}
	for _, f := range fragments {
		pointer, uri, _ := strings.Cut(f, " ")
		var value any = bodies[uri]
		segments := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
		for _, segment := range segments {
			switch x := value.(type) {
			case map[string]any:
				value = x[segment]
			case []any:
				i, err := strconv.Atoi(segment)
				must(t, err)
				value = x[i]
			}
		}
		member, _ := value.(map[string]any)
		if member["MemberId"] != segments[len(segments)-1] {
			t.Errorf("%s#%s: MemberId = %v, want %s", uri, pointer, member["MemberId"], segments[len(segments)-1])
		}
	}
	return seen
}

// visit reads one resource and checks the rules for every resource.
func visit(t *testing.T, s *Service, uri string, check *schemaSet) map[string]any {
	t.Helper()
	w := call(t, s, "admin", "GET", uri, "")
	if w.Code != 200 {
		t.Errorf("%s", shape("GET", uri, "", w))
		return nil
	}
	for _, word := range []string{"hidden-", "-secret-"} {
		if strings.Contains(w.Body.String(), word) {
			t.Errorf("%s shows a secret:\n%s", uri, w.Body)
		}
	}
	var body map[string]any
	must(t, json.Unmarshal(w.Body.Bytes(), &body))
	if body["@odata.id"] != uri {
		t.Errorf("%s: @odata.id = %v", uri, body["@odata.id"])
	}
	odata, _ := body["@odata.type"].(string)
	schema := strings.TrimPrefix(odata[:strings.LastIndexByte(odata, '.')], "#")
	name := resource.TypeName(schema)
	last := uri[strings.LastIndexByte(uri, '/')+1:]
	if id, ok := body["Id"]; ok && id != last && uri != "/redfish/v1/" {
		t.Errorf("%s: Id = %v, want %s", uri, id, last)
	}
	if etag := w.Header().Get("ETag"); etag != body["@odata.etag"] {
		t.Errorf("%s: ETag %s, @odata.etag %v", uri, etag, body["@odata.etag"])
	}
	if want := "<" + resource.JSONSchema(schema) + ">; rel=describedby"; w.Header().Get("Link") != want {
		t.Errorf("%s: Link = %s, want %s", uri, w.Header().Get("Link"), want)
	}
	if check != nil && !strings.HasSuffix(uri, "/Capabilities") { // DSP0266 does not require values there
		check.check(t, uri, schema, w.Body.Bytes())
		// A settings resource is below the resource whose settings it has.
		if known := check.uris(t, name); len(known) > 0 && !fits(known, strings.TrimSuffix(uri, "/Settings")) {
			t.Errorf("%s: no address of a %s; want one of %q", uri, name, known)
		}
	}
	again := call(t, s, "admin", "GET", uri, "", "If-None-Match", w.Header().Get("ETag"))
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("unchanged, but %s", shape("GET", uri, "", again))
	}
	head := call(t, s, "admin", "HEAD", uri, "")
	if fmt.Sprint(head.Header()) != fmt.Sprint(w.Header()) || head.Body.Len() > 0 {
		t.Errorf("%s: HEAD differs from GET: %v, want %v", uri, head.Header(), w.Header())
	}
	truthful(t, s, uri, w.Header().Get("Allow"))
	return body
}

// fits reports whether a URI matches one of the patterns.
func fits(patterns []string, uri string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		is, address := strings.Split(p, "/"), strings.Split(uri, "/")
		return slices.EqualFunc(is, address, func(want, got string) bool {
			return want == got || strings.HasPrefix(want, "{") && got != ""
		})
	})
}

// truthful checks an Allow header: a method in it gets as far as the precondition, any
// other has the response 405.
func truthful(t *testing.T, s *Service, uri, allow string) {
	t.Helper()
	allowed := strings.Split(allow, ", ")
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
		want, body := http.StatusMethodNotAllowed, ""
		if method != "DELETE" {
			body = `{"Nothing":0}`
		}
		if slices.Contains(allowed, method) {
			want = http.StatusPreconditionFailed
		}
		if !slices.Contains(allowed, method) && slices.Contains(quietly(s, uri), method) {
			continue
		}
		w := call(t, s, "admin", method, uri, body, "If-Match", `"none"`)
		if w.Code != want || want == 405 && w.Header().Get("Allow") != allow {
			t.Errorf("Allow: %s, but %s", allow, shape(method, uri, body, w))
		}
	}
	if w := call(t, s, "admin", "OPTIONS", uri, ""); w.Code != 204 || w.Header().Get("Allow") != allow {
		t.Errorf("Allow: %s, but %s", allow, shape("OPTIONS", uri, "", w))
	}
}

// quietly returns the methods that a URI accepts but does not list in Allow.
func quietly(s *Service, uri string) []string {
	if m := s.tree.Find(&url.URL{Path: uri}); m != nil && m.Action == nil {
		return m.Unadvertised
	}
	return nil
}

func TestReadOnlyUserReadsAllButOthersAccounts(t *testing.T) {
	h := newHost(t)
	for _, state := range states {
		if state.name == "media and sessions" {
			state.make(t, h)
		}
	}
	s := newService(t, h)
	others := []string{"/redfish/v1/AccountService/Accounts/1", "/redfish/v1/AccountService/Accounts/2", "/redfish/v1/AccountService/Accounts/4", sessions + "/1", sessions + "/2"}
	for _, uri := range walk(t, s, nil) {
		want := http.StatusOK
		if slices.Contains(others, uri) || strings.Contains(uri+"/", "/Certificates/") && !strings.HasSuffix(uri, "ActionInfo") || strings.HasSuffix(uri, "/CertificateLocations") {
			want = http.StatusForbidden // only managers and users who configure the system may read certificates
		}
		if w := call(t, s, "reader", "GET", uri, ""); w.Code != want {
			t.Errorf("%s; want %d", shape("GET", uri, "", w), want)
		}
		if w := call(t, s, "", "GET", uri, ""); w.Code != http.StatusUnauthorized && uri != "/redfish/v1/" {
			t.Errorf("without login %s", shape("GET", uri, "", w))
		}
	}
}

func TestVirtualMediaSlotsAreListedOnce(t *testing.T) {
	s := newService(t, newHost(t))
	slots := 0
	for _, uri := range walk(t, s, nil) {
		if strings.Contains(uri, "/VirtualMedia/") && !strings.HasSuffix(uri, "ActionInfo") && !strings.HasSuffix(uri, "/Certificates") {
			slots++
		}
	}
	if want := len(newHost(t).d.BMC.Slots); slots != want {
		t.Errorf("the walk found %d slots, want %d", slots, want)
	}
}

func TestSchemaCheckFindsFaults(t *testing.T) {
	check := newSchemas(t)
	w := call(t, newService(t, newHost(t)), "admin", "GET", "/redfish/v1/Systems/1", "")
	for _, spoiled := range [][2]string{
		{`"@odata.id"`, `"Bogus":1,"@odata.id"`}, {`"PowerState":"Off"`, `"PowerState":"Maybe"`}, {`"UUID":"`, `"UUID":"x`},
		{`"Chassis":[{"@odata.id"`, `"Chassis":[{"Name":"x","@odata.id"`},
	} {
		body := strings.Replace(w.Body.String(), spoiled[0], spoiled[1], 1)
		probe := &recorder{TB: t}
		check.check(probe, "spoiled", "ComputerSystem.v1_27_0", []byte(body))
		if !probe.failed {
			t.Errorf("a body with %s passed", spoiled[1])
		}
	}
}

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
