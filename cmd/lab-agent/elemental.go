//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/agent/elemental"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/guest/elementalsim"
	"github.com/metalab-dev/metalab/version"
)

// elementalAlias is the name by which the program is the Elemental agent.
const elementalAlias = "elemental-agent"

// elementalCommand is the Elemental agent: lab-agent elemental, or elemental-agent.
func elementalCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "elemental",
		Short: "Register, install, bootstrap, update and reset this server as an ElementalHost",
		Long: "Register, install, bootstrap, update and reset this server as an ElementalHost of Cluster API's provider for Elemental.\n\n" +
			"agent.osPlugin of the configuration chooses the plugin that changes the server: dummy (or a path that ends in dummy.so) writes files for an administrator's automation, elemental-sim (or a path that ends in elemental.so) acts on them, too, and ERASES the disk that install.device names.\n\n" +
			"With --root all files are below a directory. Reboots are refused there, and the host name is written to etc/hostname below it.",
	}
	var root string
	c.PersistentFlags().StringVar(&root, "root", "/", "directory that has the server's files")
	for name, short := range map[string]string{
		"register": "Register this server", "install": "Install this server after its registration",
		"run": "Poll the ElementalHost: bootstrap, update, trigger a reset", "reset": "Reset this server after its preparation",
	} {
		a := &elemental.Arguments{}
		sub := &cobra.Command{
			Use: name, Short: short,
			RunE: func(cmd *cobra.Command, _ []string) error {
				level := slog.LevelInfo
				if a.Debug {
					level = slog.LevelDebug
				}
				return runElemental(cmd.Context(), name, root, *a, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})))
			},
		}
		sub.Flags().AddFlagSet(a.Flags(name))
		c.AddCommand(sub)
	}
	c.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "elemental-agent "+version.Read().Version)
			return err
		},
	})
	return c
}

// scratchHost is a Host below a scratch root: it has a host name of its own.
type scratchHost struct{ *sys.Host }

// Exec runs a command, and sets the host name below the root in place of hostnamectl.
func (h scratchHost) Exec(ctx context.Context, c sys.Command) (int, error) {
	if len(c.Args) == 3 && c.Args[0] == "hostnamectl" && c.Args[1] == "set-hostname" {
		return 0, h.Put(sys.File{Name: "/etc/hostname", Mode: 0o644, Content: []byte(c.Args[2] + "\n")})
	}
	return h.Host.Exec(ctx, c)
}

func runElemental(ctx context.Context, command, root string, a elemental.Arguments, log *slog.Logger) error {
	host, err := sys.OpenHost(root)
	if err != nil {
		return err
	}
	unlock, err := lockElemental(host)
	if err != nil {
		return err
	}
	defer unlock()
	c := elemental.Config{
		System: host, Version: version.Read().Version, Log: log,
		Plugins: elemental.Makers{
			elemental.DummyPlugin: func(s elemental.System) elemental.Plugin {
				return &elemental.Dummy{System: s, CompatReset: a.CompatReset}
			},
			elemental.SimPlugin: elementalsim.New(elementalsim.Config{Devices: sys.Linux{}, CompatReset: a.CompatReset}),
		},
	}
	if host.Path("/") != "/" { // no disk of this machine is one of the scratch root's server
		c.System = scratchHost{host}
		delete(c.Plugins, elemental.SimPlugin)
	}
	return elemental.Execute(ctx, command, c, a)
}

// lockElemental makes sure that one Elemental agent runs on a system. The lock ends with the
// process.
func lockElemental(host *sys.Host) (unlock func(), err error) {
	return lock(host.Path("/run/lab-agent-elemental.lock"), "Elemental")
}

// lock takes the lock of an agent in a file.
func lock(name, agent string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, fs.FileMode(0o600))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another %s agent runs on this system: %w", name, agent, err), f.Close())
	}
	return func() { f.Close() }, nil
}
