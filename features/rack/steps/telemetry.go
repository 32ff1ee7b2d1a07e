package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/cucumber/godog"
)

const telemetryURI = root + "/TelemetryService"

// report is a metric report of TotalPower.
type report struct {
	at    time.Time // its Timestamp
	watts string    // its MetricValue
}

func (r response) report() (report, error) {
	all, _ := r.body["MetricValues"].([]any)
	if len(all) != 1 {
		return report{}, fmt.Errorf("the report is %s", r)
	}
	o, _ := all[0].(map[string]any)
	at, err := time.Parse(time.RFC3339, fmt.Sprint(r.body["Timestamp"]))
	return report{at: at, watts: fmt.Sprint(o["MetricValue"])}, err
}

// reportReceiver is an HTTP server that stores the metric reports posted to it.
type reportReceiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []report
	bad []error
}

func newReportReceiver() *reportReceiver {
	r := &reportReceiver{}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		var a response
		err := json.NewDecoder(in.Body).Decode(&a.body)
		var got report
		if err == nil {
			got, err = a.report()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.bad = append(r.bad, err)
			return
		}
		r.got = append(r.got, got)
	}))
	return r
}

func (s *scenario) registerTelemetry(sc *stepRegistry) {
	var defined time.Time // when the report was defined
	var receiver *reportReceiver
	sc.After(func(ctx context.Context, _ *godog.Scenario, _ error) (context.Context, error) {
		if receiver != nil {
			receiver.Close()
		}
		return ctx, nil
	})
	define := func(kind string, schedule object) error {
		defined = s.lab.Clock().Now()
		body := object{
			"Id": "power", "MetricReportDefinitionType": kind, "Metrics": []object{{"MetricId": "TotalPower"}},
			"ReportActions": []string{"LogToMetricReportsCollection", "RedfishEvent"},
		}
		if schedule != nil {
			body["Schedule"] = schedule
		}
		return s.sendOK("POST", telemetryURI+"/MetricReportDefinitions", body)
	}
	sc.Step(`^the client creates a Periodic report of TotalPower with RecurrenceInterval (\w+)$`, func(interval string) error {
		return define("Periodic", object{"RecurrenceInterval": interval})
	})
	sc.Step(`^the client creates an OnChange report of TotalPower$`, func() error { return define("OnChange", nil) })
	sc.Step(`^the report has the Timestamp of (\d+) minutes? after its definition$`, func(n int) error {
		r, err := s.get(telemetryURI + "/MetricReports/power")
		if err != nil {
			return err
		}
		got, err := r.report()
		if err != nil {
			return err
		}
		s.saved["MetricValue"] = got.watts
		return equal("Timestamp", got.at, defined.Add(time.Duration(n)*time.Minute))
	})
	sc.Step(`^the report has the Reading of TotalPower$`, func() error {
		watts, err := s.totalPower()
		if err != nil {
			return err
		}
		return s.equalsSaved("MetricValue", watts)
	})
	sc.Step(`^a receiver subscribes to metric reports$`, func() error {
		receiver = newReportReceiver()
		return s.sendOK("POST", subscriptionsURI, object{"Destination": receiver.URL, "Protocol": "Redfish", "EventFormatType": "MetricReport"})
	})
	sc.Step(`^the receiver has received ([1-9]\d*) reports, a minute apart$`, func(n int) error {
		s.lab.Settle()
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		if len(receiver.got) != n || len(receiver.bad) > 0 {
			return fmt.Errorf("it has got %v, and what it cannot read: %v", receiver.got, receiver.bad)
		}
		for i, r := range receiver.got {
			if err := equal("the Timestamp of a report", r.at, defined.Add(time.Duration(i+1)*time.Minute)); err != nil {
				return err
			}
		}
		return nil
	})
}
