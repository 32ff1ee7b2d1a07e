//go:build linux

// Lab-agent is the in-band agent of Metalab: it runs on the ramdisk that a server
// boots for inspection, cleaning and provisioning, and as the LCM agent, the Elemental
// agent or the machine-config daemon on a server that is installed. It builds a
// configuration from flags, files, the environment and the kernel's command line;
// packages agent, agent/lcm, agent/elemental and agent/machineconfig do the work.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/agent"
	"github.com/metalab-dev/metalab/agent/boot"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/plugin/inventory"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	first := boot.IsFirstProcess()
	err := prepare(ctx, first)
	if err == nil {
		c := command()
		if filepath.Base(os.Args[0]) == elementalAlias {
			c.SetArgs(append([]string{"elemental"}, os.Args[1:]...))
		}
		err = c.ExecuteContext(ctx)
	}
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "lab-agent:", err)
	if first {
		select {} // a kernel whose first process ends panics and hides the error on the screen
	}
	stop()
	if usage.Is(err) {
		os.Exit(usage.Status)
	}
	os.Exit(1)
}

// prepare sets up the system if this process is the first one.
func prepare(ctx context.Context, first bool) error {
	if !first {
		return nil
	}
	if err := boot.Mount(); err != nil {
		return err
	}
	return boot.Init(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

// Names of the media file's path in the environment and on the kernel's command
// line.
const (
	mediaEnv   = "METALAB_AGENT_CONFIG"
	mediaParam = "metalab.config" // parameter of the kernel command line
)

func command() *cobra.Command {
	var flag, key, scratch string
	root := &cobra.Command{
		Use:           "lab-agent",
		Short:         "Do the controller's work on this machine: inventory, cleaning, writing images",
		Version:       version.Read().String(),
		Args:          rootArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmdline, err := os.ReadFile("/proc/cmdline")
			if err != nil {
				return err
			}
			media, err := loadMedia(mediaPath(flag, os.Getenv(mediaEnv), string(cmdline)))
			if err != nil {
				return err
			}
			private, err := agent.LoadKey(key)
			if err != nil {
				return err
			}
			return agent.Run(cmd.Context(), agent.Config{
				Media:  media,
				Key:    private,
				System: sys.Linux{ScratchDir: scratch},
				Log:    slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
			})
		},
	}
	root.Flags().StringVar(&flag, "media", "", "file that tells where the controller is (default $"+
		mediaEnv+", or "+mediaParam+"= on the kernel's command line)")
	root.Flags().StringVar(&key, "key", "/run/metalab/agent.key", "file, in memory, with the key that identifies the agent during this boot; it is made if it does not exist")
	root.Flags().StringVar(&scratch, "scratch", "", "directory for downloads (default $TMPDIR or /tmp)")
	var listen time.Duration
	show := &cobra.Command{
		Use:   "inventory",
		Short: "Print what the agent would report of this machine, as JSON",
		RunE: func(cmd *cobra.Command, _ []string) error {
			hardware, err := inventory.Collect(cmd.Context(), sys.Linux{})
			if err != nil {
				return err
			}
			inventory.Neighbours(cmd.Context(), sys.Linux{}, hardware.NICs, listen)
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			return out.Encode(hardware)
		},
	}
	show.Flags().DurationVar(&listen, "listen", 0, "how long to listen for what switches tell of themselves (LLDP; most do every 30s)")
	root.AddCommand(show, lcmCommand(), elementalCommand(), mcdCommand(), versionCommand())
	root.SetVersionTemplate("lab-agent {{.Version}}\n")
	usage.Strict(root)
	return root
}

// versionCommand prints the line that --version prints.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of lab-agent and its commit",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "lab-agent", version.Read())
			return err
		},
	}
}

// rootArgs rejects arguments, except those of a kernel, which passes unknown
// arguments to its first process.
func rootArgs(c *cobra.Command, args []string) error {
	if boot.IsFirstProcess() {
		return nil
	}
	return usage.NoArguments(c, args)
}

// mediaPath returns the first of the three that is set.
func mediaPath(flag, env, cmdline string) string {
	if flag != "" {
		return flag
	}
	if env != "" {
		return env
	}
	path := ""
	for word := range strings.FieldsSeq(cmdline) {
		if value, ok := strings.CutPrefix(word, mediaParam+"="); ok {
			path = strings.Trim(value, `"`) // the last one applies, as in the kernel
		}
	}
	return path
}

func loadMedia(path string) (job.Media, error) {
	if path == "" {
		return job.Media{}, errors.New("no media file: give --media, $" + mediaEnv + " or " + mediaParam + "=")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return job.Media{}, err
	}
	var m job.Media
	if err := json.Unmarshal(b, &m); err != nil {
		return job.Media{}, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
