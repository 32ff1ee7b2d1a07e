package steps

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// registerFaults binds the steps about fault rules, which features write as JSON
// with the fields of fault.Rule. A rule is about the first server's BMC unless it
// names another.
func (s *scenario) registerFaults(sc *stepRegistry) {
	sc.Step(`^the fault (\{.*\})$`, func(text string) error {
		r, err := parseFault(text)
		if err != nil {
			return err
		}
		if r.BMC == "" {
			r.BMC = s.server(1).Name()
		}
		r, err = s.lab.AddFault(r)
		s.faultID = r.ID
		return err
	})
	sc.Step(`^the fault is removed$`, func() error { return s.lab.RemoveFault(s.faultID) })
	sc.Step(`^a rack of (\d+) servers? with the fault (\{.*\})$`, func(n int, text string) error {
		r, err := parseFault(text)
		if err != nil {
			return err
		}
		s.define("generic", n)
		s.config.Rack.Faults = []fault.Rule{r}
		s.open()
		return nil
	})
}

func parseFault(text string) (r fault.Rule, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("%s is no fault: %w", text, err)
	}
	return r, nil
}
