package steps

import (
	"encoding/json"
	"fmt"
	"time"
)

func (s *scenario) registerJobs(sc *stepRegistry) {
	schedule := func(resetType string, schedule object) error {
		body, err := json.Marshal(object{"ResetType": resetType})
		if err != nil {
			return err
		}
		schedule["InitialStartTime"] = s.lab.Clock().Now().Add(time.Hour).UTC().Format(time.RFC3339)
		err = s.sendOK("POST", root+"/JobService/Jobs", object{
			"Name": "scheduled", "Schedule": schedule,
			"Payload": object{"HttpOperation": "POST", "TargetUri": systemURI + "/Actions/ComputerSystem.Reset", "JsonBody": string(body)},
		})
		if s.saved["JOB"] = s.response.header.Get("Location"); err == nil && s.saved["JOB"] == "" {
			err = fmt.Errorf("the response names no job: %s", s.response)
		}
		return err
	}
	sc.Step(`^the client schedules ComputerSystem\.Reset (\w+) in an hour$`, func(resetType string) error { return schedule(resetType, object{}) })
	sc.Step(`^the client schedules ComputerSystem\.Reset (\w+) every hour, (\d+) times$`, func(resetType string, n int) error {
		return schedule(resetType, object{"RecurrenceInterval": "PT1H", "MaxOccurrences": n})
	})
}
