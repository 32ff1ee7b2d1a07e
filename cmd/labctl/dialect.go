package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/lab"
)

// newDialect tells of the dialects that there are.
func newDialect(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "dialect",
		Short: "Vendors' BMCs: what they are called, where they have what, what they refuse",
		Long: `Vendors' BMCs: what they are called, where they have what, what they refuse.

A dialect of your own is a file beside your profiles, dialects/NAME.yaml, which
says how the BMC differs from a built-in one:

  name: acme
  base: generic
  quirks: [power-settle-409 for=30s]      # labctl quirk ls
  vendor: Acme
  systemID: Self
  resetTypes: [On, ForceOff, ForceRestart]
  bmc:
    slots: [{id: CD1, name: Virtual CD, types: [CD]}]
  presentation:
    uriMappings: [{from: "/redfish/v1/Systems/{system}/VirtualMedia", to: "/redfish/v1/Managers/{manager}/VirtualMedia"}]
    transforms: [{resourceType: ComputerSystem, remove: [HostName], set: [{path: Oem/Acme/Mode, value: Normal}]}]
    hidden: [/redfish/v1/TelemetryService]

dialect show NAME -o yaml prints all fields that are set, by their names.`,
		Example: "  labctl dialect ls\n  labctl dialect show generic -o yaml",
	}
	c.AddCommand(&cobra.Command{
		Use: "ls", Short: "List the built-in dialects",
		Example: "  labctl dialect ls -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			type line struct {
				Name    string `json:"name"`
				Vendor  string `json:"vendor"`
				Product string `json:"product"`
				Redfish string `json:"redfish"`
				System  string `json:"system"`
				Manager string `json:"manager"`
				Chassis string `json:"chassis"`
				Differs string `json:"differs"`
			}
			all := []line{}
			rows := [][]string{{"DIALECT", "VENDOR", "PRODUCT", "REDFISH", "SYSTEM", "MANAGER", "CHASSIS", "NOT AS THE STANDARD HAS IT"}}
			for _, name := range lab.Dialects() {
				r := lab.Dialect(name)
				l := line{r.Name, r.Vendor, r.Product, r.RedfishVersion, r.SystemID, r.ManagerID, r.ChassisID, differs(r)}
				all = append(all, l)
				rows = append(rows, []string{l.Name, l.Vendor, l.Product, l.Redfish, l.System, l.Manager, l.Chassis, l.Differs})
			}
			return o.output.print(c.OutOrStdout(), all, rows)
		},
	}, &cobra.Command{
		Use: "show NAME", Short: "Show all of a dialect", Args: arguments("NAME"),
		Example: "  labctl dialect show generic -o yaml",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return lab.Dialects(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			r := lab.Dialect(args[0])
			if r == nil {
				return &usageError{fmt.Errorf("there is no dialect %q: see labctl dialect ls", args[0])}
			}
			return show(o, c, r, dialectRows(r))
		},
	})
	return c
}

// differs counts what a dialect has otherwise.
func differs(r *dialect.Record) string {
	var out []string
	for _, x := range []struct {
		n    int
		what string
	}{
		{len(r.Presentation.URIMappings), "addresses"}, {len(r.Presentation.Transforms), "shapes"}, {len(r.Presentation.RejectRules), "refusals"}, {len(r.Presentation.Hidden), "absent"},
		{len(r.OEM.Resources), "resources of its own"}, {len(r.OEM.Actions), "actions of its own"}, {len(r.OEM.WritableProperties), "properties of its own"},
		{r.Hooks(), "hooks"},
	} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, ", ")
}

// dialectRows are a dialect for people.
func dialectRows(r *dialect.Record) [][]string {
	rows := [][]string{
		{"DIALECT", r.Name}, {"vendor", r.Vendor}, {"product", r.Product}, {"Redfish", r.RedfishVersion},
		{"system", "/redfish/v1/Systems/" + r.SystemID}, {"manager", "/redfish/v1/Managers/" + r.ManagerID}, {"chassis", "/redfish/v1/Chassis/" + r.ChassisID},
		{"reset types", texts(r.ResetTypes)}, {"boot targets", texts(r.BootTargets)}, {"a redundant reset", string(r.RedundantReset)},
	}
	for _, s := range r.BMC.Slots {
		rows = append(rows, []string{"virtual media", fmt.Sprintf("%s (%s): %s", s.ID, s.Name, strings.Join(s.Types, ", "))})
	}
	rows = append(rows, []string{"sessions", fmt.Sprintf("%d, for %v", r.BMC.Sessions, r.BMC.SessionTimeout)},
		[]string{"accounts", fmt.Sprintf("%d, locked after %d failures for %v", r.BMC.Accounts.Most, r.BMC.Accounts.Policy.LockoutThreshold, r.BMC.Accounts.Policy.LockoutDuration)},
		[]string{"logs", r.Logs.System + " of the system, " + r.Logs.Manager + " of the manager"})
	if e := r.Protocol.ETags; len(e.IfMatchRequired) > 0 || e.Format != "" || e.Comparison != "" {
		rows = append(rows, []string{"ETags", strings.TrimSpace(fmt.Sprintf("%s %s required of %s", e.Format, e.Comparison, or(strings.Join(e.IfMatchRequired, ", "), "nothing")))})
	}
	for _, m := range r.Presentation.URIMappings {
		rows = append(rows, []string{"moved", m.From + " is " + m.To})
	}
	for _, s := range r.Presentation.Transforms {
		var what []string
		for _, d := range s.Set {
			what = append(what, d.Path)
		}
		for _, d := range s.Remove {
			what = append(what, "no "+d)
		}
		rows = append(rows, []string{"shape of " + s.ResourceType, strings.Join(what, ", ")})
	}
	for _, u := range r.Presentation.RejectRules {
		rows = append(rows, []string{"refuses", strings.Join(strings.Fields(fmt.Sprintf("%s %s %s: %s", u.ResourceType, u.Method, u.While, u.Message.Text)), " ")})
	}
	for _, s := range r.Presentation.Hidden {
		rows = append(rows, []string{"has no", s})
	}
	for _, x := range r.OEM.Resources {
		rows = append(rows, []string{"has", x.URI})
	}
	for _, a := range r.OEM.Actions {
		rows = append(rows, []string{"does", a.Name})
	}
	return rows
}

func texts[T ~string](all []T) string {
	var out []string
	for _, t := range all {
		out = append(out, string(t))
	}
	return strings.Join(out, ", ")
}
