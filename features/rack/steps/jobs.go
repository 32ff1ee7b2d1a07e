package steps

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cucumber/godog"
)

const jobsURI = root + "/JobService/Jobs"

func (s *scenario) registerJobs(sc *godog.ScenarioContext) {
	plan := func(method, uri string, body object, schedule object) error {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		err = s.sendOK("POST", jobsURI, object{
			"Name": "planned", "Schedule": schedule, "Payload": object{"HttpOperation": method, "TargetUri": uri, "JsonBody": string(text)},
		})
		s.saved["job"] = s.response.header.Get("Location")
		return err
	}
	in := func(d time.Duration) string { return s.lab.Clock().Now().Add(d).UTC().Format(time.RFC3339) }
	sc.Step(`^(?:the operator|"[^"]*") plans to switch the server on in an hour$`, func() error {
		return plan("POST", systemURI+"/Actions/ComputerSystem.Reset", object{"ResetType": "On"}, object{"InitialStartTime": in(time.Hour)})
	})
	sc.Step(`^the operator plans to switch the server off every hour, (\d+) times$`, func(n int) error {
		return plan("POST", systemURI+"/Actions/ComputerSystem.Reset", object{"ResetType": "ForceOff"},
			object{"InitialStartTime": in(time.Hour), "RecurrenceInterval": "PT1H", "MaxOccurrences": n})
	})
	sc.Step(`^the operator calls the job off$`, func() error { return s.sendOK("POST", s.saved["job"]+"/Actions/Job.Cancel", object{}) })
	sc.Step(`^the job (waits|is done|has failed|was called off)$`, func(how string) error {
		a, err := s.get(s.saved["job"])
		if err != nil {
			return err
		}
		return equal("the job", a.body["JobState"], map[string]string{
			"waits": "Pending", "is done": "Completed", "has failed": "Exception", "was called off": "Cancelled",
		}[how])
	})
	sc.Step(`^the operator tries to plan what no BMC can do$`, func() error {
		return s.send("POST", jobsURI, object{"Payload": object{"HttpOperation": "DELETE", "TargetUri": systemURI}})
	})
	sc.Step(`^there is no job$`, func() error {
		a, err := s.get(jobsURI)
		if err != nil {
			return err
		}
		if a.body["Members@odata.count"] != 0.0 {
			return fmt.Errorf("there are %s", a)
		}
		return nil
	})
}
