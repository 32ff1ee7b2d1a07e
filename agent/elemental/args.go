package elemental

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Arguments are those of a command of the agent.
type Arguments struct {
	File        string // --config
	Debug       bool
	Install     bool // --install of register: install the server, too
	CompatReset bool // see Dummy
}

// commands are the commands of the agent but for version, by their names.
var commands = map[string]func(context.Context, Config, Arguments) error{
	"register": func(ctx context.Context, c Config, a Arguments) error { return Register(ctx, c, a.Install) },
	"install":  func(ctx context.Context, c Config, _ Arguments) error { return Install(ctx, c) },
	"run":      func(ctx context.Context, c Config, _ Arguments) error { return Run(ctx, c) },
	"reset":    func(ctx context.Context, c Config, _ Arguments) error { return Reset(ctx, c) },
}

// Flags returns the flags of a command.
func (a *Arguments) Flags(command string) *pflag.FlagSet {
	f := pflag.NewFlagSet("elemental "+command, pflag.ContinueOnError)
	f.StringVar(&a.File, "config", DefaultConfigFile, "file with registration and agent, in YAML")
	f.BoolVar(&a.Debug, "debug", false, "log more")
	f.BoolVar(&a.CompatReset, "compat-reset", false, "write reset.yaml before looking for needs.reset, as version 0.7.0 of the provider's dummy plugin does")
	if command == "register" {
		f.BoolVar(&a.Install, "install", false, "install the server after the registration")
	}
	return f
}

// Execute runs a command with its arguments. c.File is replaced.
func Execute(ctx context.Context, command string, c Config, a Arguments) error {
	do, ok := commands[command]
	if !ok {
		return fmt.Errorf("elemental %s: use one of %s", command, strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
	}
	c.File = a.File
	return do(ctx, c, a)
}

// ParseArgs reads a command line: the command, and its flags.
func ParseArgs(args []string) (command string, a Arguments, err error) {
	if len(args) == 0 || commands[args[0]] == nil {
		return "", a, fmt.Errorf("elemental %s: give one of the commands %s", strings.Join(args, " "), strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
	}
	f := a.Flags(args[0])
	if err := f.Parse(args[1:]); err != nil {
		return "", a, fmt.Errorf("elemental %s: %w", args[0], err)
	}
	if f.NArg() > 0 {
		return "", a, fmt.Errorf("elemental %s takes no argument %q", args[0], f.Arg(0))
	}
	return args[0], a, nil
}
