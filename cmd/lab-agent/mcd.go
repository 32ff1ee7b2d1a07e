//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/agent/machineconfig"
	"github.com/metalab-dev/metalab/agent/machineconfig/deployment"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/cmd/usage"
)

// mcdCommand is the machine-config daemon of a node.
func mcdCommand() *cobra.Command {
	var root string
	var unit bool
	c := &cobra.Command{
		Use:     "mcd",
		Aliases: []string{"machine-config-daemon"},
		Short:   "Bring this node to its rendered MachineConfig and OS image",
		Long: "Bring this node to the rendered MachineConfig and the OS image that the annotations of its Node name. Images are booted by rpm-ostree.\n\n" +
			"With --root all files are below a directory, the configuration's included. Services are not touched, and reboots and images are refused.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if unit {
				_, err := io.WriteString(cmd.OutOrStdout(), machineconfig.Unit)
				return err
			}
			return runMCD(cmd.Context(), root, mcdArgs(cmd.Flags()), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
		},
	}
	c.Flags().String("config", machineconfig.ConfigFile, "file with server, caFile, tokenFile and node, in YAML")
	c.Flags().StringVar(&root, "root", "/", "directory that has the node's files")
	c.Flags().BoolVar(&unit, "print-unit", false, "print the systemd unit of the daemon and end")
	return c
}

// mcdArgs returns the daemon's flags that were given.
func mcdArgs(f *pflag.FlagSet) (args []string) {
	f.Visit(func(flag *pflag.Flag) {
		if flag.Name == "config" {
			args = append(args, "--config="+flag.Value.String())
		}
	})
	return args
}

// runMCD runs the daemon.
func runMCD(ctx context.Context, root string, args []string, log *slog.Logger) error {
	host, err := sys.OpenHost(root)
	if err != nil {
		return err
	}
	account, err := machineconfig.ParseArgs(args, host)
	if err != nil {
		return usage.New(err)
	}
	unlock, err := lock(host.Path("/run/lab-agent-mcd.lock"), "machine-config")
	if err != nil {
		return err
	}
	defer unlock()
	c := machineconfig.Config{Account: account, System: host, OS: deployment.RPMOSTree{Exec: host.Exec}, Monitor: host, Log: log}
	if root != "/" {
		c.System, c.OS = scratchSystem{host}, scratchOS{}
	}
	return machineconfig.Run(ctx, c)
}

// scratchSystem is a scratch root: its units are files, and systemd runs none of them.
type scratchSystem struct{ *sys.Host }

// Exec accepts systemctl, and refuses all else.
func (scratchSystem) Exec(_ context.Context, c sys.Command) (int, error) {
	if c.Args[0] != "systemctl" {
		return 0, fmt.Errorf("%s: no command runs for a scratch root", c.Args[0])
	}
	return 0, nil
}

// scratchOS is the image phase of a scratch root, which boots nothing.
type scratchOS struct{ deployment.RPMOSTree }

// Booted implements machineconfig.OS.
func (scratchOS) Booted(context.Context) (deployment.Root, error) { return deployment.Root{}, nil }

// Stage implements machineconfig.OS.
func (scratchOS) Stage(context.Context, deployment.Next) error {
	return fmt.Errorf("a scratch root boots no images")
}

// Unstage implements machineconfig.OS.
func (scratchOS) Unstage(context.Context) error { return nil }
