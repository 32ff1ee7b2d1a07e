package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newDisk(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:     "disk",
		Short:   "List, pull, insert and fail drives",
		Example: "  labctl disk ls node-0\n  labctl disk pull node-0 Disk.0",
	}
	each := func(c *cobra.Command, pattern string, do func(lab *control.Client, host string) (control.Disks, error)) error {
		return forHosts(c, o, pattern, do, diskRows)
	}

	ls := &cobra.Command{
		Use: "ls HOST", Short: "List the drives and volumes of a server", Example: "  labctl disk ls node-0 -o json",
		Args: usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			return each(c, args[0], func(lab *control.Client, host string) (control.Disks, error) {
				return lab.Disks(c.Context(), host)
			})
		},
	}
	pull := &cobra.Command{
		Use: "pull HOST DISK", Short: "Pull a drive out of its bay, also while the server runs", Example: "  labctl disk pull node-0 Disk.0",
		Args: usage.Arguments("HOST", "DISK"), ValidArgsFunction: completeAfterHost(o, o.disksOf),
		RunE: func(c *cobra.Command, args []string) error {
			return each(c, args[0], func(lab *control.Client, host string) (control.Disks, error) {
				return lab.PullDisk(c.Context(), host, args[1])
			})
		},
	}
	in := control.DiskInsertion{}
	insert := &cobra.Command{
		Use: "insert HOST DISK", Short: "Insert a drive into an empty bay",
		Example: `  labctl disk insert node-0 Disk.0                 # the one that was pulled from there
  labctl disk insert node-0 Disk.0 --what new      # as it comes from the factory
  labctl disk insert node-0 Disk.0 --what foreign  # that was part of another server's volume`,
		Args: usage.Arguments("HOST", "DISK"), ValidArgsFunction: completeAfterHost(o, o.disksOf),
		RunE: func(c *cobra.Command, args []string) error {
			return each(c, args[0], func(lab *control.Client, host string) (control.Disks, error) {
				return lab.InsertDisk(c.Context(), host, args[1], in)
			})
		},
	}
	in.What = "same"
	choiceFlag(insert, &in.What, "what", []string{"same", "new", "foreign"}, "same, new or foreign")
	insert.Flags().StringVar(&in.Serial, "serial", "", "serial number of a drive on the shelf (default: the one pulled from this bay)")
	how := control.DiskFailure{}
	fail := &cobra.Command{
		Use: "fail HOST DISK", Short: "Make a drive fail, or repair it",
		Example: `  labctl disk fail node-0 Disk.0
  labctl disk fail node-0 Disk.0 --how predict   # it says that it will fail
  labctl disk fail node-0 Disk.0 --how revive`,
		Args: usage.Arguments("HOST", "DISK"), ValidArgsFunction: completeAfterHost(o, o.disksOf),
		RunE: func(c *cobra.Command, args []string) error {
			return each(c, args[0], func(lab *control.Client, host string) (control.Disks, error) {
				return lab.FailDisk(c.Context(), host, args[1], how)
			})
		},
	}
	how.How = "fail"
	choiceFlag(fail, &how.How, "how", []string{"fail", "predict", "unpredict", "revive"}, "fail, predict, unpredict or revive")
	c.AddCommand(ls, pull, insert, fail, newDiskReplace(o))
	return c
}

// disksOf completes the bays of a host.
func (o *options) disksOf(c *cobra.Command, args []string) (ids []string) {
	if len(args) > 1 {
		return nil
	}
	d, err := control.NewClient(o.state).Disks(c.Context(), args[0])
	if err != nil {
		return nil // a completion has no errors to show
	}
	for _, b := range d.Bays {
		ids = append(ids, b.ID)
	}
	return ids
}

func newDiskReplace(o *options) *cobra.Command {
	watch := false
	c := &cobra.Command{
		Use: "replace HOST DISK", Short: "Replace a drive by a new one",
		Long: `Pull a drive and insert a new one into its bay. A RAID controller rebuilds the
volumes of the old one; --watch shows the progress. Rebuilding takes the lab's time,
and needs the server to be on.`,
		Example: "  labctl disk replace node-0 Disk.0 --watch",
		Args:    usage.Arguments("HOST", "DISK"), ValidArgsFunction: completeAfterHost(o, o.disksOf),
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(lab *control.Client, host string) (control.Disks, error) {
				if _, err := lab.PullDisk(c.Context(), host, args[1]); err != nil {
					return control.Disks{}, err
				}
				d, err := lab.InsertDisk(c.Context(), host, args[1], control.DiskInsertion{What: "new"})
				if err == nil && watch {
					d, err = watchWork(c.Context(), c.ErrOrStderr(), lab, host, args[1])
				}
				return d, err
			}, diskRows)
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "wait until it is rebuilt, and show the progress")
	return c
}

func diskRows(d control.Disks) [][]string {
	rows := [][]string{{"DISK", "SERIAL", "+MODEL", "SIZE", "STATE", "HEALTH", "PART OF"}}
	for _, x := range d.Bays {
		health := x.Health
		if x.Predicted {
			health += ", failure predicted"
		}
		rows = append(rows, []string{x.ID, x.Serial, strings.TrimSpace(x.Model), size(x.Capacity), x.State, health, strings.Join(x.Volumes, " ")})
	}
	for _, x := range d.Shelf {
		rows = append(rows, []string{"(shelf, from " + x.ID + ")", x.Serial, x.Model, size(x.Capacity), "", "", ""})
	}
	for _, v := range d.Volumes {
		rows = append(rows, []string{"volume " + v.Controller + "/" + v.ID, "", v.RAID, size(v.Capacity), working(v), v.Health, ""})
	}
	return rows
}

// size formats a number of bytes in the decimal units of drive makers.
func size(n int64) string {
	if n == 0 {
		return ""
	}
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	f, i := float64(n), 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1000
	}
	return fmt.Sprintf("%.4g %s", f, units[i])
}
