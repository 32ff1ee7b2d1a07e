package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/userdata"
	"github.com/metalab-dev/metalab/guest/node"
	"github.com/metalab-dev/metalab/lab"
)

// nodeUnit returns the lines of the unit of the node agent, which uses the configuration and
// the account of the LCM agent of its server.
func nodeUnit() []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(node.Unit, node.ConfigFile, userdata.ConfigFile), "\n"), "\n")
}

// nodes waits until each machine is a Node that is Ready.
func (d *day2) nodes(ctx context.Context) error {
	return d.until(ctx, "the Nodes are Ready", func() (bool, error) {
		ready := 0
		for _, x := range day2Machines {
			n := &corev1.Node{}
			if err := d.kube.Get(ctx, client.ObjectKey{Name: x.Name}, n); client.IgnoreNotFound(err) != nil {
				return false, err
			}
			for _, c := range n.Status.Conditions {
				if c.Type != corev1.NodeReady {
					continue
				}
				state := map[bool]string{true: "Ready", false: "NotReady"}[c.Status == corev1.ConditionTrue] // as kubectl prints it
				d.show("Node "+x.Name, state)
				if state == "Ready" {
					ready++
				}
			}
		}
		return ready == len(day2Machines), nil
	})
}

// charts waits until the Helm releases of the Cluster are installed, and ready.
func (d *day2) charts(ctx context.Context) error {
	return d.until(ctx, "the charts are installed", func() (bool, error) {
		b := &lcmv1.HelmBundle{}
		if err := d.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: "day2"}, b); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		ready := 0
		for _, name := range slices.Sorted(maps.Keys(b.Status.ReleaseStatuses)) {
			s := b.Status.ReleaseStatuses[name]
			state := s.Message
			if s.Success {
				state = fmt.Sprintf("%s, %s %s", s.Status, s.Chart, s.Version)
			}
			if s.Ready {
				state += ", ready"
				ready++
			}
			if state != "" {
				d.show("Helm release "+name, state)
			}
		}
		return ready > 0 && ready == len(b.Spec.Releases), nil
	})
}
