package lab

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// names matches the names of metrics in the queries of the dashboard and of the alerts.
var names = regexp.MustCompile(`\b(metalab|metal3|controller_runtime|workqueue|process)_[a-z0-9_]+`)

// metricsOf returns the names of the metrics of a registry, with and without samples.
func metricsOf(t *testing.T, collector any) (out []string) {
	t.Helper()
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		collector.(prometheus.Collector).Describe(ch)
	}()
	fqName := regexp.MustCompile(`fqName: "([^"]+)"`)
	for d := range ch {
		out = append(out, fqName.FindStringSubmatch(d.String())[1])
	}
	return out
}

// Each metric of the dashboard and of the alerts is one that a lab or lab-controller exports.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	s := DefaultSettings()
	s.Hosts, s.Speed = 1, "max"
	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: s, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	exist := map[string]bool{}
	for _, r := range []any{w.metrics, metrics.Registry} {
		for _, name := range metricsOf(t, r) {
			exist[name] = true
		}
	}
	resp, err := http.Get(w.page + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /metrics = %d, %v: %.500s", resp.StatusCode, err, body)
	}
	for line := range strings.SplitSeq(string(body), "\n") {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			exist[strings.Fields(name)[0]] = true
		}
	}
	for _, want := range []string{"metalab_agents", "metalab_controller_hosts", "controller_runtime_active_workers"} {
		if !exist[want] {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	// Metrics without samples are not served: the lab's.
	for _, name := range []string{"metalab_bmc_requests_total", "metalab_redfish_request_seconds", "metalab_ipmi_commands_total", "metalab_fault_hits_total"} {
		exist[name] = true
	}
	for _, file := range []string{"dashboard.json", "alerts.yaml"} {
		b, err := os.ReadFile(filepath.Join("..", "controller", "config", "monitoring", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names.FindAllString(string(b), -1) {
			base := strings.TrimSuffix(name, "_bucket")
			if !exist[name] && !exist[base] {
				t.Errorf("%s names %s, which nobody exports", file, name)
			}
		}
	}
}
