package steps

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

func (s *scenario) registerQuirks(sc *stepRegistry) {
	sc.Step(`^the server's BMC has the quirk "([^"]*)"$`, "switches on a quirk of the BMC: see labctl quirk ls", s.setQuirk)
	sc.StepWithOptionalText(`^the host reports the workaround "([^"]*)"$`, "waits until the message of the condition BMCWorkarounds contains this text; empty: asserts, once each controller has reconciled every object, that there is no such condition", s.reportsWorkaround)
}

func (s *scenario) setQuirk(ctx context.Context, text string) error {
	q, err := quirk.Parse(text)
	if err != nil {
		return err
	}
	_, err = s.lab.Control().SetQuirks(ctx, s.server.Name, []quirk.Setting{q})
	return err
}

func (s *scenario) reportsWorkaround(ctx context.Context, want string) error {
	if want == "" {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
	}
	return eventually(ctx, "the workaround", func(ctx context.Context) (bool, string, error) {
		h, err := s.read(ctx)
		if err != nil {
			return false, "", err
		}
		c := meta.FindStatusCondition(h.Status.Conditions, "BMCWorkarounds")
		if want == "" && c != nil {
			return false, "", fmt.Errorf("it tells of %q, want none", c.Message)
		}
		if c == nil {
			return want == "", "there is no condition", nil
		}
		return strings.Contains(c.Message, want), c.Message, nil
	})
}
