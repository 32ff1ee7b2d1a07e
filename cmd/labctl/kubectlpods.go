package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/lab"
)

// Users of kind run Pods. The API of a lab has no Nodes unless a family brings them, and no
// container ever runs in it: kubectl's own errors say neither.
const (
	noNodes = "labctl: this lab's API has no Nodes, Pods, Services and workloads, so nothing runs Pods; labctl down, then labctl up --with nodes, adds these kinds (its servers are BareMetalHosts: labctl kubectl get bmh)\n"
	noPods  = "labctl: no container runs in a lab: it has no scheduler and no kubelet, so a Pod stays Pending, without logs, until its spec.nodeName names a Ready Node (labctl docs day2)\n"
)

// runsPods are kubectl's commands that need containers, or make what would run in them.
var runsPods = []string{
	"attach", "autoscale", "cp", "debug", "exec", "logs", "port-forward", "rollout", "run", "scale", "top",
	"create cronjob", "create deployment", "create job",
}

// ofNodes are the names in kubectl of the kinds that the family config.Nodes brings.
var ofNodes = strings.Fields(`all
	node nodes no pod pods po service services svc endpoints ep replicationcontroller replicationcontrollers rc
	persistentvolume persistentvolumes pv persistentvolumeclaim persistentvolumeclaims pvc
	deployment deployments deploy daemonset daemonsets ds statefulset statefulsets sts replicaset replicasets rs
	job jobs cronjob cronjobs cj ingress ingresses ing networkpolicy networkpolicies netpol
	poddisruptionbudget poddisruptionbudgets pdb priorityclass priorityclasses pc storageclass storageclasses sc
	endpointslice endpointslices`)

// unknownKind matches the kind or resource in the errors about one that an API lacks.
var unknownKind = regexp.MustCompile(`doesn't have a resource type "([^"]+)"|no matches for kind "([^"]+)"|could not find the requested resource \([a-z]+ ([^)]+)\)`)

// lacksNodes reports whether an error of kubectl is about a kind of the family config.Nodes.
func lacksNodes(text string) bool {
	for _, m := range unknownKind.FindAllStringSubmatch(text, -1) {
		name, _, _ := strings.Cut(strings.ToLower(m[1]+m[2]+m[3]), ".")
		if slices.Contains(ofNodes, name) {
			return true
		}
	}
	return false
}

// podHints tell a user of kubectl what a lab has in the place of nodes and containers.
type podHints struct {
	o     *options
	nodes bool           // the API has the kinds of nodes
	asked *cobra.Command // the command of kubectl that runs
	out   io.Writer      // for hints
}

// newPodHints returns the hints for a command of kubectl; nil when the API is a cluster of the
// user's, where Pods may run, or nothing is known of the lab. workload means that the API is a Cluster's own.
func newPodHints(o *options, root *cobra.Command, args []string, workload bool) *podHints {
	s, found, err := lab.LoadSettings(o.state)
	if err != nil || !found || s.Kubeconfig != "" && !workload {
		return nil
	}
	asked, _, err := root.Find(args)
	if err != nil {
		return nil // kubectl tells it, and has no command that a hint would be about
	}
	return &podHints{o: o, nodes: workload || config.NeedNodes(s.Families()), asked: asked, out: os.Stderr}
}

// about reports whether the command is one of some, which are named as after kubectl.
func (h *podHints) about(some ...string) bool {
	path := strings.TrimPrefix(h.asked.CommandPath(), h.asked.Root().Name()+" ")
	return slices.ContainsFunc(some, func(c string) bool { return path == c || strings.HasPrefix(path, c+" ") })
}

// afterError shows the hint after kubectl's error.
func (h *podHints) afterError(text string) {
	switch {
	case h == nil:
	case !h.nodes && (lacksNodes(text) || h.about("cluster-info dump", "top")):
		h.o.say(h.out, noNodes)
	case h.nodes:
		h.afterSuccess()
	}
}

// afterSuccess shows the hint after a command that kubectl has done, though nothing follows of it.
func (h *podHints) afterSuccess() {
	if h == nil || !h.nodes || !h.about(runsPods...) {
		return
	}
	if dry := h.asked.Flags().Lookup("dry-run"); dry == nil || !dry.Changed {
		h.o.say(h.out, noPods)
	}
}

// clusterInfo makes kubectl cluster-info work where the API has no Services, among which it looks
// for those of the cluster.
func (h *podHints) clusterInfo(kubeconfig string) {
	if h == nil || h.nodes || h.asked.Name() != "cluster-info" {
		return
	}
	h.asked.Run = nil
	h.asked.RunE = func(c *cobra.Command, _ []string) error {
		api, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), "Kubernetes control plane is running at", api.Host)
		h.o.say(h.out, noNodes)
		return nil
	}
}

// exitAfter ends the process after a fatal error of kubectl, which prints it as kubectl does.
func (h *podHints) exitAfter(text string, code int) {
	if text != "" {
		fmt.Fprintln(os.Stderr, strings.TrimSuffix(text, "\n"))
	}
	h.afterError(text)
	os.Exit(code)
}

// watch makes fatal errors of kubectl come with a hint.
func (h *podHints) watch() {
	if h != nil {
		util.BehaviorOnFatal(h.exitAfter)
	}
}
