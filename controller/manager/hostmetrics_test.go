package manager

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
)

func TestHostStatesAreCountedAndTimed(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC))
	s := newHostStates(clock)
	host := func(uid types.UID, state metal3.ProvisioningState) *metal3.BareMetalHost {
		h := new(metal3.BareMetalHost)
		h.UID, h.Status.Provisioning.State = uid, state
		return h
	}
	s.set(host("a", metal3.StateAvailable), false) // it was there before
	s.set(host("b", metal3.StateRegistering), true)
	clock.SetTime(clock.Now().Add(20 * time.Second))
	s.set(host("b", metal3.StateRegistering), true) // another change of it
	clock.SetTime(clock.Now().Add(5 * time.Second))
	s.set(host("a", metal3.StateProvisioning), true)
	s.set(host("b", metal3.StateInspecting), true)
	clock.SetTime(clock.Now().Add(50 * time.Second))
	s.remove(toolscache.DeletedFinalStateUnknown{Obj: host("a", metal3.StateProvisioning)})
	s.remove(host("a", metal3.StateProvisioning))
	want := `# HELP metalab_controller_hosts BareMetalHosts by provisioning state.
# TYPE metalab_controller_hosts gauge
metalab_controller_hosts{state="available"} 0
metalab_controller_hosts{state="inspecting"} 1
metalab_controller_hosts{state="provisioning"} 0
metalab_controller_hosts{state="registering"} 0
`
	if err := testutil.CollectAndCompare(s.hosts, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	for _, line := range []string{
		`metalab_controller_host_state_seconds_sum{state="registering"} 25`, `metalab_controller_host_state_seconds_sum{state="provisioning"} 50`,
	} {
		text, err := testutil.CollectAndFormat(s.took, expfmt.TypeTextPlain, "metalab_controller_host_state_seconds")
		if err != nil || !strings.Contains(string(text), line) || strings.Contains(string(text), "available") {
			t.Errorf("metrics lack %s or time a state whose begin was not seen: %v\n%s", line, err, text)
		}
	}
}

// answers is a transport that answers with a status.
type answers int

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a == 0 {
		return nil, errors.New("no answer")
	}
	return &http.Response{StatusCode: int(a)}, nil
}

func TestAPIWritesAreCountedByObject(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		answer       answers
		want         [4]string
	}{
		{"PATCH", "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts/node-0/status", 200, [4]string{"PATCH", "baremetalhosts.metal3.io", "status", "200"}},
		{"POST", "/apis/metal3.io/v1alpha1/namespaces/default/hardwaredata", 409, [4]string{"POST", "hardwaredata.metal3.io", "", "409"}},
		{"PUT", "/api/v1/namespaces/default/secrets/a", 0, [4]string{"PUT", "secrets", "", "0"}},
		{"POST", "/api/v1/namespaces", 201, [4]string{"POST", "namespaces", "", "201"}},
		{"PUT", "/api/v1/namespaces/lab/finalize", 200, [4]string{"PUT", "namespaces", "finalize", "200"}},
		{"DELETE", "/api/v1/nodes/n", 200, [4]string{"DELETE", "nodes", "", "200"}},
		{"POST", "/version", 405, [4]string{"POST", "other", "", "405"}},
	} {
		a := newAPIWrites()
		for _, method := range []string{tt.method, http.MethodGet} {
			resp, err := a.wrap(tt.answer).RoundTrip(httptest.NewRequest(method, tt.path, nil))
			if (err != nil) != (tt.answer == 0) {
				t.Errorf("%s %s = %v", method, tt.path, err)
			}
			if resp != nil && resp.StatusCode != int(tt.answer) {
				t.Errorf("%s %s = %d, want %d", method, tt.path, resp.StatusCode, tt.answer)
			}
		}
		if got := testutil.ToFloat64(a.count.WithLabelValues(tt.want[:]...)); got != 1 || testutil.CollectAndCount(a.count) != 1 {
			t.Errorf("%s %s: %v is %v, want 1 alone", tt.method, tt.path, tt.want, got)
		}
	}
}
