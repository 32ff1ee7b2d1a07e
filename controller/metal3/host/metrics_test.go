package host

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
)

// B-280: events of a host are counted by upstream's metrics.
func TestMetrics(t *testing.T) {
	b := newBench(t, 1, withImage)
	reg := b.withMetrics()
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

// withMetrics replaces the controller by one with metrics, and returns their registry.
func (b *bench) withMetrics() *prometheus.Registry {
	b.t.Helper()
	reg := prometheus.NewRegistry()
	c := b.r.Config
	c.Metrics = reg
	var err error
	if b.r, err = New(c); err != nil {
		b.t.Fatal(err)
	}
	return reg
}

// definitions is a registerer that records the names and labels of metrics.
type definitions map[string]string

var definition = regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: {([^}]*)}`)

func (d definitions) Register(c prometheus.Collector) error {
	all := make(chan *prometheus.Desc, 1)
	c.Describe(all)
	m := definition.FindStringSubmatch((<-all).String())
	d[m[1]] = m[2]
	return nil
}
func (d definitions) MustRegister(...prometheus.Collector) {}
func (d definitions) Unregister(prometheus.Collector) bool { return false }

// B-280: the names, labels and buckets of the metrics.
func TestDefinitionsOfMetrics(t *testing.T) {
	got := definitions{}
	if _, err := newMetrics(got); err != nil {
		t.Fatal(err)
	}
	const host = "host_namespace,host_name"
	want := definitions{
		"metal3_reconcile_total": host, "metal3_reconcile_error_total": host, "metal3_host_error_total": "error_type",
		"metal3_operation_power_change_total": host + ",on_off", "metal3_provisioning_state_change_total": "prev_state,new_state",
		"metal3_credentials_missing_total": host, "metal3_credentials_invalid_total": host, "metal3_credentials_unhandled_error_total": host,
		"metal3_credentials_updated_total": host, "metal3_credentials_no_management_access_total": host,
		"metal3_host_config_data_error_total": "host_data_type", "metal3_delayed__provisioning_total": host, "metal3_delayed__deprovisioning_total": host,
		"metal3_operation_register_duration_seconds": host, "metal3_operation_inspect_duration_seconds": host,
		"metal3_operation_provision_duration_seconds": host, "metal3_operation_deprovision_duration_seconds": host,
		"metal3_host_registration_required_total": "", "metal3_host_unmanaged_total": "", "metal3_delete_without_deprovisioning_total": "",
		"metal3_provisioner_not_ready_total": "", "metal3_delete_delayed_for_detached_total": "",
		"metal3_waiting_for_preprov_image_total": "", // upstream does not export it
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels by metric (-want +got):\n%s", diff)
	}

	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range m.durations { // independent of the order
		h.WithLabelValues("lab", hostName).Observe(1)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetMetric()[0].GetHistogram() == nil {
			continue
		}
		var bounds []float64
		for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
			bounds = append(bounds, b.GetUpperBound())
		}
		want := []float64{30, 90, 180, 360, 720, 1440}
		if f.GetName() == "metal3_operation_register_duration_seconds" {
			want = prometheus.DefBuckets
		}
		if !slices.Equal(bounds, want) {
			t.Errorf("%s: buckets %v, want %v", f.GetName(), bounds, want)
		}
	}
}

// B-280: each metric counts its events with their labels. TestHostWithoutASlotIsDelayed shows
// the metrics of delayed hosts, TestMetrics those of a host without errors.
func TestMetricsCountTheirEvents(t *testing.T) {
	const host = hostName + " lab"
	deleted := func(b *bench) {
		if err := b.kube.Delete(b.t.Context(), b.host()); err != nil {
			b.t.Fatal(err)
		}
	}
	secret := func(data map[string]string) func(*bench) {
		return func(b *bench) {
			var s corev1.Secret
			if err := b.kube.Get(b.t.Context(), client.ObjectKey{Namespace: "lab", Name: "secret"}, &s); err != nil {
				b.t.Fatal(err)
			}
			for k, v := range data { // independent of the order
				s.Data[k] = []byte(v)
			}
			if err := b.kube.Update(b.t.Context(), &s); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	// reading returns a change of the bench: the API fails to read objects of a type.
	reading := func(fails func(client.Object) bool) func(*bench) {
		return func(b *bench) {
			b.api = interceptor.NewClient(b.kube, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if fails(o) {
						return apierrors.NewInternalError(errors.New("no leader"))
					}
					return c.Get(ctx, k, o, opts...)
				},
			})
			b.replace()
		}
	}
	inState := func(s metal3.ProvisioningState) func(*bench) {
		return func(b *bench) { b.until(string(s), in(s)) }
	}
	for name, tt := range map[string]struct {
		host   func(*metal3.BareMetalHost)
		before func(*bench) // without metrics
		after  func(*bench) // with metrics; then 20 passes are made
		want   []string     // metrics with the values of their labels
	}{
		"no Secret": {
			func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "none" }, nil, nil,
			[]string{"metal3_credentials_missing_total " + host, "metal3_host_error_total registration error", "metal3_reconcile_total " + host},
		},
		"no password":    {nil, secret(map[string]string{"password": ""}), nil, []string{"metal3_credentials_invalid_total " + host}},
		"wrong password": {nil, secret(map[string]string{"password": "bad"}), nil, []string{"metal3_credentials_no_management_access_total " + host}},
		"another password": {nil, inState(metal3.StateAvailable), func(b *bench) {
			b.bmc.SetCredentials(bmc.Credentials{Username: "admin", Password: "new"})
			secret(map[string]string{"password": "new"})(b)
		}, []string{"metal3_credentials_updated_total " + host}},
		"Secret not readable": {nil, reading(func(o client.Object) bool { _, ok := o.(*corev1.Secret); return ok }), nil, []string{"metal3_credentials_unhandled_error_total " + host, "metal3_reconcile_error_total " + host}},
		"host not readable":   {nil, reading(func(o client.Object) bool { _, ok := o.(*metal3.BareMetalHost); return ok }), nil, []string{"metal3_reconcile_error_total " + host}},
		"no BMC":              {func(h *metal3.BareMetalHost) { h.Spec.BMC = metal3.BMCDetails{} }, nil, nil, []string{"metal3_host_unmanaged_total"}},
		"user data not there": {func(h *metal3.BareMetalHost) { withImage(h); h.Spec.MetaData = ref("m") }, func(b *bench) { b.secret("m", corev1.SecretTypeOpaque, map[string]string{"other": "x"}) }, inState(metal3.StateProvisioning), []string{"metal3_host_config_data_error_total metaData"}},
		"image not built":     {nil, nil, func(b *bench) { b.r.BuildPreprovisioningImage = true; inState(metal3.StateInspecting)(b) }, []string{"metal3_waiting_for_preprov_image_total"}},
		"never deprovisioned": {withImage, inState(metal3.StateProvisioned), func(b *bench) {
			b.answers[job.Clean] = job.Report{State: job.Failed, Error: "no disk"}
			deleted(b)
			b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
		}, []string{"metal3_delete_without_deprovisioning_total"}},
		"deleted and detached": {withImage, func(b *bench) {
			inState(metal3.StateProvisioned)(b)
			b.annotate(metal3.DetachedAnnotation, `{"deleteAction":"delay"}`)
			b.passes(5)
		}, deleted, []string{"metal3_delete_delayed_for_detached_total"}},
		"power": {withImage, inState(metal3.StateProvisioned), func(b *bench) {
			b.passes(5)
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = false })
			b.passes(10)
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = true })
		}, []string{"metal3_operation_power_change_total " + host + " on", "metal3_operation_power_change_total " + host + " off"}},
		"deprovisioned": {withImage, inState(metal3.StateProvisioned), func(b *bench) {
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
			inState(metal3.StateAvailable)(b)
		}, []string{
			"metal3_operation_deprovision_duration_seconds " + host, "metal3_provisioning_state_change_total deprovisioning provisioned",
			"metal3_provisioning_state_change_total available deprovisioning",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, tt.host)
			if tt.before != nil {
				tt.before(b)
			}
			reg := b.withMetrics()
			if tt.after != nil {
				tt.after(b)
			}
			for range 20 {
				_, _ = b.pass() // some fail, and are counted
			}
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			counted := map[string]float64{}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					key := []string{f.GetName()}
					for _, l := range m.GetLabel() { // sorted by name
						key = append(key, l.GetValue())
					}
					counted[strings.Join(key, " ")] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
			for _, want := range tt.want {
				if counted[want] == 0 {
					t.Errorf("%s is not counted: %v", want, counted)
				}
			}
		})
	}
}
