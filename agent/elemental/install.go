package elemental

import (
	"context"
	"fmt"
)

// Install installs a server that is registered. It tries again for ever: the registration may be
// corrected meanwhile.
func Install(ctx context.Context, c Config) error {
	a, err := resume(ctx, c)
	if err != nil {
		return err
	}
	defer a.close()
	return a.install(ctx)
}

// install is the phase Installing. It does not repeat a step that has succeeded.
func (a *agent) install(ctx context.Context) error {
	a.setPhase(ctx, PhaseInstalling)
	var configured, installed bool
	if err := a.retry(ctx, "the host is not installed", func() error {
		reason, err := a.installOnce(ctx, &configured, &installed)
		if err != nil {
			a.report(ctx, failed(installationReady, reason, err))
		}
		return err
	}); err != nil {
		return err
	}
	a.Log.Info("the host is installed", "host", a.name)
	if a.file.Agent.PostInstall == (PostAction{}) {
		a.Log.Info("the host stays in the live system: reboot it, or set agent.postInstall.reboot or powerOff in its registration", "host", a.name)
	}
	return a.after(ctx, a.file.Agent.PostInstall)
}

// installOnce makes one attempt. reason is that of its error.
func (a *agent) installOnce(ctx context.Context, configured, installed *bool) (reason string, err error) {
	if !*configured || !*installed {
		r, err := a.api.registration(ctx)
		if err != nil {
			return installationFailed, err
		}
		end, err := a.begin(ctx, "installation")
		if err != nil {
			return installationFailed, err
		}
		defer end()
		if !*configured {
			if err := a.plugin.InstallCloudInit(ctx, orNull(r.Config.CloudConfig)); err != nil {
				return cloudConfigInstallationFailed, fmt.Errorf("installing cloud config: %w", err)
			}
			*configured = true
		}
		if !*installed {
			if err := a.plugin.Install(ctx, orNull(r.Config.Elemental.Install)); err != nil {
				return installationFailed, fmt.Errorf("installing host: %w", err)
			}
			*installed = true
		}
	}
	return installationFailed, a.reportInstalled(ctx)
}

func (a *agent) reportInstalled(ctx context.Context) error {
	yes := true
	_, err := a.api.patch(ctx, a.name, patchRequest{Installed: &yes, Condition: met(installationReady)})
	return err
}
