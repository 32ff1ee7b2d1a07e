package steps

import (
	"fmt"
	"strings"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/machine"
)

func (s *scenario) registerManager(sc *godog.ScenarioContext) {
	sc.Step(`^the (?:operator|client) restarts the BMC$`, func() error {
		return s.sendOK("POST", root+"/Managers/1/Actions/Manager.Reset", object{"ResetType": "ForceRestart"})
	})
	sc.Step(`^no sensor tells how warm the processors are$`, func() error {
		if at, err := s.temperature("CPU"); err == nil {
			return fmt.Errorf("one tells %v", at)
		}
		return nil
	})
	sc.Step(`^the processors are warmer than the air around them$`, func() error {
		cpu, err := s.temperature("CPU")
		if err != nil {
			return err
		}
		air, err := s.temperature("Intake")
		if err != nil || cpu < air+5 {
			return fmt.Errorf("they are at %v, the air is at %v: %w", cpu, air, err)
		}
		return nil
	})
	sc.Step(`^the service lists the certificate that it shows$`, func() error {
		a, err := s.get(root + "/CertificateService/CertificateLocations")
		if err != nil {
			return err
		}
		all, _ := a.at("Links/Certificates").([]any)
		if len(all) == 0 {
			return fmt.Errorf("it lists none: %s", a)
		}
		one, _ := all[0].(map[string]any)
		if a, err = s.get(fmt.Sprint(one["@odata.id"])); err != nil {
			return err
		}
		if text, _ := a.body["CertificateString"].(string); !strings.Contains(text, "BEGIN CERTIFICATE") || strings.Contains(text, "PRIVATE") {
			return fmt.Errorf("the certificate is %s", a)
		}
		return nil
	})
	sc.Step(`^the operator has the server start by itself when the power is back$`, func() error {
		return s.sendOK("PATCH", systemURI, object{"PowerRestorePolicy": "AlwaysOn"})
	})
	sc.Step(`^the power fails$`, func() error { return s.server(1).Apply(s.t.Context(), machine.CutAC{}) })
	sc.Step(`^the power is back$`, func() error { return s.server(1).Apply(s.t.Context(), machine.RestoreAC{}) })
}

// temperature is what the first sensor of a place tells, in degrees Celsius.
func (s *scenario) temperature(of string) (float64, error) {
	a, err := s.get(root + "/Chassis/1/Sensors?$expand=.")
	if err != nil {
		return 0, err
	}
	all, _ := a.body["Members"].([]any)
	for _, x := range all {
		o, _ := x.(map[string]any)
		if at, ok := o["Reading"].(float64); ok && o["ReadingType"] == "Temperature" && strings.Contains(fmt.Sprint(o["PhysicalContext"], o["Id"]), of) {
			return at, nil
		}
	}
	return 0, fmt.Errorf("no sensor tells it: %s", a)
}
