package steps

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

const managerURI = root + "/Managers/1"

// registerManager binds the steps about a manager's log and time, its sensors,
// and the mains power.
func (s *scenario) registerManager(sc *stepRegistry) {
	sc.Step(`^the manager's log has an entry AccountCreated with the argument "([^"]*)"$`, func(name string) error {
		r, err := s.managerLog()
		if err != nil {
			return err
		}
		all, _ := r.body["Members"].([]any)
		for _, x := range all {
			o, _ := x.(map[string]any)
			id, _ := o["MessageId"].(string)
			if strings.HasSuffix(id, ".AccountCreated") && reflect.DeepEqual(o["MessageArgs"], []any{name}) {
				return nil
			}
		}
		return fmt.Errorf("the log is %s", r)
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
	sc.NegativeStep(`^no sensor of the CPUs has a Reading$`, func() error {
		all, err := s.temperatures("CPU")
		if err != nil {
			return err
		}
		for _, o := range all {
			if v, ok := o["Reading"]; !ok || v != nil {
				return fmt.Errorf("Reading of %v is %v, want null", o["Id"], v)
			}
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

// temperatures returns the temperature sensors of a place, at least one.
func (s *scenario) temperatures(of string) (out []object, err error) {
	r, err := s.get(chassisURI + "/Sensors?$expand=.")
	if err != nil {
		return nil, err
	}
	all, _ := r.body["Members"].([]any)
	for _, x := range all {
		o, _ := x.(map[string]any)
		if o["ReadingType"] == "Temperature" && strings.Contains(fmt.Sprint(o["PhysicalContext"], o["Id"]), of) {
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no sensor is of %s: %s", of, r)
	}
	return out, nil
}

// temperature returns the Reading of the first temperature sensor of a place that has one,
// in degrees Celsius.
func (s *scenario) temperature(of string) (float64, error) {
	all, err := s.temperatures(of)
	if err != nil {
		return 0, err
	}
	for _, o := range all {
		if at, ok := o["Reading"].(float64); ok {
			return at, nil
		}
	}
	return 0, fmt.Errorf("no sensor reads it: %v", all)
}
