package machine

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

func TestPeriodicMetricReports(t *testing.T) {
	b := benchOf(t, warm)
	b.do(SetMetricReportDefinition{MetricReportDefinition{ID: "p", Kind: Periodic, Enabled: true, LogToCollection: true, SendEvents: true, Metrics: []string{"TotalPower", "CPU"}, Interval: seconds(30)}})
	raw, err := json.Marshal(b.m.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	again, err := New(b.m.profile, *b.m.identity, &st)
	if err != nil {
		t.Fatal(err)
	}
	end := origin.Add(100 * time.Second)
	evs := b.m.Advance(end)
	if d := cmp.Diff(evs, again.Advance(end)); d != "" {
		t.Errorf("a restored machine reports otherwise (-was +is):\n%s", d)
	}
	if len(evs) != 3 {
		t.Fatalf("%d reports in 100 s", len(evs))
	}
	for i, ev := range evs {
		r := ev.(MetricReportReady)
		if want := origin.Add(time.Duration(i+1) * 30 * time.Second); !r.At.Equal(want) || r.Report.Number != uint64(i+1) || len(r.Report.Values) != 1 {
			t.Errorf("report %d: %+v; a machine that is off has no temperature of its processor", i, r)
		}
	}
	b.now = end
	b.do(DeleteMetricReportDefinition{ID: "p"})
	if at, ok := b.m.Deadline(); ok {
		t.Errorf("without definitions something is due at %v", at)
	}
}

func TestOnChangeMetricReports(t *testing.T) {
	b := benchOf(t, warm)
	b.do(SetMetricReportDefinition{MetricReportDefinition{Kind: OnChange, Enabled: true, SendEvents: true, Metrics: []string{"TotalPower"}}})
	var watts []float64
	for _, ev := range b.do(Thermal{thermal.SetAmbient{Celsius: deg(25)}}) {
		watts = append(watts, ev.(MetricReportReady).Report.Values[0].Reading)
	}
	for _, ev := range b.do(Reset{Kind: ResetOn}) {
		if r, ok := ev.(MetricReportReady); ok {
			watts = append(watts, r.Report.Values[0].Reading)
		}
	}
	if len(watts) != 2 || watts[0] >= watts[1] {
		t.Errorf("reports of %v W", watts)
	}
}

func TestInvalidReportDefinitionsAreRefused(t *testing.T) {
	b := benchOf(t, warm)
	for _, tt := range []struct {
		do   Command
		want error
	}{
		{SetMetricReportDefinition{MetricReportDefinition{Kind: "Hourly"}}, ErrUnknown}, {SetMetricReportDefinition{MetricReportDefinition{Kind: Periodic}}, ErrUnknown},
		{SetMetricReportDefinition{MetricReportDefinition{Kind: OnRequest, Metrics: []string{"Moon"}}}, ErrUnknown}, {DeleteMetricReportDefinition{ID: "x"}, ErrUnknown},
	} {
		if _, err := b.m.Apply(b.now, tt.do); !errors.Is(err, tt.want) || b.m.st.Telemetry != nil {
			t.Errorf("%+v = %v, want %v and no change", tt.do, err, tt.want)
		}
	}
	for range MaxReportDefinitions {
		b.do(SetMetricReportDefinition{MetricReportDefinition{Kind: OnRequest}})
	}
	if _, err := b.m.Apply(b.now, SetMetricReportDefinition{MetricReportDefinition{Kind: OnRequest}}); !errors.Is(err, ErrConflict) {
		t.Errorf("one too many = %v, want %v", err, ErrConflict)
	}
}
