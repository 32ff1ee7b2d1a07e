package steps

import (
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

func (s *scenario) registerQuirks(sc *stepRegistry) {
	sc.Step(`^the BMC has the quirk "([^"]*)"$`, func(text string) error {
		q, err := quirk.Parse(text)
		if err != nil {
			return err
		}
		return s.server(1).SetQuirks([]quirk.Setting{q})
	})
	sc.Step(`^the BMC has no quirk$`, func() error { return s.server(1).SetQuirks(nil) })
}
