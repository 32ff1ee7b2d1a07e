package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// newDialect makes the command that shows the built-in dialects.
func newDialect(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "dialect",
		Short: "Show how vendors' BMCs differ from the Redfish standard",
		Long: `Show how vendors' BMCs differ from the Redfish standard: identifiers, URIs, OEM
resources, rejected requests.

To add a dialect, write a file dialects/NAME.yaml beside your profiles. It has the
differences of the BMC from a built-in dialect:

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

labctl dialect show NAME -o yaml prints a built-in dialect in this form.`,
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
			rows := [][]string{{"DIALECT", "VENDOR", "PRODUCT", "REDFISH", "+SYSTEM", "+MANAGER", "+CHASSIS", "DIFFERENCES"}}
			for _, name := range rack.Dialects() {
				r := rack.Dialect(name)
				l := line{r.Name, r.Vendor, r.Product, r.RedfishVersion, r.SystemID, r.ManagerID, r.ChassisID, differs(r)}
				all = append(all, l)
				rows = append(rows, []string{l.Name, l.Vendor, l.Product, l.Redfish, l.System, l.Manager, l.Chassis, l.Differs})
			}
			return o.output.print(c.OutOrStdout(), all, rows)
		},
	}, &cobra.Command{
		Use: "show NAME", Short: "Show a dialect in full", Args: usage.Arguments("NAME"),
		Example: "  labctl dialect show generic -o yaml",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return rack.Dialects(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			r := rack.Dialect(args[0])
			if r == nil {
				return usage.New(fmt.Errorf("there is no dialect %q%s", args[0], suggest.UseOneOf(args[0], rack.Dialects())))
			}
			return show(o, c, r, dialectRows(r))
		},
	})
	return c
}

// differs counts the differences of a dialect from the standard.
func differs(r *dialect.Record) string {
	var out []string
	for _, x := range []struct {
		n    int
		one  string
		many string
	}{
		{len(r.Presentation.URIMappings), "URI mapping", "URI mappings"}, {len(r.Presentation.Transforms), "transform", "transforms"},
		{len(r.Presentation.RejectRules), "reject rule", "reject rules"}, {len(r.Presentation.Hidden), "hidden resource", "hidden resources"},
		{len(r.OEM.Resources), "OEM resource", "OEM resources"}, {len(r.OEM.Actions), "OEM action", "OEM actions"},
		{len(r.OEM.WritableProperties), "writable OEM property", "writable OEM properties"}, {r.Hooks(), "hook", "hooks"},
	} {
		switch {
		case x.n == 1:
			out = append(out, "1 "+x.one)
		case x.n > 1:
			out = append(out, fmt.Sprintf("%d %s", x.n, x.many))
		}
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, ", ")
}

// dialectRows returns a dialect as a table.
func dialectRows(r *dialect.Record) [][]string {
	rows := [][]string{
		{"DIALECT", r.Name}, {"vendor", r.Vendor}, {"product", r.Product}, {"Redfish", r.RedfishVersion},
		{"system", "/redfish/v1/Systems/" + r.SystemID}, {"manager", "/redfish/v1/Managers/" + r.ManagerID}, {"chassis", "/redfish/v1/Chassis/" + r.ChassisID},
		{"reset types", texts(r.ResetTypes)}, {"boot targets", texts(r.BootTargets)}, {"redundant reset", string(r.RedundantReset)},
	}
	for _, s := range r.BMC.Slots {
		rows = append(rows, []string{"virtual media", fmt.Sprintf("%s (%s): %s", s.ID, s.Name, strings.Join(s.Types, ", "))})
	}
	rows = append(rows, []string{"sessions", fmt.Sprintf("%d, time-out %v", r.BMC.Sessions, r.BMC.SessionTimeout)},
		[]string{"accounts", fmt.Sprintf("%d, locked after %d failures for %v", r.BMC.Accounts.Most, r.BMC.Accounts.Policy.LockoutThreshold, r.BMC.Accounts.Policy.LockoutDuration)},
		[]string{"logs", r.Logs.System + " (system), " + r.Logs.Manager + " (manager)"})
	if e := r.Protocol.ETags; len(e.IfMatchRequired) > 0 || e.Format != "" || e.Comparison != "" {
		rows = append(rows, []string{"ETags", strings.TrimSpace(fmt.Sprintf("%s %s If-Match required for %s", e.Format, e.Comparison, or(strings.Join(e.IfMatchRequired, ", "), "nothing")))})
	}
	for _, m := range r.Presentation.URIMappings {
		rows = append(rows, []string{"URI mapping", m.From + " -> " + m.To})
	}
	for _, s := range r.Presentation.Transforms {
		var what []string
		for _, d := range s.Set {
			what = append(what, d.Path)
		}
		for _, d := range s.Remove {
			what = append(what, "without "+d)
		}
		rows = append(rows, []string{"transform " + s.ResourceType, strings.Join(what, ", ")})
	}
	for _, u := range r.Presentation.RejectRules {
		on := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", u.Method, u.ResourceType, u.While)), " ")
		rows = append(rows, []string{"reject rule", on + ": " + u.Message.Text})
	}
	for _, s := range r.Presentation.Hidden {
		rows = append(rows, []string{"hidden", s})
	}
	for _, x := range r.OEM.Resources {
		rows = append(rows, []string{"OEM resource", x.URI})
	}
	for _, a := range r.OEM.Actions {
		rows = append(rows, []string{"OEM action", a.Name})
	}
	return rows
}

// texts joins values with commas.
func texts[T ~string](all []T) string {
	var out []string
	for _, t := range all {
		out = append(out, string(t))
	}
	return strings.Join(out, ", ")
}
