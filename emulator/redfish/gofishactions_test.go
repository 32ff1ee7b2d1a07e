package redfish

import (
	"maps"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// on reads a resource with gofish and calls do with it.
func on[T any, PT schemas.GenericSchemaObjectPointer[T]](do func(*T) error) func(schemas.Client, string) error {
	return func(c schemas.Client, uri string) error {
		t, err := schemas.GetObject[T, PT](c, uri)
		if err != nil {
			return err
		}
		return do(t)
	}
}

// linkAsText marks parameters for which gofish 0.22 sends a URI where DSP2046 has a
// reference object.
const linkAsText = "ActionParameterValueTypeError"

// gofishActions lists the actions for which gofish has a method, with a call of it.
var gofishActions = map[string]struct {
	of  any // the method's receiver
	do  func(c schemas.Client, uri string) error
	bad string // part of the error response to an invalid request of gofish; "": gofish's request is valid
}{
	"Bios.ResetBios":      {&schemas.Bios{}, on(func(b *schemas.Bios) error { _, err := b.ResetBios(); return err }), ""},
	"Bios.ChangePassword": {&schemas.Bios{}, on(func(b *schemas.Bios) error { _, err := b.ChangePassword("n3w-Secret", "", "AdminPassword"); return err }), ""},
	"ComputerSystem.SetDefaultBootOrder": {&schemas.ComputerSystem{}, on(func(s *schemas.ComputerSystem) error {
		_, err := s.SetDefaultBootOrder()
		return err
	}), ""},
	"ComputerSystem.Reset": {&schemas.ComputerSystem{}, on(func(s *schemas.ComputerSystem) error {
		_, err := s.Reset(schemas.OnResetType)
		return err
	}), ""},
	"VirtualMedia.InsertMedia": {&schemas.VirtualMedia{}, on(func(m *schemas.VirtualMedia) error {
		_, err := m.InsertMedia(&schemas.VirtualMediaInsertMediaParameters{Image: "http://images.test/a.iso"})
		return err
	}), ""},
	"VirtualMedia.EjectMedia": {&schemas.VirtualMedia{}, on(func(m *schemas.VirtualMedia) error { _, err := m.EjectMedia(); return err }), ""},
	"LogService.ClearLog":     {&schemas.LogService{}, on(func(l *schemas.LogService) error { _, err := l.ClearLog(""); return err }), ""},
	"LogService.CollectDiagnosticData": {&schemas.LogService{}, on(func(l *schemas.LogService) error {
		_, _, err := l.CollectDiagnosticData(&schemas.LogServiceCollectDiagnosticDataParameters{DiagnosticDataType: schemas.ManagerLogDiagnosticDataTypes})
		return err
	}), ""},
	"ManagerAccount.ChangePassword": {&schemas.ManagerAccount{}, on(func(a *schemas.ManagerAccount) error {
		_, err := a.ChangePassword("another-Secret-1", accounts[0].Password)
		return err
	}), ""},
	"EventService.SubmitTestEvent": {&schemas.EventService{}, on(func(e *schemas.EventService) error {
		_, err := e.SubmitTestEvent(&schemas.EventServiceSubmitTestEventParameters{MessageID: "Base.1.22.Success", MessageSeverity: schemas.OKHealth})
		return err
	}), ""},
	"EventDestination.SuspendSubscription": {&schemas.EventDestination{}, on(func(d *schemas.EventDestination) error { _, err := d.SuspendSubscription(); return err }), ""},
	"EventDestination.ResumeSubscription":  {&schemas.EventDestination{}, on(func(d *schemas.EventDestination) error { _, err := d.ResumeSubscription("PT10S"); return err }), ""},
	"UpdateService.SimpleUpdate": {&schemas.UpdateService{}, on(func(u *schemas.UpdateService) error {
		_, err := u.SimpleUpdate(&schemas.UpdateServiceSimpleUpdateParameters{ImageURI: "http://images.test/bios.fw"})
		return err
	}), ""},
	"UpdateService.StartUpdate": {&schemas.UpdateService{}, on(func(u *schemas.UpdateService) error { _, err := u.StartUpdate(); return err }), ""},
	"Manager.Reset":             {&schemas.Manager{}, on(func(m *schemas.Manager) error { _, err := m.Reset(schemas.GracefulRestartResetType); return err }), ""},
	"Manager.ResetToDefaults": {&schemas.Manager{}, on(func(m *schemas.Manager) error {
		_, err := m.ResetToDefaults(schemas.PreserveNetworkAndUsersResetToDefaultsType)
		return err
	}), ""},
	"Control.ResetToDefaults": {&schemas.Control{}, on(func(c *schemas.Control) error { _, err := c.ResetToDefaults(); return err }), ""},
	"EnvironmentMetrics.ResetToDefaults": {&schemas.EnvironmentMetrics{}, on(func(e *schemas.EnvironmentMetrics) error {
		_, err := e.ResetToDefaults()
		return err
	}), ""},
	"SecureBoot.ResetKeys": {&schemas.SecureBoot{}, on(func(s *schemas.SecureBoot) error {
		_, err := s.ResetKeys(schemas.ResetAllKeysToDefaultResetKeysType)
		return err
	}), ""},
	"SecureBootDatabase.ResetKeys": {&schemas.SecureBootDatabase{}, on(func(s *schemas.SecureBootDatabase) error {
		_, err := s.ResetKeys(schemas.ResetAllKeysToDefaultSecureBootDatabaseResetKeysType)
		return err
	}), ""},
	"ComponentIntegrity.SPDMGetSignedMeasurements": {&schemas.ComponentIntegrity{}, on(func(i *schemas.ComponentIntegrity) error {
		_, err := i.SPDMGetSignedMeasurements([]int{1}, strings.Repeat("0f", 32), 0)
		return err
	}), ""},
	"TelemetryService.SubmitTestMetricReport": {&schemas.TelemetryService{}, on(func(s *schemas.TelemetryService) error {
		_, err := s.SubmitTestMetricReport([]schemas.MetricValue{}, "Test", "")
		return err
	}), "MetricReportValues"}, // gofish sends text for the older of the two arrays
	"CertificateService.GenerateCSR": {&schemas.CertificateService{}, on(func(s *schemas.CertificateService) error {
		_, err := s.GenerateCSR(&schemas.CertificateServiceGenerateCSRParameters{
			CommonName: "bmc.test", Country: "CH", City: "Bern", State: "Bern", Organization: "Lab", OrganizationalUnit: "Test",
			CertificateCollection: "/redfish/v1/Managers/1/NetworkProtocol/HTTPS/Certificates",
		})
		return err
	}), linkAsText},
	"CertificateService.ReplaceCertificate": {&schemas.CertificateService{}, on(func(s *schemas.CertificateService) error {
		_, err := s.ReplaceCertificate(&schemas.CertificateServiceReplaceCertificateParameters{
			CertificateURI: "/redfish/v1/Managers/1/NetworkProtocol/HTTPS/Certificates/1", CertificateString: "none", CertificateType: schemas.PEMCertificateType,
		})
		return err
	}), linkAsText},
	"EventService.TestEventSubscription": {&schemas.EventService{}, on(func(e *schemas.EventService) error { _, err := e.TestEventSubscription(); return err }), ""},
}

// elsewhere lists the actions that other tests invoke with gofish, or the reason why no
// test does.
var elsewhere = map[string]string{
	"Volume.Initialize":       "TestGofishManagesStorage",
	"Volume.CheckConsistency": "TestGofishManagesStorage",
	"Drive.SecureErase":       "TestGofishManagesStorage",
	"Drive.Reset":             "needs a drive whose power can be cut: TestGofishManagesStorage",
	"Storage.ResetToDefaults": "TestGofishManagesStorage",
	"Volume.ForceEnable":      "needs a volume that has failed: storage tests over HTTP",
	"Volume.ChangeRAIDLayout": "gofish 0.22 sends drives as text, where DSP2046 has links",
}

// TestEveryActionWithGofishMethodIsCovered fails for an action of the tree for which
// gofish has a method and gofishActions no row.
func TestEveryActionWithGofishMethodIsCovered(t *testing.T) {
	types := map[string]reflect.Type{}
	for name, a := range gofishActions {
		kind, _, _ := strings.Cut(name, ".")
		types[kind] = reflect.TypeOf(a.of)
	}
	offered := map[string]bool{}
	for _, r := range resource.Rows() {
		for i := range r.Actions {
			offered[r.Actions[i].Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(offered)) {
		kind, verb, _ := strings.Cut(name, ".")
		if _, known := gofishActions[name]; known || types[kind] == nil || elsewhere[name] != "" {
			continue
		}
		if _, has := types[kind].MethodByName(verb); has {
			t.Errorf("gofish has a method for %s, which is not tried", name)
		}
	}
	for name := range gofishActions {
		if !offered[name] {
			t.Errorf("no resource offers %s", name)
		}
	}
}

// TestGofishActions calls each of gofishActions on a new host.
func TestGofishActions(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(gofishActions)) {
		t.Run(name, func(t *testing.T) {
			for _, state := range states {
				h := newHost(t)
				state.make(t, h)
				s := newService(t, h)
				uri := offering(t, s, name)
				if uri == "" {
					continue
				}
				server := httptest.NewTLSServer(s)
				defer server.Close()
				c, err := gofish.ConnectContext(t.Context(), gofish.ClientConfig{
					Endpoint: server.URL, Username: "admin", Password: "adm-secret-1", HTTPClient: server.Client(), BasicAuth: true,
				})
				must(t, err)
				err = gofishActions[name].do(c, uri)
				if bad := gofishActions[name].bad; bad == "" && err != nil || bad != "" && (err == nil || !strings.Contains(err.Error(), bad)) {
					t.Errorf("%s of %s in state %s: %v, want %q", name, uri, state.name, err, bad)
				}
				return
			}
			t.Errorf("%s is offered in no state that is tried", name)
		})
	}
}

// offering returns the first resource that offers an action.
func offering(t *testing.T, s *Service, action string) string {
	t.Helper()
	seen := map[string]bool{"/redfish/v1/": true}
	for todo := []string{"/redfish/v1/"}; len(todo) > 0; todo = todo[1:] {
		body, _ := get(t, s, todo[0])
		if actions, ok := body["Actions"].(map[string]any); ok && actions["#"+action] != nil {
			return todo[0]
		}
		resources, _ := links(body)
		for _, uri := range resources {
			if uri, _, _ = strings.Cut(uri, "#"); !seen[uri] {
				seen[uri] = true
				todo = append(todo, uri)
			}
		}
	}
	return ""
}
