package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/broker"
	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/agent/machineconfig/deployment"
	"github.com/metalab-dev/metalab/agent/machineconfig/registry"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/unit"
)

// ConfigFile is the default path of the configuration file.
const ConfigFile = "/etc/lab-agent/mcd.yaml"

// Unit is the systemd unit of the daemon, lab-agent-mcd.service.
var Unit = unit.Service("Machine-config daemon", "mcd --config "+ConfigFile, "")

// Account is the content of the configuration file. The node agent's file can be used, too.
type Account struct {
	kubeapi.Account `yaml:",inline"`
	Node            string `yaml:"node"` // name of the Node; "" is the host name of the system
}

// ParseArgs returns the account of the daemon's command from its configuration file.
func ParseArgs(args []string, files kubeapi.Files) (a Account, err error) {
	c := kubeapi.Command{Name: "lab-agent mcd", File: ConfigFile, Fields: "server, caFile, tokenFile and node"}
	name, err := c.Read(args, files, &a)
	if err != nil {
		return Account{}, err
	}
	if a.Node == "" {
		host, err := files.ReadFile("/etc/hostname")
		if err != nil {
			return Account{}, fmt.Errorf("%s: node is absent, and the host name is unknown: %w", name, err)
		}
		a.Node = strings.ToLower(strings.TrimSpace(string(host)))
	}
	return a, a.Validate()
}

// Validate reports all mistakes.
func (a Account) Validate() error {
	err := a.Account.Validate()
	if a.Node == "" || strings.ContainsAny(a.Node, "/?#%") {
		err = errors.Join(err, fmt.Errorf("node %q: give the name of the Node", a.Node))
	}
	return err
}

// System is the operating system that the daemon configures: sys.Host, or that of an emulated
// server.
type System interface {
	ReadFile(name string) ([]byte, error)
	Stat(name string) (sys.FileInfo, error)
	Readlink(name string) (string, error)
	Put(files ...sys.File) error
	Remove(names ...string) error
	Exec(ctx context.Context, c sys.Command) (int, error)
	Boot() (sys.Boot, error)
	Reboot(ctx context.Context) error
}

// OS boots images. The present root never changes.
type OS interface {
	Booted(ctx context.Context) (deployment.Root, error)
	// Pull fetches an image and verifies it. A failure may be temporary unless it is an
	// *ImageError.
	Pull(ctx context.Context, image string, auth registry.Credentials) error
	// Stage makes a root that the next boot boots. One that is staged already is replaced.
	Stage(ctx context.Context, next deployment.Next) error
	Unstage(ctx context.Context) error
}

// Monitor watches files of a System.
type Monitor interface {
	// Watch calls changed, which must not block, after changes of files, at least of those
	// named.
	Watch(names []string, changed func()) (stop func(), err error)
}

// Registry checks whether a node may pull an image.
type Registry interface {
	Check(ctx context.Context, image string, auth registry.Credentials) error
}

// Clock is the part of k8s.io/utils/clock that the daemon uses. Deadlines of requests are wall
// time.
type Clock interface {
	Now() time.Time
	NewTimer(d time.Duration) clock.Timer
}

// Config holds the parameters of Run.
type Config struct {
	Account
	System  System
	OS      OS
	Monitor Monitor

	// Broker, if set, admits one operation on the host at a time and reboots it. nil means
	// that no other agent changes the host.
	Broker *broker.Broker
	// Registry checks the pull secret; nil means the registries that the System reaches.
	Registry Registry
	API      http.RoundTripper // to the Kubernetes API; nil means TLS with CAFile
	Clock    Clock             // nil means real time
	Log      *slog.Logger      // nil means slog.Default
	Poll     time.Duration     // between two looks at the Node, beside those that a watch causes; 0 means a minute
	// Enter, if set, is called before the daemon acts, and the function that it returns
	// afterwards, so that a virtual clock stands still meanwhile.
	Enter func() (leave func())
}

const defaultPoll = time.Minute

func (c *Config) complete() error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("machineconfig: configuration: %w", err)
	}
	if c.System == nil || c.OS == nil || c.Monitor == nil {
		return errors.New("machineconfig: no System, no OS or no Monitor")
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Broker == nil {
		c.Broker = broker.New(c.System.Reboot, func(err error) { c.Log.Error("the host does not reboot", "error", err) })
	}
	if c.Registry == nil {
		c.Registry = registry.Client{Files: c.System}
	}
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	if c.Enter == nil {
		c.Enter = func() func() { return func() {} }
	}
	return nil
}
