package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newKubectl(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--state DIR] [--workload CLUSTER] ARGUMENT...",
		Short: "Run upstream's kubectl against the lab",
		Long: `Run upstream's kubectl against the lab's Kubernetes API.

All arguments except a leading --state and --workload are kubectl's: see labctl kubectl help. The
help, and kubectl's --kubeconfig, need no running lab.

--workload [NAMESPACE/]NAME asks the Kubernetes API that a Cluster has of its own.

A lab's API has Nodes, Pods, Services and workloads when it was made, or is started, with
labctl up --with nodes, or a family that needs them. Its Nodes are servers whose node agents
have registered them: no container runs in them, and kubectl logs and exec have nothing to show.`,
		Example: `  labctl kubectl apply -f hosts.yaml
  labctl kubectl wait bmh/node-0 --for=jsonpath='{.status.provisioning.state}'=available --timeout=5m
  labctl kubectl --workload c1 get nodes`,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			args, workload, err := takeFlags(o, args)
			if err != nil {
				return err
			}
			if namesCluster(args) || asksForHelp(args) {
				return kubectl("", args, nil)
			}
			if err := o.resolve(c); err != nil {
				return err
			}
			st, err := control.NewClient(o.state).Status(c.Context())
			if err != nil {
				return err
			}
			if st.Kubeconfig == "" {
				return errors.New("this lab has no Kubernetes API: it was made with --no-kube")
			}
			kubeconfig := st.Kubeconfig
			if workload != "" {
				if kubeconfig, err = kubeconfigOf(st, workload); err != nil {
					return err
				}
			}
			return kubectl(kubeconfig, args, func(root *cobra.Command) *podHints {
				return newPodHints(o, root, args, workload != "")
			})
		},
	}
}

// takeFlags removes labctl's own flags from the front of kubectl's arguments. Cobra leaves them
// there because it parses none of them.
func takeFlags(o *options, args []string) (rest []string, workload string, err error) {
	for len(args) > 0 {
		name, value, inline := strings.Cut(args[0], "=")
		to, known := map[string]*string{"--state": &o.state, "--workload": &workload}[name]
		switch {
		case !known:
			return args, workload, nil
		case inline:
			*to, args = value, args[1:]
		case len(args) > 1:
			*to, args = args[1], args[2:]
		case name == "--state":
			return nil, "", usage.New(errors.New("--state needs a directory"))
		default:
			return nil, "", usage.New(errors.New("--workload needs the name of a Cluster"))
		}
	}
	return args, workload, nil
}

// kubeconfigOf returns the kubeconfig of a Cluster's own Kubernetes API.
func kubeconfigOf(st control.Status, cluster string) (string, error) {
	key := cluster
	if !strings.Contains(cluster, "/") {
		key = "default/" + cluster
	}
	var have []string
	for _, a := range st.ClusterAPIs {
		if a.Cluster == key {
			return a.Kubeconfig, nil
		}
		have = append(have, a.Cluster)
	}
	if len(have) == 0 {
		return "", fmt.Errorf("--workload %s: no Cluster of the lab has a Kubernetes API of its own: create one with the annotation metalab.dev/kubernetes-api: own", cluster)
	}
	return "", fmt.Errorf("--workload %s: the Cluster %s has no Kubernetes API of its own: give one of %s", cluster, key, strings.Join(have, ", "))
}

// namesCluster reports whether kubectl's arguments name a cluster.
func namesCluster(args []string) bool {
	for _, a := range args {
		switch {
		case a == "--":
			return false
		case a == "--kubeconfig", strings.HasPrefix(a, "--kubeconfig="):
			return true
		}
	}
	return false
}

// asksForHelp reports whether kubectl is only asked for help.
func asksForHelp(args []string) bool {
	if len(args) == 0 || slices.Contains([]string{"help", "options", "completion"}, args[0]) {
		return true
	}
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--help", "-h":
			return true
		}
	}
	return false
}

// kubectl runs kubectl in this process, with the given kubeconfig unless args name
// another cluster. hints, which may be nil, returns the hints for the command of kubectl.
func kubectl(kubeconfig string, args []string, hints func(root *cobra.Command) *podHints) error {
	if kubeconfig != "" {
		if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
			return fmt.Errorf("kubectl: %w", err)
		}
	}
	pflag.CommandLine = foreign
	// kubectl reads its arguments from os.Args for its plugins.
	os.Args = append([]string{"kubectl"}, args...)
	command := cmd.NewDefaultKubectlCommand()
	var h *podHints
	if hints != nil {
		h = hints(command)
	}
	h.clusterInfo(kubeconfig)
	h.watch()
	if err := cli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err) // prints the error as kubectl does, and exits with its code
		return exitCode(1)
	}
	h.afterSuccess()
	return nil
}
