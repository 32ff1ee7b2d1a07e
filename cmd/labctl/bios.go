package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// redfishClient is the Redfish driver's client with all its methods.
type redfishClient interface {
	bmc.Client
	bmc.Setup
	bmc.Updater
}

// dial connects to a host's BMC over Redfish, as any client does.
func dial(ctx context.Context, o *options, host string) (redfishClient, error) {
	h, err := control.NewClient(o.state).Host(ctx, host)
	if err != nil {
		return nil, err
	}
	address, err := bmc.ParseAddress(h.BMCAddress)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(h.CAFile)
	if err != nil {
		return nil, fmt.Errorf("certificate authority of the BMC: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	c, err := redfish.Open(ctx, bmc.Config{
		Address: address, Credentials: bmc.Credentials{Username: h.Username, Password: h.Password}, RootCAs: roots,
	})
	if err != nil {
		return nil, err
	}
	return c.(redfishClient), nil
}

func newHostBIOS(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "bios",
		Short: "Read, change and compare BIOS settings",
		Example: `  labctl host bios get node-0 BootMode ProcCores
  labctl host bios set node-0 ProcCores=8 BootMode=LegacyBios
  labctl host bios schema node-0 ProcCores
  labctl host bios diff node-0 node-1`,
	}
	c.AddCommand(newBIOSGet(o), newBIOSSet(o), newBIOSSchema(o), newBIOSDiff(o))
	return c
}

// biosSetting is a BIOS setting for output.
type biosSetting struct {
	Name    string `json:"name"`
	Value   any    `json:"value"`
	Pending any    `json:"pending,omitempty"` // applied at the next boot
}

func value(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// readBIOS reads a host's BIOS settings, with pending values.
func readBIOS(ctx context.Context, o *options, host string) (bmc.BIOS, bmc.Settings, error) {
	c, err := dial(ctx, o, host)
	if err != nil {
		return bmc.BIOS{}, nil, err
	}
	defer c.Close()
	b, err := c.BIOS(ctx)
	if err != nil {
		return b, nil, err
	}
	pending, err := c.PendingBIOS(ctx)
	return b, pending, err
}

// chosen returns the settings that the user has named, or all settings when the user
// has named none.
func chosen[V any](all map[string]V, names []string) ([]string, error) {
	if len(names) == 0 {
		return slices.Sorted(maps.Keys(all)), nil
	}
	for _, n := range names {
		if _, ok := all[n]; !ok {
			return nil, fmt.Errorf("there is no setting %s: labctl host bios get lists them%s", n, suggest.DidYouMean(n, slices.Sorted(maps.Keys(all))))
		}
	}
	return names, nil
}

// settingsOf completes the BIOS settings of a host.
func (o *options) settingsOf(c *cobra.Command, args []string) []string {
	b, _, err := readBIOS(c.Context(), o, args[0])
	if err != nil {
		return nil // a completion has no errors to show
	}
	return slices.Sorted(maps.Keys(b.Settings))
}

// completeSetting completes the host and the names of BIOS settings up to the =, after
// which a value follows: bash takes = for the end of a word, so there is nothing more.
func (o *options) completeSetting(c *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeHosts(o)(c, args, part)
	}
	if strings.Contains(part, "=") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, how := completeAfterHost(o, o.settingsOf)(c, args, part)
	for i := range names {
		names[i] += "="
	}
	return names, how | cobra.ShellCompDirectiveNoSpace
}

// hostAndMore makes a command accept a host and any number of further arguments.
func hostAndMore(least int, needs string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least {
			return usage.New(fmt.Errorf("%s needs %s", c.CommandPath(), needs))
		}
		return nil
	}
}

func newBIOSGet(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "get HOST [SETTING...]", Aliases: []string{"ls"}, Short: "Show BIOS settings, with pending values",
		Example: "  labctl host bios get node-0\n  labctl host bios get node-0 BootMode -o json",
		Args:    hostAndMore(1, "HOST"), ValidArgsFunction: completeAfterHost(o, o.settingsOf),
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(_ *control.Client, host string) ([]biosSetting, error) {
				b, pending, err := readBIOS(c.Context(), o, host)
				if err != nil {
					return nil, err
				}
				names, err := chosen(b.Settings, args[1:])
				if err != nil {
					return nil, err
				}
				return settings(names, b.Settings, pending), nil
			}, settingRows)
		},
	}
}

func settings(names []string, is, pending bmc.Settings) []biosSetting {
	all := []biosSetting{}
	for _, n := range names {
		all = append(all, biosSetting{n, is[n], pending[n]})
	}
	return all
}

func settingRows(all []biosSetting) [][]string {
	rows := [][]string{{"NAME", "VALUE", "PENDING"}}
	for _, s := range all {
		rows = append(rows, []string{s.Name, value(s.Value), value(s.Pending)})
	}
	return rows
}

func newBIOSSet(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "set HOST SETTING=VALUE...", Short: "Change BIOS settings from the next boot on",
		Example: "  labctl host bios set node-0 ProcCores=8\n  labctl host power node-0 ForceRestart",
		Args:    hostAndMore(2, "HOST and SETTING=VALUE"), ValidArgsFunction: o.completeSetting,
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(_ *control.Client, host string) ([]biosSetting, error) {
				return setBIOS(c.Context(), o, host, args[1:])
			}, settingRows)
		},
	}
}

// setBIOS changes BIOS settings of a host, each written NAME=VALUE. It returns these
// settings, with their current and pending values.
func setBIOS(ctx context.Context, o *options, host string, asked []string) ([]biosSetting, error) {
	client, err := dial(ctx, o, host)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	b, err := client.BIOS(ctx)
	if err != nil {
		return nil, err
	}
	ask := bmc.Settings{}
	for _, one := range asked {
		name, text, ok := strings.Cut(one, "=")
		if !ok {
			return nil, usage.New(fmt.Errorf("%q: write SETTING=VALUE", one))
		}
		ask[name] = bmc.Setting(text, b.Registry.Attribute(name), b.Settings[name])
	}
	if err := client.SetBIOS(ctx, ask); err != nil {
		refused := new(bmc.SettingsError)
		if errors.As(err, &refused) {
			var refusals []error
			for _, n := range refused.Names() {
				refusals = append(refusals, fmt.Errorf("%s: %s", n, refused.Refused[n]))
			}
			return nil, errors.Join(refusals...)
		}
		return nil, err
	}
	pending, err := client.PendingBIOS(ctx)
	if err != nil {
		return nil, err
	}
	return settings(slices.Sorted(maps.Keys(ask)), b.Settings, pending), nil
}

// limits describes the allowed values of a setting.
func limits(a *bmc.Attribute) string {
	span := func(from, to *int64) string {
		at := func(n *int64) string {
			if n == nil {
				return ""
			}
			return strconv.FormatInt(*n, 10)
		}
		if from == nil && to == nil {
			return ""
		}
		return at(from) + ".." + at(to)
	}
	switch a.Type {
	case bmc.EnumerationAttribute:
		return strings.Join(a.Values, " | ")
	case bmc.IntegerAttribute:
		return span(a.Lower, a.Upper)
	case bmc.StringAttribute, bmc.PasswordAttribute:
		if s := span(a.MinLength, a.MaxLength); s != "" {
			return s + " characters"
		}
	}
	return ""
}

func newBIOSSchema(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "schema HOST [SETTING...]", Short: "Show the attribute registry: types and allowed values",
		Example: "  labctl host bios schema node-0 BootMode",
		Args:    hostAndMore(1, "HOST"), ValidArgsFunction: completeAfterHost(o, o.settingsOf),
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(_ *control.Client, host string) ([]*bmc.Attribute, error) {
				b, _, err := readBIOS(c.Context(), o, host)
				if err != nil {
					return nil, err
				}
				known := map[string]*bmc.Attribute{}
				if b.Registry != nil {
					for i := range b.Registry.Attributes {
						known[b.Registry.Attributes[i].Name] = &b.Registry.Attributes[i]
					}
				}
				names, err := chosen(known, args[1:])
				all := []*bmc.Attribute{}
				for _, n := range names {
					all = append(all, known[n])
				}
				return all, err
			}, attributeRows)
		},
	}
}

func attributeRows(all []*bmc.Attribute) [][]string {
	rows := [][]string{{"NAME", "TYPE", "LIMITS", "IS"}}
	for _, a := range all {
		var is []string
		for word, yes := range map[string]bool{"read-only": a.ReadOnly, "unique": a.Unique, "at reset": a.ResetRequired} {
			if yes {
				is = append(is, word)
			}
		}
		slices.Sort(is)
		rows = append(rows, []string{a.Name, string(a.Type), limits(a), strings.Join(is, ", ")})
	}
	return rows
}

func newBIOSDiff(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "diff HOST OTHER", Short: "Show the BIOS settings in which two servers differ",
		Example: "  labctl host bios diff node-0 node-1",
		Args:    usage.Arguments("HOST", "OTHER"), ValidArgsFunction: completeAllHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			var read [2]bmc.Settings
			for i, pattern := range args {
				host, err := one(c.Context(), control.NewClient(o.state), pattern)
				if err != nil {
					return err
				}
				b, _, err := readBIOS(c.Context(), o, host)
				if err != nil {
					return err
				}
				args[i], read[i] = host, b.Settings
			}
			a, b := read[0], read[1]
			names := map[string]bool{}
			for n := range a {
				names[n] = true
			}
			for n := range b {
				names[n] = true
			}
			differ, rows := map[string][2]any{}, [][]string{{"NAME", args[0], args[1]}}
			for _, n := range slices.Sorted(maps.Keys(names)) {
				if a[n] != b[n] {
					differ[n] = [2]any{a[n], b[n]}
					rows = append(rows, []string{n, value(a[n]), value(b[n])})
				}
			}
			return o.output.print(c.OutOrStdout(), differ, rows)
		},
	}
}
