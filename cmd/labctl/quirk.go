package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// newQuirk makes the command that shows the built-in quirks.
func newQuirk(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "quirk",
		Short: "Show the known defects of real BMCs, which labctl fault quirk switches on",
		Example: `  labctl quirk ls
  labctl quirk show power-settle-409
  labctl fault quirk add node-0 power-settle-409 for=30s`,
	}
	c.AddCommand(&cobra.Command{
		Use: "ls", Short: "List the quirks",
		Example: "  labctl quirk ls -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			rows := [][]string{{"QUIRK", "SEEN ON", "BEHAVIOR"}}
			for _, q := range quirk.All {
				rows = append(rows, []string{q.ID, q.Seen, q.Does})
			}
			return o.output.print(c.OutOrStdout(), quirk.All, rows)
		},
	}, &cobra.Command{
		Use: "show QUIRK", Short: "Show a quirk: behavior, BMCs, sources, parameters", Args: usage.Arguments("QUIRK"),
		Example:           "  labctl quirk show etag-required",
		ValidArgsFunction: completeQuirks,
		RunE: func(c *cobra.Command, args []string) error {
			q, ok := quirk.Find(args[0])
			if !ok {
				return usage.New(fmt.Errorf("there is no quirk %q%s", args[0], suggest.UseOneOf(args[0], quirk.IDs())))
			}
			rows := [][]string{{"QUIRK", q.ID}, {"behavior", q.Does}, {"seen on", q.Seen}}
			for _, s := range q.Source {
				rows = append(rows, []string{"source", s})
			}
			for _, p := range q.Params {
				rows = append(rows, []string{"parameter", fmt.Sprintf("%s: %s (%s, default %s)", p.Name, p.Means, p.Kind, p.Default)})
			}
			return o.output.print(c.OutOrStdout(), q, rows)
		},
	})
	return c
}

func completeQuirks(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return quirkNames(c, args), cobra.ShellCompDirectiveNoFileComp
}

// quirkNames completes the quirks that there are.
func quirkNames(_ *cobra.Command, args []string) (ids []string) {
	if len(args) > 1 { // parameters follow
		return nil
	}
	for _, q := range quirk.All {
		ids = append(ids, q.ID+"\t"+q.Does)
	}
	return ids
}

// quirksOf completes the quirks of a host.
func (o *options) quirksOf(c *cobra.Command, args []string) (ids []string) {
	all, err := control.NewClient(o.state).Quirks(c.Context(), args[0])
	if err != nil {
		return nil // a completion has no errors to show
	}
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

// newFaultQuirk makes the command that switches the quirks of hosts.
func newFaultQuirk(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "quirk",
		Short: "Switch quirks of a BMC on and off",
		Example: `  labctl fault quirk add node-0 power-settle-409 for=30s
  labctl fault quirk ls node-0
  labctl fault quirk rm node-0 power-settle-409`,
	}
	// change sets the host's quirks to what to returns, and shows them. A nil to
	// only shows them.
	change := func(c *cobra.Command, pattern string, to func(string, []quirk.Setting) ([]quirk.Setting, error)) error {
		return forHosts(c, o, pattern, func(lab *control.Client, host string) ([]quirk.Setting, error) {
			all, err := lab.Quirks(c.Context(), host)
			if err != nil || to == nil {
				return all, err
			}
			if all, err = to(host, all); err != nil {
				return nil, usage.New(err)
			}
			return lab.SetQuirks(c.Context(), host, all)
		}, func(all []quirk.Setting) [][]string {
			rows := [][]string{{"QUIRK", "BEHAVIOR"}}
			for _, s := range all {
				q, _ := quirk.Find(s.ID)
				rows = append(rows, []string{s.String(), q.Does})
			}
			return rows
		})
	}
	c.AddCommand(&cobra.Command{
		Use: "add HOST QUIRK [NAME=VALUE]...", Short: "Switch a quirk on, or change its parameters", Args: hostAndMore(2, "HOST and QUIRK"), ValidArgsFunction: completeAfterHost(o, quirkNames),
		Example: "  labctl fault quirk add node-0 session-limit most=2",
		RunE: func(c *cobra.Command, args []string) error {
			return change(c, args[0], func(_ string, all []quirk.Setting) ([]quirk.Setting, error) {
				s, err := quirk.Parse(strings.Join(args[1:], " "))
				if err != nil {
					return nil, err
				}
				return append(without(all, s.ID), s), nil
			})
		},
	}, &cobra.Command{
		Use: "ls HOST", Short: "List the quirks of a host", Args: usage.Arguments("HOST"),
		Example: "  labctl fault quirk ls node-0", ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error { return change(c, args[0], nil) },
	}, &cobra.Command{
		Use: "rm HOST QUIRK...", Short: "Switch quirks off", Args: hostAndMore(2, "HOST and QUIRK"), ValidArgsFunction: completeAfterHost(o, o.quirksOf),
		Example: "  labctl fault quirk rm node-0 session-limit",
		RunE: func(c *cobra.Command, args []string) error {
			return change(c, args[0], func(host string, all []quirk.Setting) ([]quirk.Setting, error) {
				for _, id := range args[1:] {
					less := without(all, id)
					if len(less) == len(all) {
						return nil, fmt.Errorf("%s has no quirk %q: see labctl fault quirk ls %s", host, id, host)
					}
					all = less
				}
				return all, nil
			})
		},
	})
	return c
}

func without(all []quirk.Setting, id string) []quirk.Setting {
	return slices.DeleteFunc(slices.Clone(all), func(s quirk.Setting) bool { return s.ID == id })
}
