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

// report is a report of the power.
type report struct {
	at    time.Time
	watts string
}

func (a response) report() (report, error) {
	all, _ := a.body["MetricValues"].([]any)
	if len(all) != 1 {
		return report{}, fmt.Errorf("the report is %s", a)
	}
	o, _ := all[0].(map[string]any)
	at, err := time.Parse(time.RFC3339, fmt.Sprint(a.body["Timestamp"]))
	return report{at: at, watts: fmt.Sprint(o["MetricValue"])}, err
}

// reader is a server that keeps the reports that are posted to it.
type reader struct {
	*httptest.Server
	mu  sync.Mutex
	got []report
	bad []error
}

func newReader() *reader {
	r := &reader{}
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

func (s *scenario) registerTelemetry(sc *godog.ScenarioContext) {
	var began time.Time // when the report was asked for
	var told *reader
	sc.After(func(ctx context.Context, _ *godog.Scenario, _ error) (context.Context, error) {
		if told != nil {
			told.Close()
		}
		return ctx, nil
	})
	const definitionURI, reportURI = telemetryURI + "/MetricReportDefinitions/power", telemetryURI + "/MetricReports/power"
	define := func(kind string, more object) error {
		began = s.lab.Clock().Now()
		body := object{
			"Id": "power", "MetricReportDefinitionType": kind, "Metrics": []object{{"MetricId": "TotalPower"}},
			"ReportActions": []string{"LogToMetricReportsCollection", "RedfishEvent"},
		}
		for name, v := range more {
			body[name] = v
		}
		return s.send("POST", telemetryURI+"/MetricReportDefinitions", body)
	}
	every := func(interval string) error {
		return define("Periodic", object{"Schedule": object{"RecurrenceInterval": interval}})
	}
	sc.Step(`^the operator has the power reported every minute$`, func() error { return every("PT1M") })
	sc.Step(`^the operator has the power reported when it changes$`, func() error { return define("OnChange", nil) })
	sc.Step(`^the operator asks for a report a thousand times per second$`, func() error { return every("PT0.001S") })
	sc.Step(`^the operator asks for a report of the moon$`, func() error {
		return define("OnRequest", object{"Metrics": []object{{"MetricId": "Moon"}}})
	})
	sc.Step(`^there is no report of the power$`, func() error {
		if err := s.send("GET", reportURI, nil); err != nil {
			return err
		}
		return equal("the answer", s.response.status, 404)
	})
	sc.Step(`^the report of the power is of (\d+) minutes? after that$`, func(n int) error {
		a, err := s.get(reportURI)
		if err != nil {
			return err
		}
		r, err := a.report()
		if err != nil {
			return err
		}
		s.saved["earlier"], s.saved["reported"] = s.saved["reported"], r.watts
		return equal("its time", r.at, began.Add(time.Duration(n)*time.Minute))
	})
	sc.Step(`^it tells what the sensor reads$`, func() error {
		watts, err := s.watts()
		if err != nil {
			return err
		}
		return s.equalsSaved("reported", watts)
	})
	sc.Step(`^it tells of more than before$`, func() error {
		var before, now float64
		if _, err := fmt.Sscan(s.saved["earlier"]+" "+s.saved["reported"], &before, &now); err != nil || now <= before {
			return fmt.Errorf("it tells %v W, and told %v W: %w", now, before, err)
		}
		return nil
	})
	sc.Step(`^the operator has no more reports made$`, func() error {
		return s.sendOK("PATCH", definitionURI, object{"MetricReportDefinitionEnabled": false})
	})
	sc.Step(`^the operator deletes what was to be reported$`, func() error { return s.sendOK("DELETE", definitionURI, nil) })
	sc.Step(`^a monitoring system subscribes to reports$`, func() error {
		told = newReader()
		return s.sendOK("POST", subscriptionsURI, object{"Destination": told.URL, "Protocol": "Redfish", "EventFormatType": "MetricReport"})
	})
	sc.Step(`^the monitoring system was sent (\d+) reports, a minute apart$`, func(n int) error {
		s.lab.Settle()
		told.mu.Lock()
		defer told.mu.Unlock()
		if len(told.got) != n || len(told.bad) > 0 {
			return fmt.Errorf("it was sent %v, and what it cannot read: %v", told.got, told.bad)
		}
		for i, r := range told.got {
			if err := equal("the time of a report", r.at, began.Add(time.Duration(i+1)*time.Minute)); err != nil {
				return err
			}
		}
		return nil
	})
}
