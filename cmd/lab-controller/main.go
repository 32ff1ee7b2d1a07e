// Lab-controller runs Metalab's controllers against any Kubernetes cluster that
// has their definitions (controller/config). It turns flags into a
// configuration; the work is that of package controller/manager.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalab-dev/metalab/controller/manager"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand(run).ExecuteContext(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "lab-controller:", err)
		os.Exit(1)
	}
}

// newCommand is the command, which starts work with what it is told.
func newCommand(work func(context.Context, options) error) *cobra.Command {
	o := defaults()
	c := &cobra.Command{
		Use:   "lab-controller",
		Short: "Provision bare-metal servers as BareMetalHosts of a Kubernetes cluster say",
		Long: `Provision bare-metal servers as BareMetalHosts of a Kubernetes cluster say.

Servers must reach it: their agents by HTTPS at the address and port that
--provisioning-address names, their BMCs by HTTP at the next port, and by HTTPS at
the one after. Of several processes one works and the others stand by, unless --leader-elect=false.

It ends with 0 when it is told to, and with 1 when something failed, or when
another process has become the leader: whoever runs it starts it again.`,
		Example: `  lab-controller --provisioning-address 192.0.2.5                # in a cluster
  lab-controller --kubeconfig ~/.kube/config --provisioning-address 192.0.2.5:7000`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.resolve(); err != nil {
				return err
			}
			return work(c.Context(), *o)
		},
	}
	o.bind(c.Flags())
	return c
}

// run works until ctx ends.
func run(ctx context.Context, o options) error {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	c, err := o.config(ctx, log)
	if err != nil {
		return err
	}
	set, err := manager.New(ctx, c)
	if err != nil {
		return err
	}
	log.Info("starts", "controllers", o.controllers, "agents", c.Agents.URL, "media", c.Media.URL)
	return set.Run(ctx)
}
