package conformance_test

import (
	"testing"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// BenchmarkReadOnlyRun is the duration of a read-only run in real time, with IPMI, against
// an emulated iDRAC 9 that answers at once, and against one that is as slow as a real one:
// most responses take a tenth of a second, and some take a second [K].
func BenchmarkReadOnlyRun(b *testing.B) {
	for _, bb := range []struct {
		name    string
		latency fault.Latency
	}{{"at once", ""}, {"slow", "p50=80ms,p99=1s"}} {
		b.Run(bb.name, func(b *testing.B) {
			r := rackfile.Default(1)
			r.Hosts[0].Profile = "dell-r640"
			l := racktest.Start(b, rack.Config{Rack: &r, Clock: clock.NewWall()})
			h := l.First()
			if bb.latency != "" {
				if _, err := l.AddFault(fault.Rule{BMC: h.Name(), Latency: bb.latency}); err != nil {
					b.Fatal(err)
				}
			}
			conf := target(l)
			conf.Rate = 0 // as the command's
			if at, ok := h.IPMI(); ok {
				conf.IPMI = at.String()
			}
			requests := 0
			for b.Loop() {
				run, err := conformance.Open(conf)
				if err != nil {
					b.Fatal(err)
				}
				for _, res := range run.Execute(b.Context(), conformance.Checks()) {
					if res.Verdict == conformance.Broken {
						b.Fatalf("%s is error: %s", res.ID, res.Reason)
					}
				}
				requests += len(run.Exchanges())
			}
			b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
		})
	}
}
