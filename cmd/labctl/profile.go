package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/suggest"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/lab"
)

// newProfile makes the command that shows the server models.
func newProfile(o *options) *cobra.Command {
	var at string
	c := &cobra.Command{
		Use:   "profile",
		Short: "Show server models: hardware, firmware and the dialect of the BMC",
		Long: `Show server models: hardware, firmware and the dialect of the BMC.

Models are built in, part of the lab, or in a folder (--profiles):

  profiles/NAME.yaml     hardware, firmware, timings, and the name of the dialect
  registries/NAME.yaml   BIOS settings, if the profile names a registry
  dialects/NAME.yaml     differences of the BMC from a built-in dialect

labctl record makes all three from a BMC. To write them by hand, begin with the
output of labctl profile show NAME -o yaml and labctl dialect show NAME -o yaml.`,
		Example: `  labctl profile ls
  labctl profile show raid -o yaml
  labctl profile ls --profiles ./models`,
	}
	c.PersistentFlags().StringVar(&at, "profiles", "", "folder with further models, or a profile")
	must(c.MarkPersistentFlagDirname("profiles"))
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, _, err := models(o, at)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	c.AddCommand(&cobra.Command{
		Use: "ls", Short: "List the server models",
		Example: "  labctl profile ls -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			names, from, err := models(o, at)
			if err != nil {
				return err
			}
			all := []summaryOf{}
			rows := [][]string{{"PROFILE", "DIALECT", "MODEL", "+PROCESSORS", "MEMORY", "+PORTS", "DRIVES", "+BIOS SETTINGS"}}
			for _, name := range names {
				p, _, err := rack.ReadProfile(from, name)
				if err != nil {
					return err
				}
				s := summarize(p)
				all = append(all, s)
				rows = append(rows, []string{s.Name, s.Dialect, s.Manufacturer + " " + s.Model, s.Processors, s.Memory, strconv.Itoa(s.Ports), s.Drives, strconv.Itoa(s.Settings)})
			}
			return o.output.print(c.OutOrStdout(), all, rows)
		},
	}, &cobra.Command{
		Use: "show NAME", Short: "Show a server model in full", Args: usage.Arguments("NAME"), ValidArgsFunction: complete,
		Example: "  labctl profile show raid\n  labctl profile show raid -o yaml > mine.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			names, from, err := models(o, at)
			if err != nil {
				return err
			}
			p, r, err := rack.ReadProfile(from, args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return usage.New(fmt.Errorf("there is no profile %q%s", args[0], suggest.UseOneOf(args[0], names)))
			}
			if err != nil {
				return err
			}
			return show(o, c, p, profileRows(p, r))
		},
	})
	return c
}

// models returns the names of all models and the file system to read them from.
func models(o *options, at string) ([]string, fs.FS, error) {
	names, from := lab.Profiles(), rack.Models(o.state)
	if stored, err := fs.ReadDir(os.DirFS(o.state), "models/profiles"); err == nil {
		for _, e := range stored {
			names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
		}
	}
	if at != "" {
		given, err := rack.LoadModels(at)
		if err != nil {
			return nil, nil, err
		}
		names, from = append(names, given.Profiles()...), rack.Beside(given, from)
	}
	slices.Sort(names)
	return slices.Compact(names), from, nil
}

// summaryOf is a line about a model.
type summaryOf struct {
	Name         string `json:"name"`
	Dialect      string `json:"dialect"`
	Manufacturer string `json:"manufacturer"`
	Model        string `json:"model"`
	Processors   string `json:"processors"`
	Memory       string `json:"memory"`
	Ports        int    `json:"ports"`
	Drives       string `json:"drives"`
	RAID         bool   `json:"raid"`
	Settings     int    `json:"settings"` // number of its BIOS settings
}

func summarize(p *machine.Profile) summaryOf {
	s := summaryOf{
		Name: p.Name, Dialect: p.Dialect, Manufacturer: p.Manufacturer, Model: p.Model, Ports: len(p.NICs),
		Processors: fmt.Sprintf("%d x %d cores", p.Processors.Sockets, p.Processors.Cores), Memory: fmt.Sprintf("%d GiB", p.MemoryMiB/1024),
		Settings: len(p.Firmware.Model.Registry().Attributes),
	}
	count := map[string]int{}
	for _, c := range p.Storage {
		s.RAID = s.RAID || c.RAID != nil
		for _, b := range c.Bays {
			count[string(b.Protocol)+" "+string(b.Media)]++
		}
	}
	var drives []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		drives = append(drives, fmt.Sprintf("%d %s", count[kind], kind))
	}
	if s.Drives = strings.Join(drives, ", "); s.RAID {
		s.Drives += " (RAID)"
	}
	return s
}

// profileRows are a model for people.
func profileRows(p *machine.Profile, r *dialect.Record) [][]string {
	rows := [][]string{
		{"PROFILE", p.Name}, {"dialect", fmt.Sprintf("%s: %s of %s, Redfish %s", p.Dialect, r.Product, r.Vendor, r.RedfishVersion)},
		{"server", p.Manufacturer + " " + p.Model}, {"BIOS", p.BIOS.Vendor + " " + p.BIOS.Version}, {"BMC firmware", p.BMCFirmware},
		{"processors", fmt.Sprintf("%d x %s, %d cores, %d threads", p.Processors.Sockets, p.Processors.Model, p.Processors.Cores, p.Processors.Threads)},
		{"memory", fmt.Sprintf("%d MiB: %d x %s %s %s", p.MemoryMiB, p.Memory.Modules, p.Memory.Vendor, p.Memory.Type, p.Memory.Form)},
	}
	for _, n := range p.NICs {
		rows = append(rows, []string{"network port " + n.ID, fmt.Sprintf("%s, %d Mbit/s, %s", n.Name, n.SpeedMbps, n.PCIAddress)})
	}
	for _, s := range p.Storage {
		raid := "no RAID"
		if s.RAID != nil {
			var types []string
			for _, t := range s.RAID.Types {
				types = append(types, string(t.Type))
			}
			raid = strings.Join(types, ", ")
		}
		rows = append(rows, []string{"storage " + s.ID, fmt.Sprintf("%s %s, firmware %s: %s", s.Vendor, s.Product, s.Firmware, raid)})
		for _, b := range s.Bays {
			rows = append(rows, []string{"  drive", fmt.Sprintf("%s %s, %s %s, %d GB", b.Vendor, b.Product, b.Protocol, b.Media, b.Capacity/1e9)})
		}
	}
	for _, c := range p.Cards {
		rows = append(rows, []string{"card " + c.ID, strings.TrimSpace(c.Vendor + " " + c.Product + " " + c.Slot)})
	}
	t := p.Thermal
	rows = append(rows, []string{"sensors", strconv.Itoa(len(t.Sensors))}, []string{"fans", fmt.Sprintf("%d, %d needed", t.Fans.Count, t.Fans.Needed)},
		[]string{"supplies", fmt.Sprintf("%d x %g W, %d needed", t.Supplies.Count, t.Supplies.Watts, t.Supplies.Needed)})
	for _, c := range p.Firmware.Model.Components {
		rows = append(rows, []string{"firmware " + c.ID, c.Name + " " + c.Version})
	}
	m := p.Firmware.Model.Registry()
	return append(rows, []string{"BIOS settings", fmt.Sprintf("%d, %d dependencies (%s)", len(m.Attributes), len(m.Dependencies), or(m.ID, "none"))})
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// show prints data of the emulator's as its files have it, or rows.
func show(o *options, c *cobra.Command, v any, rows [][]string) error {
	raw, err := yamlfile.Write(v)
	if err != nil {
		return err
	}
	switch o.output {
	case yamlFormat:
		_, err = c.OutOrStdout().Write(raw)
		return err
	case jsonFormat:
		var doc any
		if err := yaml.Unmarshal(raw, &doc); err != nil {
			return err
		}
		return o.output.print(c.OutOrStdout(), doc, nil)
	}
	return o.output.print(c.OutOrStdout(), nil, rows)
}
