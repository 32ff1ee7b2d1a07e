package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
)

func newElemental(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "elemental",
		Short: "List servers that have registered themselves, and let others boot the system that registers them",
		Long: `List the servers of a lab that have registered themselves as ElementalHosts, and let servers
boot the system that registers them, from a medium or over the network. The lab needs the family elemental:
labctl up --with elemental. For a whole life in one command see labctl demo elemental.`,
	}
	c.AddCommand(newElementalLs(o), newElementalSeed(o))
	return c
}

// elementalClient returns a client of a lab that has the family elemental.
func elementalClient(c *cobra.Command, o *options) (client.Client, control.Status, error) {
	st, err := control.NewClient(o.state).Status(c.Context())
	if err != nil {
		return nil, st, err
	}
	if st.Kubeconfig == "" {
		return nil, st, fmt.Errorf("this lab has no Kubernetes API: start one with labctl up --with %s", config.Elemental)
	}
	kube, err := kubeClient(st.Kubeconfig)
	return kube, st, err
}

// withoutFamily explains the error of a lab that lacks the family.
func withoutFamily(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("this lab lacks the family %[1]s: stop it with labctl down, and start it with labctl up --with %[1]s", config.Elemental)
	}
	return err
}

// elementalRow is a host, for output.
type elementalRow struct {
	Name         string `json:"name"`
	Phase        string `json:"phase,omitempty"`
	Installed    bool   `json:"installed"`
	Bootstrapped bool   `json:"bootstrapped"`
	NeedsReset   bool   `json:"needsReset"`
	Machine      string `json:"machine,omitempty"` // the ElementalMachine
	Ready        string `json:"ready,omitempty"`   // status of the condition
	Message      string `json:"message,omitempty"`
}

func newElementalLs(o *options) *cobra.Command {
	var namespace string
	c := &cobra.Command{
		Use: "ls", Short: "List the servers that have registered themselves", Example: "  labctl elemental ls\n  labctl elemental ls -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			kube, _, err := elementalClient(c, o)
			if err != nil {
				return err
			}
			var list elementalv1.ElementalHostList
			if err := kube.List(c.Context(), &list, client.InNamespace(namespace)); err != nil {
				return withoutFamily(err)
			}
			hosts, rows := []elementalRow{}, [][]string{{"NAME", "PHASE", "INSTALLED", "BOOTSTRAPPED", "MACHINE", "READY", "MESSAGE"}}
			for i := range list.Items {
				h := rowOf(&list.Items[i])
				hosts = append(hosts, h)
				rows = append(rows, []string{h.Name, h.Phase, fmt.Sprint(h.Installed), fmt.Sprint(h.Bootstrapped), h.Machine, h.Ready, h.Message})
			}
			return o.output.print(c.OutOrStdout(), hosts, rows)
		},
	}
	c.Flags().StringVar(&namespace, "namespace", lab.Namespace, "namespace of the hosts")
	return c
}

func rowOf(h *elementalv1.ElementalHost) elementalRow {
	r := elementalRow{
		Name: h.Name, Phase: string(h.Status.Phase), Installed: h.Labels[elementalv1.InstalledLabel] == elementalv1.True,
		Bootstrapped: h.Labels[elementalv1.BootstrappedLabel] == elementalv1.True, NeedsReset: h.Labels[elementalv1.NeedsResetLabel] == elementalv1.True,
		Machine: h.Labels[elementalv1.ElementalMachineNameLabel],
	}
	for _, c := range h.Status.Conditions {
		if c.Type == capi.ReadyCondition {
			r.Ready, r.Message = string(c.Status), c.Message
			if r.Message == "" {
				r.Message = c.Reason
			}
		}
	}
	return r
}
