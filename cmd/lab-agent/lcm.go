//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/agent/plugin/inventory"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/version"
)

// lcmCommand is the LCM agent of a server that is installed.
func lcmCommand() *cobra.Command {
	var root string
	var unit bool
	c := &cobra.Command{
		Use:   "lcm",
		Short: "Run the state items of an LCMMachine on this server",
		Long: "Run the state items of an LCMMachine on this server, and report to its status.\n\n" +
			"With --root all files are below a directory, the configuration's included. Commands run in this system. Reboots are refused, and an upgrade of a program that is not below the directory.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if unit {
				_, err := io.WriteString(cmd.OutOrStdout(), lcm.Unit)
				return err
			}
			return runLCM(cmd.Context(), root, lcmArgs(cmd.Flags()), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
		},
	}
	c.Flags().AddFlagSet((&lcm.Options{}).Flags())
	c.Flags().StringVar(&root, "root", "/", "directory that has the agent's files")
	c.Flags().BoolVar(&unit, "print-unit", false, "print the systemd unit of the agent and end")
	return c
}

// lcmArgs returns the flags that were given, but for those of the command alone.
func lcmArgs(f *pflag.FlagSet) (args []string) {
	known := (&lcm.Options{}).Flags()
	f.Visit(func(flag *pflag.Flag) {
		if known.Lookup(flag.Name) != nil {
			args = append(args, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return args
}

// runLCM runs the agent, and starts the program that has replaced it.
func runLCM(ctx context.Context, root string, args []string, log *slog.Logger) error {
	host, err := sys.OpenHost(root)
	if err != nil {
		return err
	}
	o, err := lcm.ParseArgs(args, host)
	if err != nil {
		return usage.New(err)
	}
	if o.Ignored != nil {
		log.Warn("arguments of the last upgrade are ignored", "error", o.Ignored)
	}
	unlock, err := lockFile(host)
	if err != nil {
		return err
	}
	defer unlock()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	c := lcm.Config{
		Account:   o.Account,
		System:    host,
		Hardware:  func(ctx context.Context) (job.Hardware, error) { return inventory.Collect(ctx, sys.Linux{}) },
		Addresses: host.Addresses,
		Version:   version.Read().Version,
		SHA256:    lcm.Sum(b),
		KeepUser:  o.KeepUser || os.Geteuid() != 0,
		Poll:      o.Poll,
		Log:       log,
	}
	// Below a scratch root nothing else is replaced.
	if below, err := filepath.Rel(host.Path("/"), program); err == nil && filepath.IsLocal(below) {
		c.Program = "/" + below
	}
	err = lcm.Run(ctx, c)
	if upgraded := new(lcm.UpgradedError); errors.As(err, &upgraded) {
		log.Info("the program was replaced, and is started", "version", upgraded.Version)
		return syscall.Exec(program, os.Args, os.Environ())
	}
	return err
}

// lockFile makes sure that one agent runs on a system: two would run the same items. The
// lock ends with the process, also when it starts another program.
func lockFile(host *sys.Host) (unlock func(), err error) {
	return lock(host.Path("/run/lab-agent-lcm.lock"), "LCM")
}
