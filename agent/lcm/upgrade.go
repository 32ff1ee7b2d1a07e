package lcm

import (
	"context"
	"fmt"
	"strings"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
)

// upgrade replaces the agent's program by that of spec.agentConfig, and returns an
// *UpgradedError then. After a failure, status.lcmAgentUpgradeStatus has the reason, and this
// agent goes on and tries again later.
func (a *agent) upgrade(ctx context.Context, m *lcmv1.LCMMachine) error {
	c := m.Spec.AgentConfig
	if c == nil || c.SHA256 == a.SHA256 || a.Program == "" {
		return nil
	}
	u := lcmv1.AgentUpgradeStatus{}
	if old := m.Status.LCMAgentUpgradeStatus; old != nil {
		u = *old
	}
	if a.upgradeOf != keyOf(c) { // another program, or the first look of this process
		a.upgradeOf, u.Attempt = keyOf(c), 0
	} else if u.FinishedAt != nil {
		if left := u.FinishedAt.Add(retryDelay(u.Attempt)).Sub(a.Clock.Now()); left > 0 && left <= retryDelay(u.Attempt) {
			return nil
		}
	}
	u = lcmv1.AgentUpgradeStatus{Attempt: u.Attempt + 1, StartedAt: a.now()}
	m, err := a.writeUpgrade(ctx, m, u)
	if err != nil {
		return err
	}
	a.Log.Info("the agent's upgrade begins", "version", c.Version, "attempt", u.Attempt)
	if err := a.replace(ctx, m, c); err != nil {
		a.Log.Error("the agent's upgrade has failed", "version", c.Version, "attempt", u.Attempt, "error", err)
		u.Error, u.FinishedAt = shorten(err.Error()), a.now()
		_, err = a.writeUpgrade(ctx, m, u)
		return err
	}
	return &UpgradedError{Version: c.Version, SHA256: c.SHA256, Args: c.Args}
}

// upgradeKey identifies an upgrade.
type upgradeKey struct{ url, sha256, args string }

func keyOf(c *lcmv1.AgentConfig) upgradeKey {
	return upgradeKey{c.DownloadURL, c.SHA256, strings.Join(c.Args, "\x00")}
}

// replace downloads a program, tries whether it runs, and puts it in the place of the
// agent's.
func (a *agent) replace(ctx context.Context, m *lcmv1.LCMMachine, c *lcmv1.AgentConfig) error {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	data, err := a.fetch(ctx, m, c.DownloadURL, c.SHA256)
	if err != nil {
		return err
	}
	if a.Accept != nil {
		if err := a.Accept(data); err != nil {
			return err
		}
	}
	trial := a.Program + ".new"
	if err := a.System.Put(sys.File{Name: trial, Mode: 0o755, Content: data}); err != nil {
		return err
	}
	var out tail
	code, err := a.System.Exec(ctx, sys.Command{Args: []string{a.System.Path(trial), "--version"}, Stdout: &out, Stderr: &out})
	if err == nil && code != 0 {
		err = fmt.Errorf("the program of agentConfig does not run: --version ends with code %d: %s", code, out.last())
	}
	if removeErr := a.System.Remove(trial); err == nil {
		err = removeErr
	}
	if err == nil {
		err = a.change(func(s *state) { s.Args = c.Args })
	}
	if err != nil {
		return err
	}
	return a.System.Put(sys.File{Name: a.Program, Mode: 0o755, Content: data})
}

func (a *agent) writeUpgrade(ctx context.Context, m *lcmv1.LCMMachine, u lcmv1.AgentUpgradeStatus) (*lcmv1.LCMMachine, error) {
	next := m.Status.DeepCopy()
	next.LCMAgentUpgradeStatus = &u
	patch, err := statusPatch(m.Status, *next)
	if err != nil {
		return nil, fmt.Errorf("lcm: upgrade: %w", err)
	}
	if m, err = a.api.patchStatus(ctx, patch, ""); err != nil {
		return nil, fmt.Errorf("lcm: upgrade: %w", err)
	}
	return m, nil
}

// Sum returns the SHA-256 of a program, as Config.SHA256 has it.
func Sum(program []byte) string { return module.Sum(program) }
