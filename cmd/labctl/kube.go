package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/lab"
)

func newKube(o *options) *cobra.Command {
	listen := ""
	c := &cobra.Command{
		Use:   "kube",
		Short: "Run only the lab's Kubernetes API",
		Long: `Run the Kubernetes API of a lab, with the CRDs of its hosts, without servers and
controllers. Other programs use it with the kubeconfig whose path it prints:
labctl up --kubeconfig, lab-controller.`,
		Example: `  labctl kube --state ./api
  labctl kube --listen 192.0.2.7:6443   # for clients elsewhere: the kubeconfig is all that keeps others out`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if at, err := netip.ParseAddrPort(listen); listen != "" && (err != nil || at.Port() == 0) {
				return usage.New(fmt.Errorf("--listen %q: use IP:PORT, such as 192.0.2.7:6443", listen))
			}
			if err := o.claim(); err != nil {
				return err
			}
			ctx := c.Context()
			api, err := kube.Start(ctx, kube.Config{
				Dir: filepath.Join(o.state, lab.KubeDir), Fsync: o.explicit, FastPaths: kube.FastPathsWanted(), Listen: listen,
				Log: logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
			})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, api.Stop()) }()
			fmt.Fprintln(c.OutOrStdout(), api.Kubeconfig())
			<-api.Done()
			return api.Err()
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "IP:PORT to listen on (default: a port of 127.0.0.1 that stays the same)")
	return c
}
