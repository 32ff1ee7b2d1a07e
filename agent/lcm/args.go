package lcm

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/agent/unit"
)

// ConfigFile is the default path of the configuration file.
const ConfigFile = "/etc/lab-agent/lcm.yaml"

// Unit is the systemd unit of the agent, lab-agent-lcm.service, for a program in
// /usr/local/bin. User data of a server installs and enables it.
var Unit = unit.Service("LCM agent", "lcm --config "+ConfigFile, "")

// Options are the arguments of the agent's command.
type Options struct {
	Account
	Config   string        // path of the configuration file
	Poll     time.Duration // see Config.Poll
	KeepUser bool          // see Config.KeepUser
	// Ignored is the reason why arguments of an upgrade were not used; nil if they were.
	Ignored error
}

// Flags returns the flags that set options. A flag that is not given leaves its option.
func (o *Options) Flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("lab-agent lcm", pflag.ContinueOnError)
	f.StringVar(&o.Config, "config", orElse(o.Config, ConfigFile), "file with server, caFile, tokenFile, namespace and machine, in YAML; flags go before it")
	f.StringVar(&o.Server, "server", o.Server, "https URL of the Kubernetes API")
	f.StringVar(&o.CAFile, "ca-file", o.CAFile, "file with the certificates that sign the API's, in PEM")
	f.StringVar(&o.TokenFile, "token-file", o.TokenFile, "file with the token of the agent's service account; it is replaced when the token is renewed")
	f.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the LCMMachine")
	f.StringVar(&o.Machine, "machine", o.Machine, "name of the LCMMachine")
	f.DurationVar(&o.Poll, "poll", o.Poll, "time between two looks at the LCMMachine, beside those that a change causes (default 1m)")
	f.BoolVar(&o.KeepUser, "keep-user", o.KeepUser, "run playbooks as the agent's user, whatever their become")
	return f
}

// ParseArgs returns the options of the agent's command: those of the configuration file,
// then those that an upgrade has given, then those of args. files has the configuration
// file and the agent's state.
func ParseArgs(args []string, files Files) (Options, error) {
	var first Options
	given := first.Flags()
	if err := given.Parse(args); err != nil {
		return Options{}, err
	}
	if given.NArg() > 0 {
		return Options{}, fmt.Errorf("argument %q: lab-agent lcm takes flags only", given.Arg(0))
	}
	var out Options
	text, err := files.ReadFile(first.Config)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !given.Changed("config"): // flags may have all
	case err != nil:
		return Options{}, fmt.Errorf("configuration: %w", err)
	default:
		if err := out.ReadAccount(text); err != nil {
			return Options{}, fmt.Errorf("%s: %w", first.Config, err)
		}
	}
	upgraded, err := Args(files)
	if err == nil {
		with := out
		if err = with.Flags().Parse(upgraded); err == nil {
			out = with
		}
	}
	out.Ignored = err
	if err := out.Flags().Parse(args); err != nil {
		return Options{}, err
	}
	return out, out.Validate()
}
