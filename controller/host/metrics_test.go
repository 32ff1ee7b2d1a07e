package host

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
)

// B-280: events of a host are counted by upstream's metrics.
func TestMetrics(t *testing.T) {
	b := newBench(t, 1, withImage)
	reg := prometheus.NewRegistry()
	c := b.r.Config
	c.Metrics = reg
	var err error
	if b.r, err = New(c); err != nil {
		t.Fatal(err)
	}
	b.until("provisioned", in(metal3.StateProvisioned))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	b.passes(20)
	got := map[string]float64{}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"metal3_provisioning_state_change_total":        7, // to registering, inspecting, match profile, preparing, available, provisioning, provisioned
		"metal3_host_registration_required_total":       1,
		"metal3_operation_register_duration_seconds":    1,
		"metal3_operation_inspect_duration_seconds":     1,
		"metal3_operation_provision_duration_seconds":   1,
		"metal3_operation_deprovision_duration_seconds": 0,
		"metal3_reconcile_error_total":                  0,
		"metal3_provisioner_not_ready_total":            0,
		"metal3_host_error_total":                       0,
		"metal3_credentials_missing_total":              0,
		"metal3_credentials_no_management_access_total": 0,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"metal3_reconcile_total", "metal3_operation_power_change_total"} {
		if got[name] == 0 {
			t.Errorf("%s = 0", name)
		}
	}
}

func TestErrorsAreCountedByType(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "none" })
	reg := prometheus.NewRegistry()
	c := b.r.Config
	c.Metrics = reg
	var err error
	if b.r, err = New(c); err != nil {
		t.Fatal(err)
	}
	b.passes(5)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				seen[f.GetName()+" "+l.GetValue()] = m.GetCounter().GetValue() > 0
			}
		}
	}
	for _, want := range []string{"metal3_host_error_total registration error", "metal3_credentials_missing_total " + hostName} {
		if !seen[want] {
			t.Errorf("%s is not counted: %v", want, seen)
		}
	}
}
