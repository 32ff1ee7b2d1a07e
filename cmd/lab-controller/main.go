// Lab-controller runs Metalab's controllers against any Kubernetes cluster that has their
// custom resource definitions (controller/config). It turns flags into the configuration
// of package controller/manager, which runs the controllers.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/tracing"
	"github.com/metalab-dev/metalab/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand(run).ExecuteContext(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "lab-controller:", err)
		if usage.Is(err) {
			os.Exit(usage.Status)
		}
		os.Exit(1)
	}
}

// newCommand returns the command, which calls work with its options.
func newCommand(work func(context.Context, options) error) *cobra.Command {
	o := defaults()
	c := &cobra.Command{
		Use:   "lab-controller",
		Short: "Provision bare-metal servers from the BareMetalHosts of a Kubernetes cluster",
		Long: `Provision bare-metal servers from the BareMetalHosts of a Kubernetes cluster.

Servers have to reach this process: their agents by HTTPS at the address and port of
--provisioning-address, their BMCs by HTTP at the next port and by HTTPS at the one
after. Of several processes one leads and the others stand by, unless
--leader-elect=false.

The exit status is 0 after SIGINT or SIGTERM, 2 for a wrong command line, and 1 after
another error or when another process has become the leader: restart it then.`,
		Example: `  lab-controller --provisioning-address 192.0.2.5                # in a cluster
  lab-controller --provisioning-address 192.0.2.5 --watch-namespaces east,west
  lab-controller --kubeconfig ~/.kube/config --provisioning-address 192.0.2.5:7000
  lab-controller --controllers=helm --helm-bundle default/c1 --kubeconfig MANAGEMENT  # in a pod of the cluster c1`,
		Version:      version.Read().String(),
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.resolve(); err != nil {
				return usage.New(err)
			}
			return work(c.Context(), *o)
		},
	}
	c.SetVersionTemplate("lab-controller {{.Version}}\n")
	o.bind(c.Flags())
	c.AddCommand(newProbe(), &cobra.Command{
		Use: "version", Short: "Print the version of lab-controller, its commit and its Kubernetes client",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "lab-controller", version.Read())
			return err
		},
	})
	usage.Strict(c)
	return c
}

// run runs the controllers until ctx ends.
func run(ctx context.Context, o options) (err error) {
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
	traces, stop, err := tracing.Start(ctx, "lab-controller", version.Read().Version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	c.Traces = traces
	set, err := manager.New(ctx, c)
	if err != nil {
		return err
	}
	log.Info("starts", "controllers", o.controllers, "agents", c.Agents.URL, "media", c.Media.URL)
	return set.Run(ctx)
}
