package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/manager"
)

// helmFlags are the flags of the Helm controller of one cluster.
type helmFlags struct {
	bundle string // NAMESPACE/NAME
	target string // file of a kubeconfig

	key client.ObjectKey // from bundle; set by resolveHelm
}

func (h *helmFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&h.bundle, "helm-bundle", "", "NAMESPACE/NAME of the one HelmBundle to work on, in the cluster of --kubeconfig, with --controllers=helm: its charts are installed in the cluster of this pod, and the controller of the management cluster leaves it alone meanwhile")
	f.StringVar(&h.target, "helm-target", "", "kubeconfig of the cluster to install these charts in (default: that of the pod)")
}

// resolveHelm validates the flags.
func (o *options) resolveHelm() error {
	h := &o.helm
	if h.bundle == "" {
		if h.target != "" {
			return errors.New("--helm-target needs --helm-bundle NAMESPACE/NAME")
		}
		return nil
	}
	namespace, name, _ := strings.Cut(h.bundle, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("--helm-bundle %q: use NAMESPACE/NAME", h.bundle)
	}
	h.key = client.ObjectKey{Namespace: namespace, Name: name}
	if !slices.Equal(o.controllers, []string{"helm"}) {
		return fmt.Errorf("--helm-bundle needs --controllers=helm, and has %s", strings.Join(o.controllers, ","))
	}
	if !o.elect {
		return errors.New("--helm-bundle needs the election: remove --leader-elect=false")
	}
	for flag, set := range map[string]bool{"provisioning-address": o.provisioning != "", watchFlag: o.flags.Changed(watchFlag)} { // in any order
		if set {
			return fmt.Errorf("--helm-bundle: remove --%s: this process works on one HelmBundle, and serves no server", flag)
		}
	}
	for flag, address := range map[string]string{"--metrics-address": o.metrics, "--health-address": o.health} { // in any order: each is checked alone
		if at, err := netip.ParseAddrPort(address); address != "0" && (err != nil || !at.Addr().IsLoopback()) {
			return fmt.Errorf("%s %s: with --helm-bundle use an address of loopback, as 127.0.0.1:9440, or 0 for none: this process has no certificate", flag, address)
		}
	}
	return nil
}

// configHelm completes the configuration of the Helm controller of one cluster.
func (o *options) configHelm(c manager.Config) (_ manager.Config, err error) {
	if c.API, err = o.cluster(); err != nil {
		return c, err
	}
	c.Helm = &manager.HelmOfCluster{Bundle: o.helm.key}
	if o.helm.target != "" {
		c.Helm.Target, err = clientcmd.BuildConfigFromFlags("", o.helm.target)
	} else if c.Helm.Target, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
		err = errors.New("this process does not run in a pod of a cluster: give it a kubeconfig")
	}
	if err != nil {
		return c, fmt.Errorf("--helm-target %s: %w", o.helm.target, err)
	}
	c.Election = manager.HelmElection(o.helm.key)
	c.Election.LeaseDuration = o.leaseDuration
	return c, nil
}

// probeTimeout limits a probe.
const probeTimeout = 5 * time.Second

// newProbe returns the command that a pod of the image runs as its probe, as the health probes listen
// on loopback alone, which the kubelet does not reach.
func newProbe() *cobra.Command {
	address := defaults().health
	c := &cobra.Command{
		Use: "probe healthz|readyz", Short: "Ask a lab-controller of this pod whether it serves, or is ready",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] != "healthz" && args[0] != "readyz" {
				return usage.New(fmt.Errorf("probe takes healthz or readyz, not %q", strings.Join(args, " ")))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			url := "http://" + address + "/" + args[0]
			r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			resp, err := (&http.Client{Timeout: probeTimeout}).Do(r)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", url, resp.Status)
			}
			return nil
		},
	}
	c.Flags().StringVar(&address, "health-address", address, "address of /healthz and /readyz")
	return c
}
