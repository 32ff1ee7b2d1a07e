package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// raidLevels are the RAID levels of BareMetalHosts.
var raidLevels = map[string]string{"0": "RAID0", "1": "RAID1", "5": "RAID5", "6": "RAID6", "1+0": "RAID10", "5+0": "RAID50", "6+0": "RAID60"}

// levelNames are its keys, in the order of a message.
var levelNames = []string{"0", "1", "5", "6", "1+0", "5+0", "6+0"}

func newHostRAID(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "raid",
		Short: "Show, create and delete RAID volumes",
		Long: `Show, create and delete the volumes of a server's RAID controllers, as at the
server's console: the server must be on. Operators use spec.raid of a BareMetalHost
instead.`,
		Example: "  labctl host raid create node-0 5 --disk Disk.0 --disk Disk.1 --disk Disk.2\n  labctl host raid ls node-0 --watch",
	}
	c.AddCommand(newRAIDShow(o), newRAIDCreate(o), newRAIDRemove(o))
	return c
}

func newRAIDShow(o *options) *cobra.Command {
	watch := false
	c := &cobra.Command{
		Use: "ls HOST", Aliases: []string{"show"}, Short: "Show the volumes of a server", Example: "  labctl host raid ls node-0\n  labctl host raid ls node-0 --watch",
		Args: usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			return o.eachVolumes(c, args[0], func(lab *control.Client, host string) (control.Disks, error) {
				if watch {
					return watchWork(c.Context(), c.ErrOrStderr(), lab, host, "")
				}
				return lab.Disks(c.Context(), host)
			})
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "wait for work on the volumes to end, and show the progress")
	return c
}

func newRAIDCreate(o *options) *cobra.Command {
	in, gib := control.VolumeCreation{}, 0
	c := &cobra.Command{
		Use: "create HOST LEVEL", Short: "Create a volume",
		Long: "Create a volume. LEVEL is 0, 1, 5, 6, 1+0, 5+0 or 6+0.",
		Example: `  labctl host raid create node-0 1                       # of the first two drives that are alike and free
  labctl host raid create node-0 6 --size 500 --name data
  labctl host raid create node-0 1 --disk Disk.4 --disk Disk.5`,
		Args: usage.Arguments("HOST", "LEVEL"), ValidArgsFunction: completeHosts(o, levelNames...),
		RunE: func(c *cobra.Command, args []string) error {
			level, err := choice("LEVEL", args[1], levelNames)
			if err != nil {
				return err
			}
			in.RAID = raidLevels[level]
			if gib < 0 {
				return usage.New(errors.New("--size is negative"))
			}
			in.Capacity = int64(gib) << 30
			return o.eachVolumes(c, args[0], func(lab *control.Client, host string) (control.Disks, error) {
				return lab.CreateVolume(c.Context(), host, in)
			})
		},
	}
	c.Flags().StringVar(&in.Controller, "controller", "1", "storage controller")
	c.Flags().StringArrayVar(&in.Disks, "disk", nil, "drive of the volume; repeat the flag for several (default: as few as needed)")
	must(c.RegisterFlagCompletionFunc("disk", func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || o.resolve(c) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.disksOf(c, args[:1]), cobra.ShellCompDirectiveNoFileComp
	}))
	c.Flags().IntVar(&gib, "size", 0, "size in GiB (default: all free space)")
	c.Flags().StringVar(&in.Name, "name", "", "name of the volume")
	return c
}

func newRAIDRemove(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "rm HOST CONTROLLER/VOLUME", Short: "Delete a volume; its data stays on the drives", Example: "  labctl host raid rm node-0 1/1",
		Args: usage.Arguments("HOST", "CONTROLLER/VOLUME"), ValidArgsFunction: completeAfterHost(o, o.volumesOf),
		RunE: func(c *cobra.Command, args []string) error {
			controller, volume, ok := strings.Cut(args[1], "/")
			if !ok || controller == "" || volume == "" {
				return usage.New(fmt.Errorf("%q is no volume: use CONTROLLER/VOLUME, such as 1/1", args[1]))
			}
			return o.eachVolumes(c, args[0], func(lab *control.Client, host string) (control.Disks, error) {
				return lab.DeleteVolume(c.Context(), host, controller, volume)
			})
		},
	}
}

// volumesOf completes the volumes of a host.
func (o *options) volumesOf(c *cobra.Command, args []string) (ids []string) {
	if len(args) > 1 {
		return nil
	}
	d, err := control.NewClient(o.state).Disks(c.Context(), args[0])
	if err != nil {
		return nil // a completion has no errors to show
	}
	for _, v := range d.Volumes {
		ids = append(ids, v.Controller+"/"+v.ID)
	}
	return ids
}

// eachVolumes calls a function for every host that a pattern selects, and prints the
// volumes.
func (o *options) eachVolumes(c *cobra.Command, pattern string, do func(lab *control.Client, host string) (control.Disks, error)) error {
	return forHosts(c, o, pattern, func(lab *control.Client, host string) ([]control.Volume, error) {
		d, err := do(lab, host)
		return d.Volumes, err
	}, volumeRows)
}

func volumeRows(all []control.Volume) [][]string {
	rows := [][]string{{"VOLUME", "NAME", "RAID", "SIZE", "HEALTH", "DISKS", "AT WORK"}}
	for _, v := range all {
		rows = append(rows, []string{v.Controller + "/" + v.ID, v.Name, v.RAID, size(v.Capacity), v.Health, strings.Join(v.Disks, " "), working(v)})
	}
	return rows
}

// working describes the work on a volume.
func working(v control.Volume) string {
	var out []string
	for _, w := range v.Work {
		out = append(out, fmt.Sprintf("%s %d %%", w.Kind, w.Percent))
	}
	return strings.Join(out, ", ")
}

// watchPause is the polling interval in real time.
const watchPause = 200 * time.Millisecond

// watchWork shows the progress of work on a server's volumes, or on those that a
// disk is part of, until there is none.
func watchWork(ctx context.Context, w io.Writer, lab *control.Client, host, disk string) (control.Disks, error) {
	shown := newStatusLine(w)
	defer shown.end()
	for {
		d, err := lab.Disks(ctx, host)
		if err != nil {
			return d, err
		}
		var now []string
		for _, v := range d.Volumes {
			if disk != "" && !slices.Contains(v.Disks, disk) {
				continue
			}
			if text := working(v); text != "" {
				now = append(now, fmt.Sprintf("%s: volume %s/%s: %s", host, v.Controller, v.ID, text))
			}
		}
		if len(now) == 0 {
			return d, nil
		}
		shown.set(strings.Join(now, "; "))
		select {
		case <-ctx.Done():
			return d, ctx.Err()
		case <-time.After(watchPause):
		}
	}
}
