package control

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/metalab-dev/metalab/emulator/rack"
)

// Metrics returns a handler for Prometheus. Labels are bounded: hosts beyond the
// first thousand are counted together, without a name. more are further collectors.
func Metrics(l *rack.Rack, more ...prometheus.Collector) http.Handler {
	return promhttp.HandlerFor(Registry(l, more...), promhttp.HandlerOpts{})
}

// Registry returns a registry with the metrics of a lab, its process and further collectors.
func Registry(l *rack.Rack, more ...prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{l}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(more...)
	return r
}

// collector reads the lab when Prometheus asks.
type collector struct{ rack *rack.Rack }

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
	speed     = describeMetric("time_speed_factor", "How many times as fast as real time the lab's time is meant to run; +Inf for max.")
	byKind    = describeMetric("bmc_requests_total", "HTTP requests to BMCs, by the dialect of the BMC; status 0 is no answer.", "dialect", "method", "status")
	commands  = describeMetric("ipmi_commands_total", "IPMI commands that BMCs have executed, by the dialect of the BMC.", "dialect", "command", "code")
	opened    = describeMetric("ipmi_sessions_total", "IPMI sessions in which commands were executed.")
	jobs      = describeMetric("redfish_jobs", "Jobs of all BMCs.")
	saves     = describeMetric("store_saves_total", "Changes that were stored.")
	commits   = describeMetric("store_commits_total", "Writes of the store, each of one or more changes.")
	stored    = describeMetric("store_bytes", "Size of the store, without disks and images.")
	full      = describeMetric("store_full", "1 while changes cannot be stored for lack of space.")
	labTime   = describeMetric("time_seconds", "The lab's time, since 1970.")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, received, sent, durations, hosts, offline, sessions, tasks, hits, waiting, dropped, labTime, speed, byKind, commands, opened, jobs, saves, commits, stored, full} {
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
	for _, t := range c.rack.Traffic() {
		status := strconv.Itoa(t.Status)
		count(requests, float64(t.Requests), t.Host, t.Method, status)
		count(received, float64(t.In), t.Host, t.Method, status)
		count(sent, float64(t.Out), t.Host, t.Method, status)
	}
	for _, t := range c.rack.Latencies() {
		all, below := uint64(0), map[float64]uint64{}
		for i, n := range t.Classes {
			if all += n; i < len(rack.LatencyBounds) {
				below[rack.LatencyBounds[i].Seconds()] = all
			}
		}
		ch <- prometheus.MustNewConstHistogram(durations, all, t.Sum.Seconds(), below, t.Method)
	}
	for k, n := range c.rack.RequestKinds() {
		if k.Command {
			count(commands, float64(n), k.Dialect, k.Method, fmt.Sprintf("%02X", k.Code))
		} else {
			count(byKind, float64(n), k.Dialect, k.Method, strconv.Itoa(k.Code))
		}
	}
	power, gone, open, running, queued := map[string]int{}, 0, 0, 0, 0
	for _, h := range c.rack.Hosts() {
		power[string(h.Machine().Power)]++
		if h.Reach() == rack.Gone {
			gone++
		}
		b := h.BMC()
		open += len(b.Sessions)
		if b.Jobs != nil {
			queued += len(b.Jobs.List)
		}
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
	gauge(jobs, float64(queued))
	count(opened, float64(c.rack.IPMISessions()))
	st := c.rack.StoreStats()
	count(saves, float64(st.Saves))
	count(commits, float64(st.Commits))
	gauge(stored, float64(st.Bytes))
	gauge(full, map[bool]float64{true: 1}[c.rack.Storage() != nil])
	factor, jumps, err := c.rack.Definition().Speed.Factor()
	if jumps {
		factor = math.Inf(1)
	}
	if err == nil { // a lab has no other
		gauge(speed, factor)
	}
	for _, f := range c.rack.Faults() {
		count(hits, float64(f.Hits), f.ID)
	}
	gauge(waiting, float64(c.rack.Waiting()))
	count(dropped, float64(c.rack.Journal().Dropped()))
	gauge(labTime, float64(c.rack.Clock().Now().UnixNano())/1e9)
}
