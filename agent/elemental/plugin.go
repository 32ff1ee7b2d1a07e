package elemental

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/agent/sys"
)

// System is the operating system of the server. All names are absolute paths.
type System interface {
	// ReadFile returns the content of a file; fs.ErrNotExist if there is none.
	ReadFile(name string) ([]byte, error)
	// Put writes files, and creates the directories above them. A file that is replaced
	// has the old content after a failure.
	Put(files ...sys.File) error
	// Remove removes files, and directories recursively. One that is not there is no error.
	Remove(names ...string) error
	// Exec runs a command and returns its exit code.
	Exec(ctx context.Context, c sys.Command) (int, error)
	Boot() (sys.Boot, error)
	// Reboot and PowerOff ask the system to shut down in order. They return before that has
	// happened.
	Reboot(ctx context.Context) error
	PowerOff(ctx context.Context) error
}

// Plugin changes the operating system. Its methods are those of the provider's plugins, with a
// context.
type Plugin interface {
	Init(ctx context.Context, c PluginContext) error
	GetHostname(ctx context.Context) (string, error)
	// InstallCloudInit gets the cloud-config of the registration, in JSON; null if there is none.
	InstallCloudInit(ctx context.Context, input []byte) error
	InstallHostname(ctx context.Context, hostname string) error
	InstallFile(ctx context.Context, content []byte, name string, mode uint32, owner, group int) error
	// Install gets the instructions of the registration, in JSON; null if there are none.
	Install(ctx context.Context, input []byte) error
	// Bootstrap gets the bootstrap configuration in a format: cloud-config or ignition. It
	// returns ErrBootstrapApplied when it got one before.
	Bootstrap(ctx context.Context, format string, input []byte) error
	// ReconcileOSVersion gets the wanted version of the operating system, in JSON; null if none
	// is wanted. It reports whether the server must reboot.
	ReconcileOSVersion(ctx context.Context, input []byte) (reboot bool, err error)
	TriggerReset(ctx context.Context) error
	// Reset gets the instructions of the registration, in JSON; null if there are none.
	Reset(ctx context.Context, input []byte) error
	PowerOff(ctx context.Context) error
	Reboot(ctx context.Context) error
}

// PluginContext is where the plugin finds the agent's files.
type PluginContext struct {
	WorkDir    string
	ConfigPath string
	Debug      bool
}

// Errors of plugins.
var (
	ErrBootstrapApplied  = errors.New("bootstrap already applied")
	ErrBootstrapFormat   = errors.New("unsupported bootstrap format")
	ErrResetNotPrepared  = errors.New("unmanaged OS reset sentinel file still exists")
	errHostnameForbidden = errors.New("a host name has letters, digits, dots and hyphens alone")
)

// Starter is a Plugin that acts before the agent's loop begins: on the files of the last boot.
type Starter interface {
	Start(ctx context.Context) error
}

// Finisher is a Plugin that acts after the API has the report of a reset.
type Finisher interface {
	FinishReset(ctx context.Context) error
}

// Installer is a Plugin that knows whether the system that runs was installed. An agent that was
// killed before its report of the installation reports it later.
type Installer interface {
	Installed(ctx context.Context) (bool, error)
}

// Makers make the plugins that are built in, by their names.
type Makers map[string]func(System) Plugin

// of returns the maker of agent.osPlugin: its name, or the path of a shared object of the
// provider, for which a plugin that is built in stands.
func (m Makers) of(osPlugin string) (func(System) Plugin, error) {
	name := osPlugin
	switch base := path.Base(osPlugin); base {
	case "dummy.so":
		name = DummyPlugin
	case "elemental.so":
		name = SimPlugin
	}
	if maker := m[name]; maker != nil {
		return maker, nil
	}
	return nil, fmt.Errorf("elemental: agent.osPlugin %q is not built in: use one of %s, or a path that ends in dummy.so or elemental.so", osPlugin, strings.Join(slices.Sorted(maps.Keys(m)), ", "))
}

// Names of the plugins that are built in.
const (
	DummyPlugin = "dummy"
	SimPlugin   = "elemental-sim"
)
