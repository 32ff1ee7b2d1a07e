package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/agent/unit"
)

// ConfigFile is the default path of the configuration file.
const ConfigFile = "/etc/lab-agent/node.yaml"

// Unit is the systemd unit of the agent, lab-agent-node.service. User data of a server
// installs and enables it.
var Unit = unit.Service("Node agent", "node --config "+ConfigFile, "")

const (
	// renewal is the time between two renewals of the node's Lease: twice that of a kubelet,
	// because a lab has all its nodes on one machine.
	renewal = 20 * time.Second
	// LeaseDuration is how long a node counts as running after a renewal.
	LeaseDuration = time.Minute
	retry         = 5 * time.Second // after an error of the API
	farewell      = 5 * time.Second // for the last report of a node that shuts down
)

// Account is the content of the configuration file. The LCM agent's file can be used, too: its
// other fields are ignored.
type Account = kubeapi.Account

// Files are the files of a server, by absolute paths.
type Files = kubeapi.Files

// ParseArgs returns the account of the agent's command from its configuration file.
func ParseArgs(args []string, files Files) (a Account, err error) {
	c := kubeapi.Command{Name: "lab-agent node", File: ConfigFile, Fields: "server, caFile and tokenFile"}
	if _, err := c.Read(args, files, &a); err != nil {
		return Account{}, err
	}
	return a, a.Validate()
}

// Facts describe the server for the status of its Node.
type Facts struct {
	Hostname             string
	Addresses            []netip.Addr
	CPUs                 int64
	MemoryBytes          int64
	Arch                 string // architecture of the kernel, "x86_64"
	MachineID, BootID    string
	UUID                 string // that of the system (SMBIOS)
	OSImage, Version     string // name of the operating system, and version of the agent
	KernelVersion, OSTag string // "linux"
}

// Clock is the part of k8s.io/utils/clock that the agent uses. Deadlines of requests are wall
// time.
type Clock interface {
	Now() time.Time
	NewTimer(d time.Duration) clock.Timer
}

// Config holds the parameters of Run.
type Config struct {
	Account
	Files Files
	Facts func(ctx context.Context) (Facts, error)
	// Lost reports, once Run's ctx has ended, whether the server has lost its power. The agent
	// then reports nothing. nil means never.
	Lost func() bool

	Clock Clock        // nil means real time
	Log   *slog.Logger // nil means slog.Default
	// Enter, if set, is called before the agent acts, and the function that it returns
	// afterwards, so that a virtual clock stands still meanwhile.
	Enter func() (leave func())
}

func (c *Config) complete() error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("node: configuration: %w", err)
	}
	if c.Files == nil || c.Facts == nil {
		return errors.New("node: no Files or no Facts")
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Enter == nil {
		c.Enter = func() func() { return func() {} }
	}
	if c.Lost == nil {
		c.Lost = func() bool { return false }
	}
	return nil
}

// nodeName returns the name of the node of a host: kubelets lower its host name, too.
func nodeName(host string) (string, error) {
	name := strings.ToLower(strings.TrimSpace(host))
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		return "", fmt.Errorf("host name %q cannot be the name of a Node: %s", host, errs[0])
	}
	return name, nil
}

// OSImage returns the name of the operating system in an os-release(5) file.
func OSImage(files Files) (string, error) {
	b, err := files.ReadFile("/etc/os-release")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`), nil
		}
	}
	return "", err
}
