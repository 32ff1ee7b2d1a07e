package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/machineconfig"
)

func newMCO(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "mco",
		Short: "Show the machine configuration of nodes, and the builds of their images",
		Long:  "Show the machine configuration of nodes, and the builds of their images, in a lab of the family " + config.MachineConfig + ".",
	}
	c.AddCommand(newMCOStatus(o), newMCOLogs(o))
	return c
}

// nodeStatus is a node of a pool for output.
type nodeStatus struct {
	Node         string `json:"node"`
	Current      string `json:"currentConfig,omitempty"`
	Desired      string `json:"desiredConfig,omitempty"`
	CurrentImage string `json:"currentImage,omitempty"`
	DesiredImage string `json:"desiredImage,omitempty"`
	State        string `json:"state,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

func newMCOStatus(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "status POOL",
		Short:   "Show configuration, image, state and reason of each node of a MachineConfigPool",
		Example: "  labctl mco status worker\n  labctl mco status worker -o wide",
		Args:    usage.Arguments("POOL"),
		RunE: func(c *cobra.Command, args []string) error {
			kube, err := mcoClient(c.Context(), o)
			if err != nil {
				return err
			}
			nodes, err := nodesOfPool(c.Context(), kube, args[0])
			if err != nil {
				return err
			}
			rows := [][]string{{"NODE", "CURRENT", "DESIRED", "STATE", "REASON", "+CURRENT IMAGE", "+DESIRED IMAGE"}}
			for _, n := range nodes {
				rows = append(rows, []string{n.Node, n.Current, n.Desired, n.State, n.Reason, n.CurrentImage, n.DesiredImage})
			}
			return o.output.print(c.OutOrStdout(), nodes, rows)
		},
	}
}

// mcoClient returns a client of the lab's API.
func mcoClient(ctx context.Context, o *options) (client.Client, error) {
	st, _, err := inspect(ctx, o)
	if err != nil {
		return nil, err
	}
	if st.Kubeconfig == "" {
		return nil, errors.New("this lab has no Kubernetes API: it was made with --no-kube")
	}
	return kubeClient(st.Kubeconfig)
}

// nodesOfPool returns the nodes of a pool, by name.
func nodesOfPool(ctx context.Context, kube client.Client, pool string) ([]nodeStatus, error) {
	err := kube.Get(ctx, client.ObjectKey{Name: pool}, &mcv1.MachineConfigPool{})
	switch {
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("this lab lacks the family %s: stop it with labctl down, and start it with labctl up --with %s", config.MachineConfig, config.MachineConfig)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no MachineConfigPool %q: labctl kubectl get mcp lists them", pool)
	case err != nil:
		return nil, err
	}
	var of mcv1.MachineConfigNodeList
	if err := kube.List(ctx, &of); err != nil {
		return nil, err
	}
	out := []nodeStatus{}
	for _, m := range of.Items {
		if m.Spec.Pool.Name != pool {
			continue
		}
		n := &corev1.Node{}
		if err := kube.Get(ctx, client.ObjectKey{Name: m.Spec.Node.Name}, n); client.IgnoreNotFound(err) != nil {
			return nil, err
		} else if err != nil {
			continue
		}
		a := n.Annotations
		out = append(out, nodeStatus{
			Node: n.Name, Current: a[machineconfig.CurrentConfig], Desired: a[machineconfig.DesiredConfig],
			CurrentImage: a[machineconfig.CurrentImage], DesiredImage: a[machineconfig.DesiredOSImage], State: a[machineconfig.State], Reason: a[machineconfig.Reason],
		})
	}
	slices.SortFunc(out, func(a, b nodeStatus) int { return cmp.Compare(a.Node, b.Node) })
	return out, nil
}

func newMCOLogs(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "logs BUILD",
		Short:   "Show the log of a MachineOSBuild that the lab's builder has executed",
		Example: "  labctl kubectl get machineosbuilds\n  labctl mco logs BUILD",
		Args:    usage.Arguments("BUILD"),
		RunE: func(c *cobra.Command, args []string) error {
			kube, err := mcoClient(c.Context(), o)
			if err != nil {
				return err
			}
			log, err := buildLog(c.Context(), kube, args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), log)
			return err
		},
	}
}

// buildLog returns the log of a build.
func buildLog(ctx context.Context, kube client.Client, build string) (string, error) {
	m := &corev1.ConfigMap{}
	err := kube.Get(ctx, client.ObjectKey{Namespace: machineconfig.Namespace, Name: machineconfig.LogPrefix + build}, m)
	if err == nil {
		return m.Data[machineconfig.LogKey], nil
	}
	if !apierrors.IsNotFound(err) {
		return "", err
	}
	if err := kube.Get(ctx, client.ObjectKey{Name: build}, &mcv1.MachineOSBuild{}); err != nil {
		if meta.IsNoMatchError(err) {
			return "", fmt.Errorf("this lab lacks the family %s: stop it with labctl down, and start it with labctl up --with %s", config.MachineConfig, config.MachineConfig)
		}
		return "", fmt.Errorf("there is no MachineOSBuild %q: labctl kubectl get machineosbuilds lists them", build)
	}
	return "", fmt.Errorf("MachineOSBuild %s has no log: it has not begun, its image was carried over, or a cluster of yours has built it: labctl kubectl -n %s logs job/build-%s shows that", build, machineconfig.Namespace, build)
}
