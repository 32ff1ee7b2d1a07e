package lcm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/broker"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/kubeapi"
)

// Account is where the agent's LCMMachine is, and how the agent identifies itself: the
// content of the configuration file.
type Account struct {
	kubeapi.Account `yaml:",inline"`
	Namespace       string `yaml:"namespace"`
	Machine         string `yaml:"machine"` // name of the LCMMachine
}

// ReadAccount reads a configuration file. Fields that are absent do not change.
func (a *Account) ReadAccount(text []byte) error {
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(a); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Validate reports all mistakes.
func (a Account) Validate() error {
	errs := []error{a.Account.Validate()}
	for _, name := range []struct{ field, value string }{{"namespace", a.Namespace}, {"machine", a.Machine}} {
		if name.value == "" || strings.ContainsAny(name.value, "/?#%") {
			errs = append(errs, fmt.Errorf("%s %q: give the LCMMachine's", name.field, name.value))
		}
	}
	return errors.Join(errs...)
}

// Clock is the part of k8s.io/utils/clock that the agent uses. Deadlines of commands and
// of requests are wall time.
type Clock interface {
	Now() time.Time
	NewTimer(d time.Duration) clock.Timer
}

// Config holds the parameters of Run.
type Config struct {
	Account
	System System
	// Hardware returns the server's hardware and host name.
	Hardware func(ctx context.Context) (job.Hardware, error)
	// Addresses returns the addresses of all network interfaces, by name; nil means those
	// of Hardware, and those that netplan's files configure.
	Addresses func() (map[string][]netip.Addr, error)
	// Version and SHA256 identify the agent that runs. A program whose SHA-256 is that of
	// spec.agentConfig has its version.
	Version, SHA256 string
	// Program is the path of the agent's program in System, which an upgrade replaces;
	// "" refuses upgrades.
	Program string
	// Accept, if set, is asked before an upgrade replaces the program: an error is the reason why this
	// server cannot run the new one.
	Accept func(program []byte) error
	// KeepUser makes playbooks run as the agent's user, whatever their become: for an
	// agent that is not the superuser.
	KeepUser bool

	// Broker, if set, admits one operation on the host at a time and reboots it. nil means
	// that no other agent changes the host.
	Broker *broker.Broker

	API       http.RoundTripper // to the Kubernetes API; nil means TLS with CAFile
	Downloads *http.Transport   // nil means Go's defaults
	Clock     Clock             // nil means real time
	Log       *slog.Logger      // nil means slog.Default
	Poll      time.Duration     // between two looks at the object, beside those that a watch causes; 0 means a minute
	// Enter, if set, is called before the agent acts, and the function that it returns
	// afterwards, so that a virtual clock stands still meanwhile.
	Enter func() (leave func())
}

const defaultPoll = time.Minute

func (c *Config) complete() error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("lcm: configuration: %w", err)
	}
	if c.System == nil || c.Hardware == nil {
		return errors.New("lcm: no System or no Hardware")
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
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	if c.Enter == nil {
		c.Enter = func() func() { return func() {} }
	}
	if c.Downloads == nil {
		c.Downloads = http.DefaultTransport.(*http.Transport)
	}
	return nil
}
