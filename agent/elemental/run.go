package elemental

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Run is the agent of a server that is installed: it polls its ElementalHost, and reconciles the
// version of the operating system, bootstraps the server and triggers its reset. It returns
// after it has rebooted the server or triggered a reset, and ctx's error when ctx ends.
func Run(ctx context.Context, c Config) error {
	a, err := resume(ctx, c)
	if err != nil {
		return err
	}
	defer a.close()
	if s, ok := a.plugin.(Starter); ok {
		if err := a.retry(ctx, "the system's files of the last boot are not applied", func() error {
			end, err := a.begin(ctx, "start")
			if err != nil {
				return err
			}
			defer end()
			return s.Start(ctx)
		}); err != nil {
			return err
		}
	}
	for {
		ends, err := a.reconcile(ctx)
		if ends {
			return nil
		}
		a.logError(ctx, "the agent tries again", err)
		if err := a.wait(ctx); err != nil {
			return err
		}
	}
}

// reconcile makes one pass. A reset precedes all else, so that a server that is stuck in another
// phase can be reset.
func (a *agent) reconcile(ctx context.Context) (ends bool, err error) {
	running := PhaseRunning
	h, err := a.api.patch(ctx, a.name, patchRequest{Phase: &running})
	if err != nil {
		return false, err
	}
	if h.NeedsReset {
		return a.triggerReset(ctx)
	}
	if err := a.installedBefore(ctx, h); err != nil {
		return false, err
	}
	if update := h.InPlaceUpdate == updatePending; !h.Bootstrapped || update {
		if ends, err := a.reconcileOSVersion(ctx, h, update); ends || err != nil {
			return ends, err
		}
	}
	if h.BootstrapReady && !h.Bootstrapped {
		a.setPhase(ctx, PhaseBootstrapping)
		ends, err := a.bootstrap(ctx)
		if err != nil && ctx.Err() == nil {
			a.report(ctx, failed(bootstrapReady, bootstrapFailed, err))
		}
		return ends, err
	}
	return false, nil
}

// installedBefore reports the installation of a system whose installing agent was killed before
// its report.
func (a *agent) installedBefore(ctx context.Context, h host) error {
	i, ok := a.plugin.(Installer)
	if h.Installed || !ok {
		return nil
	}
	if installed, err := i.Installed(ctx); err != nil || !installed {
		return err
	}
	return a.reportInstalled(ctx)
}

// reconcileOSVersion is the phase Reconciling OS Version.
func (a *agent) reconcileOSVersion(ctx context.Context, h host, update bool) (ends bool, err error) {
	end, err := a.begin(ctx, "OS version")
	if err != nil {
		return false, err
	}
	defer end()
	reboot, err := a.plugin.ReconcileOSVersion(ctx, orNull(h.OSVersionManagement))
	if err != nil {
		err = fmt.Errorf("reconciling OS version: %w", err)
		a.report(ctx, failed(osVersionReady, osVersionFailed, err))
		return false, err
	}
	if reboot {
		a.setPhase(ctx, PhaseReconcilingOSV)
		a.report(ctx, waits(osVersionReady, waitingForReboot, "Waiting for Host to reboot after OS Version has been reconciled."))
		end()
		return a.reboot(ctx)
	}
	if _, err := a.api.patch(ctx, a.name, patchRequest{Condition: met(osVersionReady)}); err != nil {
		return false, err
	}
	if !update {
		return false, nil
	}
	done := updateDone
	_, err = a.api.patch(ctx, a.name, patchRequest{InPlaceUpdate: &done})
	return false, err
}

// reboot reboots the server, and ends the agent if that succeeds.
func (a *agent) reboot(ctx context.Context) (ends bool, err error) {
	if err := a.plugin.Reboot(ctx); err != nil {
		return false, fmt.Errorf("reboot: %w", err)
	}
	return true, nil
}

// bootstrap is the phase Bootstrapping: it writes the bootstrap configuration and reboots once,
// or reports that the configuration has written the sentinel.
func (a *agent) bootstrap(ctx context.Context) (ends bool, err error) {
	_, err = a.System.ReadFile(SentinelFile)
	if err == nil {
		yes := true
		_, err := a.api.patch(ctx, a.name, patchRequest{Bootstrapped: &yes, Condition: met(bootstrapReady)})
		if err == nil {
			a.Log.Info("the host is bootstrapped", "host", a.name)
		}
		return false, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	b, err := a.api.bootstrap(ctx, a.name)
	if err != nil {
		return false, fmt.Errorf("fetching bootstrap config: %w", err)
	}
	end, err := a.begin(ctx, "bootstrap")
	if err != nil {
		return false, err
	}
	defer end()
	boot, err := a.System.Boot()
	if err != nil {
		return false, err
	}
	before, err := a.state()
	if err != nil {
		return false, err
	}
	// The boot is stored first: an agent that is killed before the reboot makes up for it.
	if err := a.setState(state{BootstrapBoot: boot.ID}); err != nil {
		return false, err
	}
	err = a.plugin.Bootstrap(ctx, b.Format, []byte(b.Config))
	if err != nil && !(errors.Is(err, ErrBootstrapApplied) && before.BootstrapBoot == boot.ID) {
		return false, errors.Join(fmt.Errorf("applying bootstrap config: %w", err), a.setState(before))
	}
	a.report(ctx, waits(bootstrapReady, waitingForBootstrap, "Waiting for bootstrap to be executed"))
	end()
	return a.reboot(ctx)
}

// triggerReset is the phase Triggering Reset. It ends the agent.
func (a *agent) triggerReset(ctx context.Context) (ends bool, err error) {
	a.setPhase(ctx, PhaseTriggering)
	end, err := a.begin(ctx, "reset")
	if err != nil {
		return false, err
	}
	defer end()
	if err := a.plugin.TriggerReset(ctx); err != nil {
		err = fmt.Errorf("triggering reset: %w", err)
		a.report(ctx, failed(resetReady, resetFailed, err))
		return false, err
	}
	a.report(ctx, waits(resetReady, waitingForReset, "Reset was triggered successfully. Waiting for host to reset."))
	a.Log.Info("the reset is triggered", "host", a.name)
	return true, nil
}
