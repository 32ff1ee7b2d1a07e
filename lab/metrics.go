package lab

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// metricsHandler returns a handler of the metrics of the lab, its agents and its controllers.
func (l *Lab) metricsHandler() http.Handler {
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "metalab_agents", Help: "Agents that run in servers."}, func() float64 { return float64(l.agents.count()) })
	all := prometheus.Gatherers{control.Registry(l.rack, running), prometheus.GathererFunc(l.controllerMetrics)}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{})
}

// controllerMetrics returns the metrics of the controllers of this lab and of
// controller-runtime, which are of the process.
func (l *Lab) controllerMetrics() ([]*dto.MetricFamily, error) {
	l.mu.Lock()
	local := l.metrics
	l.mu.Unlock()
	if local == nil {
		return nil, nil
	}
	shared := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := metrics.Registry.Gather()
		return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { // the lab has those of the process
			return strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_")
		}), err
	})
	return prometheus.Gatherers{local, shared}.Gather()
}

// count returns how many agents run.
func (a *agents) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.running)
}
