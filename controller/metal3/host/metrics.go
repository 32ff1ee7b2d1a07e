package host

import (
	"github.com/prometheus/client_golang/prometheus"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// metrics are the metrics of upstream's dashboards, with upstream's names (B-280).
type metrics struct {
	passes, failedPasses, errors, power, moves, required               *prometheus.CounterVec
	missing, invalid, updated, noAccess, unhandled                     *prometheus.CounterVec
	delayed, delayedEnds, notReady                                     *prometheus.CounterVec
	unmanaged, deletedWithoutDeprovisioning, deleteDelayed, configData *prometheus.CounterVec
	imageWaits                                                         *prometheus.CounterVec
	durations                                                          map[phase.State]*prometheus.HistogramVec
}

var (
	hostLabels = []string{"host_namespace", "host_name"}

	// operations lists the states with a duration metric. Buckets are in seconds;
	// nil means the library's default.
	operations = map[phase.State]struct {
		name    string
		buckets []float64
	}{
		metal3.StateRegistering:    {"register", nil},
		metal3.StateInspecting:     {"inspect", longBuckets},
		metal3.StateProvisioning:   {"provision", longBuckets},
		metal3.StateDeprovisioning: {"deprovision", longBuckets},
	}
	longBuckets = []float64{30, 90, 180, 360, 720, 1440}
)

// newMetrics creates the metrics and registers them, unless reg is nil.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	var all []prometheus.Collector
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "metal3_" + name + "_total", Help: help}, labels)
		all = append(all, c)
		return c
	}
	m := &metrics{
		passes:       count("reconcile", "Passes over a host.", hostLabels...),
		failedPasses: count("reconcile_error", "Passes that ended with an error that is not the host's.", hostLabels...),
		errors:       count("host_error", "Errors of hosts, by type.", "error_type"),
		power:        count("operation_power_change", "Changes of power.", "host_namespace", "host_name", "on_off"),
		moves:        count("provisioning_state_change", "Changes of the provisioning state.", "prev_state", "new_state"),
		required:     count("host_registration_required", "Registrations of hosts."),
		missing:      count("credentials_missing", "Secrets that were not there.", hostLabels...),
		invalid:      count("credentials_invalid", "BMC details that cannot be used.", hostLabels...),
		updated:      count("credentials_updated", "Credentials that are others than before.", hostLabels...),
		noAccess:     count("credentials_no_management_access", "BMCs that could not be worked with.", hostLabels...),
		// Never incremented: upstream waits for Ironic, which this process does not need.
		notReady:                     count("provisioner_not_ready", "Passes that had to wait for the provisioner."),
		unhandled:                    count("credentials_unhandled_error", "Secrets that could not be read, for another reason.", hostLabels...),
		delayed:                      count("delayed__provisioning", "Inspections and provisionings that had to wait for a place.", hostLabels...),
		delayedEnds:                  count("delayed__deprovisioning", "Deprovisionings that had to wait for a place.", hostLabels...),
		imageWaits:                   count("waiting_for_preprov_image", "Passes that found a pre-provisioning image not built yet."),
		unmanaged:                    count("host_unmanaged", "Hosts without BMC details."),
		deletedWithoutDeprovisioning: count("delete_without_deprovisioning", "Hosts that were deleted although they could not be deprovisioned."),
		deleteDelayed:                count("delete_delayed_for_detached", "Looks at hosts whose deletion waits until they are attached."),
		configData:                   count("host_config_data_error", "Secrets of configuration data without their key.", "host_data_type"),
		durations:                    map[phase.State]*prometheus.HistogramVec{},
	}
	for state, op := range operations { // independent of the order
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "metal3_operation_" + op.name + "_duration_seconds", Help: "How long an operation took.", Buckets: op.buckets,
		}, hostLabels)
		m.durations[state] = h
		all = append(all, h)
	}
	m.notReady.WithLabelValues() // so that it reads as 0
	if reg == nil {
		return m, nil
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// countDecision counts a recorded decision. from is the previous state.
func (m *metrics) countDecision(h *metal3.BareMetalHost, from phase.State, d phase.Decision) {
	if d.Fail != "" {
		m.errors.WithLabelValues(string(d.Fail)).Inc()
	}
	switch {
	case !d.Delay:
	case from == metal3.StateProvisioned || from == metal3.StateDeprovisioning || from == metal3.StateProvisioning: // the wait is for deprovisioning
		m.delayedEnds.WithLabelValues(h.Namespace, h.Name).Inc()
	default:
		m.delayed.WithLabelValues(h.Namespace, h.Name).Inc()
	}
	if !d.Moved {
		return
	}
	m.moves.WithLabelValues(string(from), string(d.To)).Inc()
	if op := h.OperationMetricForState(from); op != nil && m.durations[from] != nil && !op.Start.IsZero() {
		m.durations[from].WithLabelValues(h.Namespace, h.Name).Observe(op.Duration().Seconds())
	}
	switch {
	case d.To == metal3.StateUnmanaged:
		m.unmanaged.WithLabelValues().Inc()
	case d.To == metal3.StateRegistering:
		m.required.WithLabelValues().Inc()
	case d.Rule == phase.GaveUpDeprovisioning:
		m.deletedWithoutDeprovisioning.WithLabelValues().Inc()
	}
}
