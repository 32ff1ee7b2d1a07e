package elemental

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/broker"
	"github.com/metalab-dev/metalab/agent/sys"
)

// Clock is the part of k8s.io/utils/clock that the agent uses to wait. Deadlines of requests are
// wall time.
type Clock interface {
	NewTimer(d time.Duration) clock.Timer
}

// Config holds the parameters of the commands.
type Config struct {
	File    string // name of the configuration file; "" is DefaultConfigFile
	System  System
	Plugins Makers
	Version string // version of the agent

	// Broker, if set, admits one operation on the host at a time and reboots it. nil means
	// that no other agent changes the host.
	Broker *broker.Broker
	API    http.RoundTripper // to the registration API; nil means TLS with registration.caCert
	Clock  Clock             // nil means real time
	Now    func() time.Time  // dates tokens, and is real time if it is nil
	Log    *slog.Logger      // nil means slog.Default
	// Enter, if set, is called before the agent acts, and the function that it returns
	// afterwards, so that a virtual clock stands still meanwhile.
	Enter func() (leave func())
}

// agent is a running command.
type agent struct {
	Config
	file   File
	plugin Plugin
	api    *client
	name   string // name of the ElementalHost
	leave  func()
	logged string // the error that was logged last
}

// open reads the configuration file and makes the plugin. The caller must call close.
func open(ctx context.Context, c Config) (*agent, error) {
	if c.System == nil || len(c.Plugins) == 0 {
		return nil, errors.New("elemental: no System or no Plugins")
	}
	if c.File == "" {
		c.File = DefaultConfigFile
	}
	if c.Version == "" {
		c.Version = "0.0.1-dev"
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Enter == nil {
		c.Enter = func() func() { return func() {} }
	}
	a := &agent{Config: c, leave: c.Enter()}
	if a.Broker == nil {
		a.Broker = broker.New(c.System.Reboot, func(err error) { c.Log.Error("the host does not reboot", "error", err) })
	}
	err := a.load(ctx)
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *agent) load(ctx context.Context) (err error) {
	if a.file, err = loadFile(a.System, a.File); err != nil {
		return err
	}
	newPlugin, err := a.Plugins.of(a.file.Agent.OSPlugin)
	if err != nil {
		return err
	}
	a.plugin = newPlugin(rebooter{a.System, a.Broker})
	return a.plugin.Init(ctx, PluginContext{WorkDir: a.file.Agent.WorkDir, ConfigPath: a.File, Debug: a.file.Agent.Debug})
}

// rebooter is a System whose reboots wait for the operations of other agents.
type rebooter struct {
	System
	broker *broker.Broker
}

// Reboot asks for one reboot after the operations that run.
func (r rebooter) Reboot(ctx context.Context) error {
	err := r.broker.Reboot(ctx, broker.Operation{Family: broker.Elemental, Name: "reboot"})
	if errors.As(err, new(*broker.BlockedError)) { // it is queued
		return nil
	}
	return err
}

// connect makes the client of the registration API. create allows a new key.
func (a *agent) connect(create bool) error {
	i, err := loadIdentity(a.System, a.path(keyName), create)
	if err != nil {
		return err
	}
	a.api, err = newClient(a.file, a.System, i, a.Version, a.Now, a.API)
	return err
}

// close ends the command.
func (a *agent) close() {
	if a.api != nil {
		a.api.close()
	}
	a.leave()
}

func (a *agent) path(name string) string { return path.Join(a.file.Agent.WorkDir, name) }

// resume opens a command of a server that is registered.
func resume(ctx context.Context, c Config) (*agent, error) {
	a, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := a.connect(false); err != nil {
		a.close()
		return nil, err
	}
	if a.name, err = a.plugin.GetHostname(ctx); err != nil {
		a.close()
		return nil, fmt.Errorf("elemental: %w", err)
	}
	return a, nil
}

// wait waits for the next attempt. It returns ctx's error when ctx ends first.
func (a *agent) wait(ctx context.Context) error {
	timer := a.Clock.NewTimer(time.Duration(a.file.Agent.Reconciliation))
	defer timer.Stop()
	a.leave()
	defer func() { a.leave = a.Enter() }()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin waits until no other agent changes the host. While it waits, a virtual clock goes on.
func (a *agent) begin(ctx context.Context, name string) (end func(), err error) {
	o := broker.Operation{Family: broker.Elemental, Name: name}
	if end, err = a.Broker.Try(o); err == nil {
		return end, nil
	}
	a.Log.Info("the agent waits", "operation", name, "reason", err)
	a.leave()
	defer func() { a.leave = a.Enter() }()
	return a.Broker.Begin(ctx, o)
}

// setPhase reports a phase. An error is logged alone: the phase is for people.
func (a *agent) setPhase(ctx context.Context, p Phase) {
	if _, err := a.api.patch(ctx, a.name, patchRequest{Phase: &p}); err != nil && ctx.Err() == nil {
		a.Log.Warn("the phase is not reported", "phase", p, "error", err)
	}
}

// report reports a condition. An error is logged alone.
func (a *agent) report(ctx context.Context, c *Condition) {
	if _, err := a.api.patch(ctx, a.name, patchRequest{Condition: c}); err != nil && ctx.Err() == nil {
		a.Log.Warn("the condition is not reported", "type", c.Type, "reason", c.Reason, "error", err)
	}
}

// retry calls do until it returns no error, once per reconciliation.
func (a *agent) retry(ctx context.Context, what string, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.logError(ctx, what, err)
		if err := a.wait(ctx); err != nil {
			return err
		}
	}
}

// logError logs an error that differs from the last one.
func (a *agent) logError(ctx context.Context, what string, err error) {
	switch {
	case err == nil:
		a.logged = ""
	case ctx.Err() == nil && err.Error() != a.logged:
		a.logged = err.Error()
		a.Log.Error(what, "host", a.name, "error", err) //nolint:sloglint // the callers have constants
	}
}

// after performs a post action: powerOff wins.
func (a *agent) after(ctx context.Context, p PostAction) error {
	switch {
	case p.PowerOff:
		return a.plugin.PowerOff(ctx)
	case p.Reboot:
		return a.plugin.Reboot(ctx)
	}
	return nil
}

// state is the agent's memory between two phases, stored as JSON.
type state struct {
	// BootstrapBoot is the boot in which the bootstrap configuration was written: the reboot
	// that applies it is due until another one runs.
	BootstrapBoot string `json:"bootstrapBoot,omitempty"`
}

func (a *agent) state() (s state, err error) {
	b, err := a.System.ReadFile(a.path(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", a.path(stateName), err)
	}
	return s, nil
}

func (a *agent) setState(s state) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return a.System.Put(sys.File{Name: a.path(stateName), Mode: dumpMode, Content: append(b, '\n')})
}
