package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// answerTo sends a BareMetalHost with these annotations to the webhook as an API server
// does, and returns its answer.
func answerTo(t *testing.T, annotations map[string]string) *admissionv1.AdmissionResponse {
	t.Helper()
	object, err := json.Marshal(map[string]any{"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
		"metadata": map[string]any{"name": "node-0", "annotations": annotations}})
	if err != nil {
		t.Fatal(err)
	}
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object}}}
	review.APIVersion, review.Kind = "admission.k8s.io/v1", "AdmissionReview"
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, Hosts.Path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	Handler().ServeHTTP(w, r)
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(w.Body).Decode(&answer); err != nil || answer.Response == nil || answer.Response.UID != "1" {
		t.Fatalf("the webhook answered %+v, %v", answer, err)
	}
	return answer.Response
}

// denialOf returns the message of the webhook's refusal of a BareMetalHost with these
// annotations, "" when the object is allowed.
func denialOf(t *testing.T, annotations map[string]string) string {
	t.Helper()
	answer := answerTo(t, annotations)
	if answer.Allowed {
		return ""
	}
	if answer.Result.Code != http.StatusForbidden {
		t.Errorf("code = %d, want 403", answer.Result.Code)
	}
	return answer.Result.Message
}

func TestInvalidAnnotationsAreDenied(t *testing.T) { // B-270
	const status, details = "baremetalhost.metal3.io/status", "inspect.metal3.io/hardwaredetails"
	for _, tt := range []struct {
		key, value, want string
	}{
		{"reboot.metal3.io", "", ""},
		{"reboot.metal3.io", `{"mode":"hard","force":true}`, ""},
		{"reboot.metal3.io/me", `{"mode":"soft"}`, ""},
		{"reboot.metal3.io", "now", "failed to unmarshal the data from the reboot.metal3.io annotation: "},
		{"reboot.metal3.io/me", `{"mode":"hard"`, "failed to unmarshal the data from the reboot.metal3.io annotation: "},
		{"reboot.metal3.io", `{"mode":"kind"}`, `invalid mode in the reboot.metal3.io annotation, allowed are "hard", "soft" or ""`},
		{"reboot.metal3.iota", "now", ""},
		{status, "", ""},
		{status, `{"operationalStatus":"OK","provisioning":{"state":"available","ID":"1","image":{"url":""}}}`, ""},
		{status, `{"operationalStatus":"servicing","errorType":"detach error"}`, ""},
		{status, `{"operationalStatus":"error","errorType":"servicing error"}`, ""},
		{status, "fine", "error decoding status annotation: "},
		{status, `{"mood":"fine"}`, ""},
		{status, `{"poweredOn":"yes"}`, "error decoding status annotation: json: cannot unmarshal string"},
		{status, `{"operationalStatus":"fine"}`, "invalid operationalStatus 'fine' in the baremetalhost.metal3.io/status annotation"},
		{status, `{"errorType":"bad mood"}`, "invalid errorType 'bad mood' in the baremetalhost.metal3.io/status annotation"},
		{details, `{"cpu":{"arch":"x86_64"}}`, ""},
		{details, `{"gpu":1}`, ""},
		{details, `{"hostname":1}`, "error decoding the inspect.metal3.io/hardwaredetails annotation: json: cannot unmarshal number"},
	} {
		got := denialOf(t, map[string]string{tt.key: tt.value})
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %s is refused with %q, want %q", tt.key, tt.value, got, tt.want)
		}
	}
}

// A status and hardware details of a later release are taken, with a warning that names
// the fields that this release does not know: the controller ignores them (B-99, B-100).
func TestAnnotationsOfALaterReleaseAreTakenWithAWarning(t *testing.T) {
	const status, details = "baremetalhost.metal3.io/status", "inspect.metal3.io/hardwaredetails"
	later, err := os.ReadFile("../metal3/host/testdata/status-of-a-later-release.json")
	if err != nil {
		t.Fatal(err)
	}
	answer := answerTo(t, map[string]string{status: string(later), details: `{"gpu":1,"cpu":{"arch":"x86_64","sockets":2}}`})
	if !answer.Allowed {
		t.Fatalf("refused with %q", answer.Result.Message)
	}
	if len(answer.Warnings) != 2 {
		t.Fatalf("warnings %q, want one per annotation", answer.Warnings)
	}
	for i, fields := range [][]string{
		{status, `"healthReport"`, `"provisioning.attempts"`},
		{details, `"gpu"`, `"cpu.sockets"`},
	} {
		for _, field := range fields {
			if !strings.Contains(answer.Warnings[i], field) {
				t.Errorf("the warning %q does not name %s", answer.Warnings[i], field)
			}
		}
		if _, err := utilnet.NewWarningHeader(299, "-", answer.Warnings[i]); err != nil {
			t.Errorf("the API drops the warning %q: %v", answer.Warnings[i], err)
		}
	}
	if answer := answerTo(t, map[string]string{details: `{"hostname":"x"}`}); len(answer.Warnings) > 0 {
		t.Errorf("known fields are warned of: %q", answer.Warnings)
	}
}

func TestDenialListsEveryInvalidAnnotation(t *testing.T) {
	got := denialOf(t, map[string]string{"reboot.metal3.io": `{"mode":"kind"}`, "baremetalhost.metal3.io/status": `{"errorType":"bad mood"}`})
	want := `[invalid errorType 'bad mood' in the baremetalhost.metal3.io/status annotation, ` +
		`invalid mode in the reboot.metal3.io annotation, allowed are "hard", "soft" or ""]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused with (-want +got):\n%s", diff)
	}
}

// A controller that restarts at another address replaces the registered URL.
func TestRegisterReplacesTheURL(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := registrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	for _, base := range []string{"https://127.0.0.1:1", "https://127.0.0.1:2"} {
		if err := Register(t.Context(), c, Hosts, base, "PEM"); err != nil {
			t.Fatal(err)
		}
		var got registrationv1.ValidatingWebhookConfiguration
		if err := c.Get(t.Context(), client.ObjectKey{Name: "metalab-baremetalhost"}, &got); err != nil {
			t.Fatal(err)
		}
		if got := got.Webhooks[0].ClientConfig; *got.URL != base+Hosts.Path || string(got.CABundle) != "PEM" {
			t.Errorf("clientConfig = %+v after Register(%s)", got, base)
		}
	}
}
