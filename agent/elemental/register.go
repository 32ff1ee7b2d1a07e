package elemental

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
	"github.com/metalab-dev/metalab/agent/sys"
)

// Register registers the server, and installs it if install is set. It returns when that is
// done, or ctx's error when ctx ends. It tries again whatever fails, but for the last step on
// the host: its name and files.
func Register(ctx context.Context, c Config, install bool) error {
	a, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.connect(true); err != nil {
		return err
	}
	var next File
	if err := a.retry(ctx, "the host is not registered", func() (err error) { next, err = a.register(ctx); return err }); err != nil {
		return err
	}
	a.Log.Info("the host is registered", "host", a.name)
	a.setPhase(ctx, PhaseRegistering) // the phase is over: before, no host had it
	a.file.Agent.PostInstall, a.file.Agent.Reconciliation = next.Agent.PostInstall, next.Agent.Reconciliation
	a.setPhase(ctx, PhaseFinalizing)
	if err := a.finalize(ctx, next); err != nil {
		a.report(ctx, failed(registrationReady, registrationFailed, err))
		return fmt.Errorf("elemental: finalizing registration: %w", err)
	}
	if err := a.retry(ctx, "the registration is not reported", func() error {
		_, err := a.api.patch(ctx, a.name, patchRequest{Condition: met(registrationReady)})
		return err
	}); err != nil {
		return err
	}
	a.report(ctx, waits(installationReady, waitingForInstallation, "Host is registered successfully. Waiting for installation."))
	if !install {
		return nil
	}
	return a.install(ctx)
}

// register makes one attempt to create the ElementalHost, and returns the configuration of the
// registration.
func (a *agent) register(ctx context.Context) (File, error) {
	r, err := a.api.registration(ctx)
	if err != nil {
		return File{}, err
	}
	next := r.Config.Elemental.File
	next.defaults()
	if a.name == "" {
		if a.name, err = a.chooseName(ctx, next.Agent.Hostname); err != nil {
			return File{}, err
		}
	}
	// A host that exists with this key was registered before.
	switch _, err := a.api.patch(ctx, a.name, patchRequest{}); {
	case err == nil:
		a.Log.Info("the host was registered before", "host", a.name)
		return next, nil
	case !errors.As(err, new(*statusError)):
		return File{}, err
	}
	annotations := maps.Clone(r.HostAnnotations)
	if id := a.systemUUID(); id != "" {
		if annotations == nil {
			annotations = make(map[string]string)
		}
		annotations[nodeaccount.SystemUUID] = id
	}
	err = a.api.create(ctx, createRequest{Name: a.name, Annotations: annotations, Labels: r.HostLabels, PubKey: string(a.api.identity.public)})
	if hasStatus(err, http.StatusConflict) { // another key has this name
		a.name = ""
		if rerr := a.System.Remove(a.path(nameName)); rerr != nil {
			return File{}, errors.Join(err, rerr)
		}
	}
	return next, err
}

// systemUUID returns the UUID of the server as a kubelet writes it to its Node, "" when its firmware has
// none, or this process may not read it: a server registers without it, too.
func (a *agent) systemUUID() string {
	b, err := a.System.ReadFile("/sys/class/dmi/id/product_uuid")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.Log.Warn("the host does not tell the UUID of its server", "error", err)
	}
	return strings.ToLower(strings.TrimSpace(string(b)))
}

// chooseName returns the name of a server. It is stored before it is used: a server whose
// registration is tried again keeps it, and no host is doubled.
func (a *agent) chooseName(ctx context.Context, h Hostname) (string, error) {
	switch b, err := a.System.ReadFile(a.path(nameName)); {
	case err == nil && strings.TrimSpace(string(b)) != "":
		return strings.TrimSpace(string(b)), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	name := uuid.NewString()
	if h.UseExisting {
		var err error
		if name, err = a.plugin.GetHostname(ctx); err != nil {
			return "", err
		}
	}
	name = h.Prefix + name
	return name, a.System.Put(sys.File{Name: a.path(nameName), Mode: dumpMode, Content: []byte(name + "\n")})
}

// finalize stores the name, the configuration and the key. The client that runs keeps its token
// until the agent starts again.
func (a *agent) finalize(ctx context.Context, next File) error {
	if next.Registration.URI == "" {
		next.Registration.URI = a.file.Registration.URI
	}
	if err := next.Validate(); err != nil {
		return fmt.Errorf("configuration of the registration: %w", err)
	}
	end, err := a.begin(ctx, "registration")
	if err != nil {
		return err
	}
	defer end()
	if err := a.plugin.InstallHostname(ctx, a.name); err != nil {
		return fmt.Errorf("host name %s: %w", a.name, err)
	}
	text, err := next.Marshal()
	if err != nil {
		return err
	}
	dir := next.Agent.WorkDir
	files := []struct {
		name    string
		mode    uint32
		content []byte
	}{{dir + "/" + configName, configMode, text}, {a.File, configMode, text}, {dir + "/" + keyName, keyMode, a.api.identity.private}}
	if a.File == files[0].name {
		files = append(files[:1], files[2:]...)
	}
	for _, f := range files {
		if err := a.plugin.InstallFile(ctx, f.content, f.name, f.mode, 0, 0); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}
