package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

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
labctl up --kubeconfig, lab-controller. While there is too little space on the disk it
refuses changes, as the API of a lab does, and goes on when there is room.`,
		Example: `  labctl kube --state ./api
  labctl kube --listen 192.0.2.7:6443   # for clients elsewhere: the kubeconfig is all that keeps others out`,
		RunE: func(c *cobra.Command, _ []string) error {
			if at, err := netip.ParseAddrPort(listen); listen != "" && (err != nil || at.Port() == 0) {
				return usage.New(fmt.Errorf("--listen %q: use IP:PORT, such as 192.0.2.7:6443", listen))
			}
			if err := o.claim(); err != nil {
				return err
			}
			if err := needLoopback(); err != nil {
				return err
			}
			return runKube(c.Context(), o, listen, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "IP:PORT to listen on (default: a port of 127.0.0.1 that stays the same)")
	return c
}

// runKube runs the Kubernetes API until ctx ends or it fails, and writes how it ended. That is
// no deferred call: the Go runtime writes a panic, for which there would be no error.
func runKube(ctx context.Context, o *options, listen string, out, messages io.Writer) error {
	if lab.KubeRuns(o.state) {
		return fmt.Errorf("the Kubernetes API in %s runs already: its kubeconfig is %s", o.state, filepath.Join(o.state, lab.KubeDir, "kubeconfig"))
	}
	o.showEnding(messages)
	watch, err := watchProcess(o.state, "")
	if err != nil {
		return err
	}
	started := false
	err = keepKube(ctx, o, listen, func(api *kube.API) {
		started = true
		fmt.Fprintln(out, api.Kubeconfig())
	})
	switch {
	case watch == nil:
		return err
	case !started || interrupted(ctx, err): // its error is shown, or known, and it leaves nothing to explain
		return errors.Join(err, watch.End(nil))
	}
	return errors.Join(err, watch.End(err))
}

// keepKube starts the Kubernetes API, and keeps it up until ctx ends or it fails.
func keepKube(ctx context.Context, o *options, listen string, ready func(*kube.API)) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	room, err := lab.WatchKubeSpace(o.state, log)
	if err != nil {
		return err
	}
	var looking sync.WaitGroup
	looks, stop := context.WithCancel(ctx)
	looking.Go(func() { _ = room.Run(looks) }) // it has no errors
	defer looking.Wait()
	defer stop()
	defer kube.TrimCollector()()
	api, err := kube.Start(ctx, kube.Config{
		Dir: filepath.Join(o.state, lab.KubeDir), Fsync: o.explicit, FastPaths: kube.FastPathsWanted(), Listen: listen,
		Space: room.Writable, Log: logr.FromSlogHandler(log.Handler()),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Stop()) }()
	ready(api)
	<-api.Done()
	return api.Err()
}
