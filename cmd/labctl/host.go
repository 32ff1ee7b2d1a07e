package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newHost(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:     "host",
		Short:   "Power, boot and show servers",
		Long:    "Power, boot and show servers. A pattern such as 'node-*' in place of a name selects several.",
		Example: "  labctl host show node-0\n  labctl host power 'node-*' On",
	}
	list := newHosts(o)
	list.Use, list.Example = "ls", "  labctl host ls -o json"
	c.AddCommand(list, newHostPower(o), newHostBoot(o), newHostReset(o), newHostResetOS(o), newHostShow(o), newHostFiles(o), newHostExec(o), newHostCp(o), newHostItems(o), newHostBIOS(o), newHostFirmware(o), newHostRAID(o))
	return c
}

// resetTypes are the reset types of Redfish, for completion.
var resetTypes = []string{"On", "ForceOff", "ForceOn", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "PushPowerButton", "Nmi"}

func newHostPower(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "power HOST [RESET]",
		Short:   "Show the power of a server, or reset it",
		Long:    "Show the power of a server, or reset it. RESET is a ResetType of Redfish: " + strings.Join(resetTypes, ", ") + ".",
		Example: "  labctl host power node-0\n  labctl host power node-0 On\n  labctl host power 'node-*' ForceOff",
		Args:    usage.Arguments("HOST", "[RESET]"), ValidArgsFunction: completeHosts(o, resetTypes...),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			do := func(host string) (control.Host, error) {
				d, err := lab.Host(c.Context(), host)
				return d.Host, err
			}
			if len(args) == 2 {
				reset, err := choice("RESET", args[1], resetTypes)
				if err != nil {
					return err
				}
				if isPattern(args[0]) {
					done, err := powerAll(c, lab, args[0], reset)
					return o.printResults(c, done, err, power)
				}
				do = func(host string) (control.Host, error) {
					h, err := lab.Power(c.Context(), host, reset)
					return alreadySo(c, lab, host, reset, h, err)
				}
			}
			return o.printHosts(c, args[0], do, power)
		},
	}
}

// printHosts calls a function for every host that a pattern selects, and prints one
// property of each.
func (o *options) printHosts(c *cobra.Command, pattern string, do func(host string) (control.Host, error), property func(control.Host) (header, cell string)) error {
	done, err := forEach(c.Context(), control.NewClient(o.state), pattern, c.ErrOrStderr(), do)
	return o.printResults(c, done, err, property)
}

// power is the property of a host that labctl host power prints.
func power(h control.Host) (header, cell string) { return "POWER", h.Power }

// powerAll resets every host that a pattern selects, with one request for all: that takes
// a quarter of the time of a request for each (control.BenchmarkPower).
func powerAll(c *cobra.Command, lab *control.Client, pattern, reset string) ([]result[control.Host], error) {
	names, err := matching(c.Context(), lab, pattern)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(names))
	for i, n := range names {
		at[n] = i
	}
	hosts, errs := make([]control.Host, len(names)), make([]error, len(names))
	for i := range errs {
		errs[i] = errors.New("not reached") // until there is a line for it
	}
	shown := newProgress(c.ErrOrStderr(), "hosts", len(names))
	err = lab.PowerAll(c.Context(), names, reset, func(p control.Powered) {
		i := at[p.Name]
		if errs[i] = nil; p.Host == nil {
			errs[i] = errors.New(p.Error)
		} else {
			hosts[i] = *p.Host
		}
		shown.add(1)
	})
	shown.end()
	if err != nil { // it says why hosts were not reached
		return nil, err
	}
	for i, name := range names {
		hosts[i], errs[i] = alreadySo(c, lab, name, reset, hosts[i], errs[i])
	}
	return collect(names, hosts, errs)
}

// asked are the power states that a reset ends in, for resets that are refused in these states.
var asked = map[string][]string{
	"On": {"On", "PoweringOn"}, "ForceOn": {"On", "PoweringOn"}, "ForceOff": {"Off", "PoweringOff"}, "GracefulShutdown": {"Off", "PoweringOff"},
}

// alreadySo returns the result of a reset. A host whose power is as the reset makes it has that
// as a note, and no error: BMCs refuse the reset, and people want the power.
func alreadySo(c *cobra.Command, lab *control.Client, name, reset string, h control.Host, err error) (control.Host, error) {
	if err == nil || asked[reset] == nil {
		return h, err
	}
	d, failed := lab.Host(c.Context(), name)
	if failed != nil || !slices.Contains(asked[reset], d.Power) {
		return h, err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: its power is %s already\n", name, d.Power)
	return d.Host, nil
}

// printResults prints one property of each host, and returns the errors of others.
func (o *options) printResults(c *cobra.Command, done []result[control.Host], err error, property func(control.Host) (header, cell string)) error {
	if len(done) == 0 {
		return err
	}
	header, _ := property(control.Host{})
	hosts, rows := []control.Host{}, [][]string{{"NAME", header}}
	for _, r := range done {
		_, cell := property(r.value)
		hosts, rows = append(hosts, r.value), append(rows, []string{r.value.Name, cell})
	}
	return errors.Join(err, o.output.print(c.OutOrStdout(), hosts, rows))
}

func newHostReset(o *options) *cobra.Command {
	in := control.BMCReset{}
	c := &cobra.Command{
		Use:   "reset HOST",
		Short: "Restart a server's BMC",
		Long: `Restart a server's BMC. It is off the network for a while; the server keeps running.
With --defaults the BMC also resets settings to defaults.`,
		Example: "  labctl host reset node-0\n  labctl host reset 'node-*' --defaults ResetAll",
		Args:    usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			return o.printHosts(c, args[0], func(host string) (control.Host, error) { return lab.ResetBMC(c.Context(), host, in) },
				func(h control.Host) (header, cell string) { return "BMC", h.Reach })
		},
	}
	choiceFlag(c, &in.Kind, "kind", []string{"GracefulRestart", "ForceRestart"}, "GracefulRestart (default) or ForceRestart")
	choiceFlag(c, &in.Defaults, "defaults", []string{"ResetAll", "PreserveNetworkAndUsers", "PreserveNetwork"}, "reset settings: ResetAll, PreserveNetworkAndUsers or PreserveNetwork")
	return c
}

func newHostResetOS(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "reset-os HOST",
		Short: "Make the system that a server runs new, and restart the server",
		Long: `Remove what the operating system of a server has stored since its installation, and
restart the server: its next boot is the first one again. It repairs a system that its
users have broken. The image and the data source on the disk stay.`,
		Example: "  labctl host reset-os node-0\n  labctl host reset-os 'node-*'",
		Args:    usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			return o.printHosts(c, args[0], func(host string) (control.Host, error) { return lab.ResetSystem(c.Context(), host) },
				func(h control.Host) (header, cell string) { return "PHASE", h.Phase })
		},
	}
}

// bootTargets are the BootSource values of Redfish that an override takes.
var bootTargets = []string{"Pxe", "Hdd", "Cd", "Usb", "UefiHttp", "BiosSetup", "Diags", "UefiShell", "UefiTarget", "None"}

func newHostBoot(o *options) *cobra.Command {
	in, continuous, disable := control.Override{}, false, false
	c := &cobra.Command{
		Use:   "boot HOST [TARGET]",
		Short: "Set what a server boots next",
		Long: `Set what a server boots next. TARGET is a boot source of Redfish, such as
` + strings.Join(bootTargets, ", ") + `. Without TARGET the command shows the boot order.`,
		Example: `  labctl host boot node-0 Pxe                 # at the next boot
  labctl host boot node-0 Cd --continuous     # at every boot
  labctl host boot node-0 UefiHttp --uri http://192.0.2.1/boot.iso
  labctl host boot node-0 --clear             # by the boot order again
  labctl host boot node-0 --order Hdd,Cd      # from now on: the disk, or else the CD`,
		Args: usage.Arguments("HOST", "[TARGET]"), ValidArgsFunction: completeHosts(o, bootTargets...),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			set := func(host string) (control.Detail, error) { return lab.Host(c.Context(), host) }
			switch {
			case in.Order != "" && (len(args) == 2 || disable):
				return usage.New(errors.New("--order sets the order of all boots: give it without TARGET and --clear"))
			case in.URI != "" && !strings.HasPrefix(in.URI, "http://") && !strings.HasPrefix(in.URI, "https://"):
				return usage.New(fmt.Errorf("--uri %q: use http://… or https://…", in.URI))
			case disable && len(args) == 2:
				return usage.New(errors.New("--clear and TARGET exclude each other"))
			case len(args) == 2 || disable:
				if len(args) == 2 {
					var err error
					if in.Target, err = choice("TARGET", args[1], bootTargets); err != nil {
						return err
					}
				}
				if continuous {
					in.Enabled = "Continuous"
				}
				set = func(host string) (control.Detail, error) { return lab.Boot(c.Context(), host, in) }
			case in.Order != "":
				set = func(host string) (control.Detail, error) { return lab.Boot(c.Context(), host, in) }
			case in.Mode != "" || in.URI != "" || continuous:
				return usage.New(errors.New("name a TARGET"))
			}
			done, err := forEach(c.Context(), lab, args[0], c.ErrOrStderr(), set)
			hosts, rows := []control.Detail{}, [][]string{{"NAME", "BOOT", "MODE", "ORDER"}}
			for _, r := range done {
				h := r.value
				hosts = append(hosts, h)
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
	choiceFlag(c, &in.Mode, "mode", []string{"UEFI", "Legacy"}, "UEFI or Legacy (default: unchanged)")
	c.Flags().StringVar(&in.URI, "uri", "", "URI for an HTTP boot")
	c.Flags().StringVar(&in.Order, "order", "", "set the boot order: kinds of boot options by commas, such as Hdd,Cd")
	c.Flags().BoolVar(&continuous, "continuous", false, "at every boot, not only at the next one")
	c.Flags().BoolVar(&disable, "clear", false, "remove the boot override")
	return c
}

// shownHost is a server in full, with the BareMetalHost that refers to it.
type shownHost struct {
	control.Detail
	Controller *provisioning `json:"controller,omitempty"`
}

func newHostShow(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "show HOST",
		Short:   "Show all details of a server",
		Example: "  labctl host show node-0\n  labctl host show node-0 -o json",
		Args:    usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(lab *control.Client, host string) (shownHost, error) {
				d, err := lab.Host(c.Context(), host)
				if err != nil {
					return shownHost{}, err
				}
				return shownHost{d, readProvisioning(c.Context(), o, d)}, nil
			}, shownHost.rows)
		},
	}
}

func (d shownHost) rows() [][]string {
	rows := [][]string{
		{"PROPERTY", "VALUE"},
		{"name", d.Name}, {"rack", d.Rack}, {"model", d.Manufacturer + " " + d.Model}, {"serial", d.Serial}, {"uuid", d.UUID},
		{"bios", d.BIOS}, {"bmc", d.BMC}, {"power", d.Power}, {"phase", d.Phase}, {"running", d.Running}, {"files", d.Files}, {"processor time", fmt.Sprintf("%.2f s", d.CPU)},
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
	if k := d.Controller; k != nil {
		rows = append(rows, []string{"object", k.Name + " " + k.State})
		for _, w := range k.Workarounds {
			rows = append(rows, []string{"workaround", w})
		}
	}
	return rows
}
