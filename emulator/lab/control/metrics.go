package control

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/metalab-dev/metalab/emulator/lab"
)

// Metrics returns a handler for Prometheus. Labels are bounded: hosts beyond the
// first thousand are counted together, without a name.
func Metrics(l *lab.Lab) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{l}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// collector reads the lab when Prometheus asks.
type collector struct{ lab *lab.Lab }

func describeMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("metalab_"+name, help, labels, nil)
}

var (
	requests  = describeMetric("redfish_requests_total", "Requests that BMCs have answered; status 0 is no answer.", "bmc", "method", "status")
	received  = describeMetric("redfish_received_bytes_total", "Bytes of the bodies of requests.", "bmc", "method", "status")
	sent      = describeMetric("redfish_sent_bytes_total", "Bytes of the bodies of answers.", "bmc", "method", "status")
	durations = describeMetric("redfish_request_seconds", "How long answers took, of the lab's time.", "method")
	hosts     = describeMetric("hosts", "Servers by power state.", "power")
	offline   = describeMetric("bmcs_offline", "BMCs that are not on the network: a fault keeps them from it, or they restart.")
	sessions  = describeMetric("redfish_sessions", "Sessions that are open, of all BMCs.")
	tasks     = describeMetric("redfish_tasks_running", "Tasks that have not ended, of all BMCs.")
	hits      = describeMetric("fault_hits_total", "How often a fault has hit.", "rule")
	waiting   = describeMetric("redfish_delayed", "Answers that a fault delays now.")
	dropped   = describeMetric("journal_dropped_total", "Entries that the journal no longer has.")
	labTime   = describeMetric("time_seconds", "The lab's time, since 1970.")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, received, sent, durations, hosts, offline, sessions, tasks, hits, waiting, dropped, labTime} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, t := range c.lab.Traffic() {
		status := strconv.Itoa(t.Status)
		count(requests, float64(t.Requests), t.Host, t.Method, status)
		count(received, float64(t.In), t.Host, t.Method, status)
		count(sent, float64(t.Out), t.Host, t.Method, status)
	}
	for _, t := range c.lab.Latencies() {
		all, below := uint64(0), map[float64]uint64{}
		for i, n := range t.Classes {
			if all += n; i < len(lab.LatencyBounds) {
				below[lab.LatencyBounds[i].Seconds()] = all
			}
		}
		ch <- prometheus.MustNewConstHistogram(durations, all, t.Sum.Seconds(), below, t.Method)
	}
	power, gone, open, running := map[string]int{}, 0, 0, 0
	for _, h := range c.lab.Hosts() {
		power[string(h.Machine().Power)]++
		if h.Reach() == lab.Gone {
			gone++
		}
		b := h.BMC()
		open += len(b.Sessions)
		for _, j := range b.Tasks.All() {
			if !j.State.Ended() {
				running++
			}
		}
	}
	for state, n := range power { // Prometheus sorts the metrics
		gauge(hosts, float64(n), state)
	}
	gauge(offline, float64(gone))
	gauge(sessions, float64(open))
	gauge(tasks, float64(running))
	for _, f := range c.lab.Faults() {
		count(hits, float64(f.Hits), f.ID)
	}
	gauge(waiting, float64(c.lab.Waiting()))
	count(dropped, float64(c.lab.Journal().Dropped()))
	gauge(labTime, float64(c.lab.Clock().Now().UnixNano())/1e9)
}
