package steps

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

func (s *scenario) registerQuirks(sc *stepRegistry) {
	sc.Step(`^the server's BMC has the quirk "([^"]*)"$`, "lets the BMC do one thing as some real ones do: see labctl quirk ls", s.setQuirk)
	sc.Step(`^the host reports the workaround "([^"]*)"$`, "waits until the condition BMCWorkarounds has this text in its message; empty: the condition is not there", s.reportsWorkaround)
}

func (s *scenario) setQuirk(ctx context.Context, text string) error {
	q, err := quirk.Parse(text)
	if err != nil {
		return err
	}
	_, err = s.world.Control().SetQuirks(ctx, s.server.Name, []quirk.Setting{q})
	return err
}

func (s *scenario) reportsWorkaround(ctx context.Context, want string) error {
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
