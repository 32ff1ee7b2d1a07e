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

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newKubectl(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--state DIR] ARGUMENT...",
		Short: "Run upstream's kubectl against the lab",
		Long: `Run upstream's kubectl against the lab's Kubernetes API.

All arguments except a leading --state are kubectl's: see labctl kubectl help. The
help, and kubectl's --kubeconfig, need no running lab.`,
		Example: `  labctl kubectl apply -f hosts.yaml
  labctl kubectl wait bmh/node-0 --for=jsonpath='{.status.provisioning.state}'=available --timeout=5m`,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := takeState(o, args)
			if err != nil {
				return err
			}
			if namesCluster(args) || asksForHelp(args) {
				return kubectl("", args)
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
			return kubectl(st.Kubeconfig, args)
		},
	}
}

// takeState removes labctl's own flag from the front of kubectl's arguments. Cobra
// leaves it there because it parses none of them.
func takeState(o *options, args []string) ([]string, error) {
	for len(args) > 0 {
		value, inline := strings.CutPrefix(args[0], "--state=")
		switch {
		case inline:
			o.state, args = value, args[1:]
		case args[0] == "--state" && len(args) > 1:
			o.state, args = args[1], args[2:]
		case args[0] == "--state":
			return nil, &usageError{errors.New("--state needs a directory")}
		default:
			return args, nil
		}
	}
	return args, nil
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
// another cluster.
func kubectl(kubeconfig string, args []string) error {
	if kubeconfig != "" {
		if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
			return fmt.Errorf("kubectl: %w", err)
		}
	}
	pflag.CommandLine = foreign
	// kubectl reads its arguments from os.Args for its plugins.
	os.Args = append([]string{"kubectl"}, args...)
	command := cmd.NewDefaultKubectlCommand()
	if err := cli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err) // prints the error as kubectl does, and exits with its code
		return exitCode(1)
	}
	return nil
}
