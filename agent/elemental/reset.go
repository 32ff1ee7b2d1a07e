package elemental

import (
	"context"
	"fmt"
	"net/http"
)

// Reset resets a server that was prepared for it, and reports that, whereupon the ElementalHost
// is deleted. It tries again for ever.
func Reset(ctx context.Context, c Config) error {
	a, err := resume(ctx, c)
	if err != nil {
		return err
	}
	defer a.close()
	a.setPhase(ctx, PhaseResetting)
	done := false
	if err := a.retry(ctx, "the host is not reset", func() error {
		err := a.resetOnce(ctx, &done)
		if err != nil && ctx.Err() == nil {
			a.report(ctx, failed(resetReady, resetFailed, err))
		}
		return err
	}); err != nil {
		return err
	}
	a.Log.Info("the host is reset", "host", a.name)
	// The next registration chooses a new name.
	if err := a.System.Remove(a.path(nameName), a.path(stateName)); err != nil {
		return fmt.Errorf("elemental: %w", err)
	}
	if f, ok := a.plugin.(Finisher); ok {
		if err := f.FinishReset(ctx); err != nil {
			return fmt.Errorf("elemental: %w", err)
		}
	}
	return a.after(ctx, a.file.Agent.PostReset)
}

// resetOnce makes one attempt. A host that the API does not have any more was reported by an
// agent that was killed afterwards, or its finalizer was removed by hand: nothing is left to
// report.
func (a *agent) resetOnce(ctx context.Context, done *bool) error {
	err := a.api.remove(ctx, a.name)
	gone := hasStatus(err, http.StatusNotFound)
	if err != nil && !gone {
		return fmt.Errorf("marking host for deletion: %w", err)
	}
	if !*done {
		r, err := a.api.registration(ctx)
		if err != nil {
			return err
		}
		end, err := a.begin(ctx, "reset")
		if err != nil {
			return err
		}
		defer end()
		if err := a.plugin.Reset(ctx, orNull(r.Config.Elemental.Reset)); err != nil {
			return fmt.Errorf("resetting host: %w", err)
		}
		*done = true
	}
	if gone {
		return nil
	}
	yes := true
	_, err = a.api.patch(ctx, a.name, patchRequest{Reset: &yes, Condition: met(resetReady)})
	if hasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}
