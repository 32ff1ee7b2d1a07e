package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/cmd/usage"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// hostItem is a state item of a server for output.
type hostItem struct {
	Name   string       `json:"name"`
	Runner lcmv1.Runner `json:"runner"`
	// State is that of machinesStates: Not Started, Running, Success or Failed. Not Started is also
	// that of an item that has changed since its last execution.
	State    kaasv1.ItemState `json:"state"`
	Attempts int              `json:"attempts"`
	// Duration is that of the last attempt in the lab's time, in seconds; 0 while there is none.
	Duration float64 `json:"durationSeconds"`
	ExitCode int     `json:"exitCode"`          // of an attempt that has ended
	Message  string  `json:"message,omitempty"` // also the cause for which an item waits
}

// progressNames are the states of items as HostOSConfigurations show them.
var progressNames = map[item.Progress]kaasv1.ItemState{
	item.NotStarted: kaasv1.ItemNotStarted, item.Running: kaasv1.ItemRunning, item.Succeeded: kaasv1.ItemSuccess, item.Failed: kaasv1.ItemFailed,
}

func newHostItems(o *options) *cobra.Command {
	var log string
	c := &cobra.Command{
		Use:   "items HOST",
		Short: "List the state items of a server, or print the output of one",
		Long: `List the state items of the LCMMachine of a server: those of its release, and the downloads
and playbooks of its HostOSConfigurations, in the order of the LCMMachine, each with the state,
the attempts, the duration of the last one, and its message. With --log NAME it prints the output of
the item's last attempt, also while it runs: the file is on the server, in the directory of
` + lcm.LogFile("NAME") + `. The server must run for that.`,
		Example: "  labctl host items node-0\n  labctl host items node-0 --log host-os-tuning-sysctl-1.1.0-reconfigure",
		Args:    usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			st, err := lab.Status(c.Context())
			if err != nil {
				return err
			}
			if st.Kubeconfig == "" {
				return errors.New("this lab has no Kubernetes API: it was made with --no-kube")
			}
			kube, err := kubeClient(st.Kubeconfig)
			if err != nil {
				return err
			}
			if log == "" {
				return forHosts(c, o, args[0], func(lab *control.Client, host string) ([]hostItem, error) {
					m, err := lcmMachineOf(c.Context(), kube, lab, host)
					if err != nil {
						return nil, err
					}
					return itemsOf(m, st.Time), nil
				}, itemRows)
			}
			host, err := one(c.Context(), lab, args[0])
			if err != nil {
				return err
			}
			m, err := lcmMachineOf(c.Context(), kube, lab, host)
			if err != nil {
				return err
			}
			if err := hasLog(m, log); err != nil {
				return err
			}
			f, err := lab.Files(c.Context(), host, lcm.LogFile(log))
			if err != nil {
				return fmt.Errorf("log of the item %s: %w", log, err)
			}
			_, err = c.OutOrStdout().Write(f.Content)
			return err
		},
	}
	c.Flags().StringVar(&log, "log", "", "print the output of the last attempt of this item")
	return c
}

// lcmMachineOf returns the LCMMachine of a server: that of the Machine which has claimed it.
func lcmMachineOf(ctx context.Context, kube client.Client, lab *control.Client, host string) (*lcmv1.LCMMachine, error) {
	d, err := lab.Host(ctx, host)
	if err != nil {
		return nil, err
	}
	return lcmMachineAt(ctx, kube, host, d.BMCAddress)
}

// lcmMachineAt returns the LCMMachine of the server whose BMC has an address.
func lcmMachineAt(ctx context.Context, kube client.Client, host, address string) (*lcmv1.LCMMachine, error) {
	if err := kube.List(ctx, &lcmv1.LCMMachineList{}, client.Limit(1)); meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("this lab lacks the family %s: stop it with labctl down, and start it with labctl up --with %s", config.HOC, config.HOC)
	} else if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	var all metal3.BareMetalHostList
	if err := kube.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	var found *metal3.BareMetalHost
	for i := range all.Items {
		if sameBMC(all.Items[i].Spec.BMC.Address, address) {
			found = &all.Items[i]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no BareMetalHost, so that no Machine has it: labctl kubectl get bmh -A lists them", host)
	}
	r := found.Spec.ConsumerRef
	if r == nil || r.Kind != "Machine" {
		return nil, fmt.Errorf("%s has no LCMMachine: no Machine has claimed the BareMetalHost %s/%s", host, found.Namespace, found.Name)
	}
	m := &lcmv1.LCMMachine{}
	switch err := kube.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, m); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s has no LCMMachine: that of the Machine %s/%s, which has claimed it, does not exist yet", host, r.Namespace, r.Name)
	case err != nil:
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return m, nil
}

// itemsOf returns the items of a machine, with the lab's time now.
func itemsOf(m *lcmv1.LCMMachine, now time.Time) []hostItem {
	out := []hostItem{}
	for _, it := range m.Spec.StateItems {
		x := hostItem{Name: it.Name, Runner: it.Runner}
		progress := item.ProgressOf(it, m.Status.StateItemStatuses, m.Status.AgentVersion)
		x.State = progressNames[progress]
		s := m.Status.StateItemStatuses[it.Name]
		if progress != item.NotStarted {
			x.Attempts = s.Attempt
		}
		switch {
		case progress == item.Running && s.StartedAt != nil:
			x.Duration = max(0, now.Sub(s.StartedAt.Time).Seconds())
		case progress != item.NotStarted && s.StartedAt != nil && s.FinishedAt != nil:
			x.Duration, x.ExitCode = max(0, s.FinishedAt.Sub(s.StartedAt.Time).Seconds()), s.ExitCode
		}
		if progress != item.NotStarted || s.Hash == "" { // a status without a hash is that of an item that waits
			x.Message = s.Message
		}
		out = append(out, x)
	}
	return out
}

func itemRows(items []hostItem) [][]string {
	rows := [][]string{{"=NAME", "RUNNER", "STATE", "ATTEMPTS", "DURATION", "MESSAGE"}}
	for _, x := range items {
		duration := ""
		if x.Attempts > 0 {
			duration = (time.Duration(x.Duration) * time.Second).String()
		}
		message, _, _ := strings.Cut(strings.TrimSpace(x.Message), "\n")
		rows = append(rows, []string{x.Name, string(x.Runner), string(x.State), strconv.Itoa(x.Attempts), duration, message})
	}
	return rows
}

// hasLog returns why an item of a machine has no log; nil if it has one.
func hasLog(m *lcmv1.LCMMachine, name string) error {
	var names []string
	for _, it := range m.Spec.StateItems {
		names = append(names, it.Name)
		if it.Name != name {
			continue
		}
		if it.Runner == lcmv1.RunnerDownloader {
			return fmt.Errorf("the item %s has no output: it downloads a file", name)
		}
		if s, begun := m.Status.StateItemStatuses[name]; !begun || s.Hash == "" {
			why := "it has not been executed yet"
			if s.Message != "" {
				why += ": " + s.Message
			}
			return fmt.Errorf("the item %s has no output: %s", name, why)
		}
		return nil
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no item %s: the LCMMachine %s/%s has no items", name, m.Namespace, m.Name)
	}
	return fmt.Errorf("there is no item %s: the LCMMachine %s/%s has %s", name, m.Namespace, m.Name, strings.Join(names, ", "))
}
