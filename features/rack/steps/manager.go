package steps

import (
	"fmt"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/machine"
)

const managerURI = root + "/Managers/1"

// registerManager binds the steps about a manager's log and time, its sensors,
// and the mains power.
func (s *scenario) registerManager(sc *godog.ScenarioContext) {
	sc.Step(`^the manager's log has an entry AccountCreated with the argument "([^"]*)"$`, func(name string) error {
		r, err := s.managerLog()
		if err != nil {
			return err
		}
		if !strings.Contains(r.text, "AccountCreated") || !strings.Contains(r.text, `"MessageArgs":["`+name+`"]`) {
			return fmt.Errorf("the log is %s", r)
		}
		return nil
	})
	sc.Step(`^the manager's log has an entry AccountCreated of "([^"]*)"$`, func(created string) error {
		r, err := s.managerLog()
		if err != nil {
			return err
		}
		all, _ := r.body["Members"].([]any)
		for _, x := range all {
			o, _ := x.(map[string]any)
			if id, _ := o["MessageId"].(string); strings.HasSuffix(id, ".AccountCreated") {
				return equal("Created", o["Created"], created)
			}
		}
		return fmt.Errorf("the log is %s", r)
	})
	sc.Step(`^DateTime of the BMC is the lab's time$`, func() error {
		r, err := s.get(managerURI)
		if err != nil {
			return err
		}
		return equal("DateTime", r.body["DateTime"], s.lab.Clock().Now().UTC().Format("2006-01-02T15:04:05Z"))
	})
	sc.Step(`^no sensor of the CPUs has a Reading$`, func() error {
		if at, err := s.temperature("CPU"); err == nil {
			return fmt.Errorf("one reads %v", at)
		}
		return nil
	})
	sc.Step(`^the CPUs read at least (\d+) degrees more than the intake$`, func(more int) error {
		cpu, err := s.temperature("CPU")
		if err != nil {
			return err
		}
		intake, err := s.temperature("Intake")
		if err != nil || cpu < intake+float64(more) {
			return fmt.Errorf("the CPUs read %v, the intake reads %v: %w", cpu, intake, err)
		}
		return nil
	})
	sc.Step(`^CertificateLocations links to a certificate without its private key$`, func() error {
		r, err := s.get(root + "/CertificateService/CertificateLocations")
		if err != nil {
			return err
		}
		if r, err = s.get(fmt.Sprint(r.at("Links/Certificates/0/@odata.id"))); err != nil {
			return err
		}
		if text, _ := r.body["CertificateString"].(string); !strings.Contains(text, "BEGIN CERTIFICATE") || strings.Contains(text, "PRIVATE") {
			return fmt.Errorf("the certificate is %s", r)
		}
		return nil
	})
	sc.Step(`^the mains power fails$`, func() error { return s.server(1).Apply(s.t.Context(), machine.CutAC{}) })
	sc.Step(`^the mains power is back$`, func() error { return s.server(1).Apply(s.t.Context(), machine.RestoreAC{}) })
	sc.Step(`^the BMC restarts and is up again$`, func() error {
		if err := s.sendOK("POST", managerURI+"/Actions/Manager.Reset", object{"ResetType": "ForceRestart"}); err != nil {
			return err
		}
		s.lab.Advance(5 * time.Minute)
		return nil
	})
}

// managerLog returns the entries of the manager's first log service.
func (s *scenario) managerLog() (response, error) {
	r, err := s.get(managerURI + "/LogServices")
	if err != nil {
		return r, err
	}
	return s.get(fmt.Sprint(r.at("Members/0/@odata.id"), "/Entries"))
}

// temperature returns the Reading of the first temperature sensor of a place, in
// degrees Celsius.
func (s *scenario) temperature(of string) (float64, error) {
	r, err := s.get(chassisURI + "/Sensors?$expand=.")
	if err != nil {
		return 0, err
	}
	all, _ := r.body["Members"].([]any)
	for _, x := range all {
		o, _ := x.(map[string]any)
		if at, ok := o["Reading"].(float64); ok && o["ReadingType"] == "Temperature" && strings.Contains(fmt.Sprint(o["PhysicalContext"], o["Id"]), of) {
			return at, nil
		}
	}
	return 0, fmt.Errorf("no sensor reads it: %s", r)
}
