package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/emulator/lab/control"
)

// atOnce is how many hosts are worked on at the same time.
const atOnce = 16

// matching returns the names of the hosts that match a pattern.
func matching(ctx context.Context, c *control.Client, pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	hosts, err := c.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, h := range hosts {
		ok, err := path.Match(pattern, h.Name)
		if err != nil {
			return nil, &usageError{fmt.Errorf("%q is no valid pattern: close each [", pattern)}
		}
		if ok {
			names = append(names, h.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no host matches %s", pattern)
	}
	return names, nil
}

// forEach calls a function for every host that matches a pattern, and shows the
// progress when there are many. It returns the results of the hosts where it
// succeeded, in the order of the hosts.
func forEach[T any](ctx context.Context, c *control.Client, pattern string, progress io.Writer, do func(host string) (T, error)) ([]T, error) {
	names, err := matching(ctx, c, pattern)
	if err != nil {
		return nil, err
	}
	results, errs := make([]T, len(names)), make([]error, len(names))
	var mu sync.Mutex
	done, work := 0, make(chan int)
	var all sync.WaitGroup
	for range min(atOnce, len(names)) {
		all.Go(func() {
			for i := range work {
				results[i], errs[i] = do(names[i])
				mu.Lock()
				if done++; len(names) > atOnce && (done%100 == 0 || done == len(names)) {
					fmt.Fprintf(progress, "%d of %d hosts\n", done, len(names))
				}
				mu.Unlock()
			}
		})
	}
	for i := range names {
		work <- i
	}
	close(work)
	all.Wait()
	var out []T
	for i := range names {
		if errs[i] == nil {
			out = append(out, results[i])
		} else if len(names) > 1 {
			errs[i] = fmt.Errorf("%s: %w", names[i], errs[i])
		}
	}
	return out, errors.Join(errs...)
}

// completeHosts completes the names of hosts of a running lab.
func completeHosts(o *options, then ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return then, cobra.ShellCompDirectiveNoFileComp
		}
		if o.resolve(c) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		hosts, err := control.NewClient(o.state).Hosts(c.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, h := range hosts {
			names = append(names, h.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func newHost(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:     "host",
		Short:   "Power, boot and show servers",
		Long:    "Power, boot and show servers. A pattern such as 'node-*' in place of a name selects several.",
		Example: "  labctl host show node-0\n  labctl host power 'node-*' On",
	}
	c.AddCommand(newHostPower(o), newHostBoot(o), newHostReset(o), newHostShow(o), newHostBIOS(o), newHostFirmware(o), newHostRAID(o))
	return c
}

// resetTypes are the reset types of Redfish, for completion.
var resetTypes = []string{"On", "ForceOff", "ForceOn", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "PushPowerButton", "Nmi"}

func newHostPower(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "power HOST RESET",
		Short:   "Reset a server",
		Long:    "Reset a server. RESET is a ResetType of Redfish: " + strings.Join(resetTypes, ", ") + ".",
		Example: "  labctl host power node-0 On\n  labctl host power 'node-*' ForceOff",
		Args:    arguments("HOST", "RESET"), ValidArgsFunction: completeHosts(o, resetTypes...),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			hosts, err := forEach(c.Context(), lab, args[0], c.ErrOrStderr(), func(host string) (control.Host, error) {
				return lab.Power(c.Context(), host, args[1])
			})
			if len(hosts) > 0 {
				rows := [][]string{{"NAME", "POWER"}}
				for _, h := range hosts {
					rows = append(rows, []string{h.Name, h.Power})
				}
				err = errors.Join(err, o.output.print(c.OutOrStdout(), hosts, rows))
			}
			return err
		},
	}
}

func newHostReset(o *options) *cobra.Command {
	in := control.BMCReset{}
	c := &cobra.Command{
		Use:   "reset HOST",
		Short: "Restart a server's BMC",
		Long: `Restart a server's BMC. It is off the network for a while; the server keeps running.
With --defaults the BMC also resets settings to defaults.`,
		Example: "  labctl host reset node-0\n  labctl host reset 'node-*' --defaults ResetAll",
		Args:    arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			hosts, err := forEach(c.Context(), lab, args[0], c.ErrOrStderr(), func(host string) (control.Host, error) {
				return lab.ResetBMC(c.Context(), host, in)
			})
			if len(hosts) > 0 {
				rows := [][]string{{"NAME", "BMC"}}
				for _, h := range hosts {
					rows = append(rows, []string{h.Name, h.Reach})
				}
				err = errors.Join(err, o.output.print(c.OutOrStdout(), hosts, rows))
			}
			return err
		},
	}
	c.Flags().StringVar(&in.Kind, "kind", "", "GracefulRestart (default) or ForceRestart")
	c.Flags().StringVar(&in.Defaults, "defaults", "", "reset settings: ResetAll, PreserveNetworkAndUsers or PreserveNetwork")
	return c
}

func newHostBoot(o *options) *cobra.Command {
	in, continuous, disable := control.Override{}, false, false
	targets := []string{"Pxe", "Hdd", "Cd", "Usb", "UefiHttp", "BiosSetup", "Diags", "UefiShell"}
	c := &cobra.Command{
		Use:   "boot HOST [TARGET]",
		Short: "Set what a server boots next",
		Long: `Set what a server boots next. TARGET is a boot source of Redfish, such as
` + strings.Join(targets, ", ") + `. Without TARGET the command shows the boot order.`,
		Example: `  labctl host boot node-0 Pxe                 # at the next boot
  labctl host boot node-0 Cd --continuous     # at every boot
  labctl host boot node-0 UefiHttp --uri http://192.0.2.1/boot.iso
  labctl host boot node-0 --clear             # by the boot order again`,
		Args: arguments("HOST", "[TARGET]"), ValidArgsFunction: completeHosts(o, targets...),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			set := func(host string) (control.Detail, error) { return lab.Host(c.Context(), host) }
			switch {
			case disable && len(args) == 2:
				return &usageError{errors.New("--clear and TARGET exclude each other")}
			case len(args) == 2 || disable:
				if len(args) == 2 {
					in.Target = args[1]
				}
				if continuous {
					in.Enabled = "Continuous"
				}
				set = func(host string) (control.Detail, error) { return lab.Boot(c.Context(), host, in) }
			case in.Mode != "" || in.URI != "" || continuous:
				return &usageError{errors.New("name a TARGET")}
			}
			hosts, err := forEach(c.Context(), lab, args[0], c.ErrOrStderr(), set)
			rows := [][]string{{"NAME", "BOOT", "MODE", "ORDER"}}
			for _, h := range hosts {
				var order []string
				for _, b := range h.Order {
					order = append(order, b.ID)
				}
				rows = append(rows, []string{h.Name, h.Boot, h.Override.Mode, strings.Join(order, " ")})
			}
			if len(hosts) > 0 {
				err = errors.Join(err, o.output.print(c.OutOrStdout(), hosts, rows))
			}
			return err
		},
	}
	c.Flags().StringVar(&in.Mode, "mode", "", "UEFI or Legacy (default: unchanged)")
	c.Flags().StringVar(&in.URI, "uri", "", "URI for an HTTP boot")
	c.Flags().BoolVar(&continuous, "continuous", false, "at every boot, not only at the next one")
	c.Flags().BoolVar(&disable, "clear", false, "remove the boot override")
	return c
}

func newHostShow(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "show HOST",
		Short:   "Show all details of a server",
		Example: "  labctl host show node-0\n  labctl host show node-0 -o json",
		Args:    arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := control.NewClient(o.state).Host(c.Context(), args[0])
			if err != nil {
				return err
			}
			rows := [][]string{
				{"name", d.Name}, {"rack", d.Rack}, {"model", d.Manufacturer + " " + d.Model}, {"serial", d.Serial}, {"uuid", d.UUID},
				{"bios", d.BIOS}, {"bmc", d.BMC}, {"power", d.Power}, {"phase", d.Phase}, {"running", d.Running},
				{"boots", strconv.FormatUint(d.Boots, 10)}, {"boot", d.Boot}, {"redfish", d.Redfish}, {"user", d.Username},
				{"password", d.Password}, {"sessions", strconv.Itoa(d.Sessions)}, {"log", strconv.Itoa(d.LogEntries) + " entries"},
			}
			for _, n := range d.NICs {
				rows = append(rows, []string{"nic " + n.ID, n.Name + " " + n.MAC})
			}
			for _, b := range d.Order {
				rows = append(rows, []string{"boot option " + b.ID, b.Name})
			}
			for _, m := range d.Media {
				rows = append(rows, []string{"media " + m.Slot, m.Image})
			}
			for _, t := range d.Tasks {
				rows = append(rows, []string{"task " + t.ID, strings.TrimSpace(fmt.Sprintf("%s: %s, %d %% %s", t.Name, t.State, t.Percent, t.Fault))})
			}
			shown := struct {
				control.Detail
				Controller *provisioning `json:"controller,omitempty"`
			}{d, readProvisioning(c.Context(), o, d)}
			if k := shown.Controller; k != nil {
				rows = append(rows, []string{"object", k.Name + " " + k.State})
				for _, w := range k.Workarounds {
					rows = append(rows, []string{"workaround", w})
				}
			}
			return o.output.print(c.OutOrStdout(), shown, rows)
		},
	}
}
