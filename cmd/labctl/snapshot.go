package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/control"
	"github.com/metalab-dev/metalab/emulator/lab/snapshot"
	"github.com/metalab-dev/metalab/scenarios/world"
)

func newSnapshot(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Save servers with their disks, bring them back, or make them new",
		Long: `Save servers with their disks, bring them back, or make them new. A snapshot has
machines, BMCs, accounts, logs, media, disks and faults, and passwords; it has
nothing of the Kubernetes API.`,
		Example: "  labctl snapshot save before.tar\n  labctl snapshot restore before.tar\n  labctl snapshot reset node-0",
	}
	c.AddCommand(newSnapshotSave(o), newSnapshotRestore(o), newSnapshotReset(o))
	return c
}

// showProgress tells how far a copy is, not too often.
func showProgress(w io.Writer) snapshot.Progress {
	told := -1
	return func(done, all int64) {
		if all <= 0 {
			return
		}
		if tenth := int(done * 10 / all); tenth > told && all > 64<<20 {
			told = tenth
			fmt.Fprintf(w, "%s of %s\n", size(done), size(all))
		}
	}
}

func (o *options) printInfo(w io.Writer, info snapshot.Info) error {
	return o.output.print(w, info, [][]string{
		{"name", info.Name}, {"seed", fmt.Sprint(info.Seed)}, {"hosts", fmt.Sprint(info.Hosts)}, {"time", info.Time.Format(time.RFC3339)},
	})
}

func newSnapshotSave(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "save FILE.tar|DIRECTORY", Short: "Save the lab as it is at this moment",
		Long: `Save the lab as it is at this moment, whether it runs or not. One that runs stands
still meanwhile. In a directory on the same file system disks share their blocks
with the lab's, where it can do that.`,
		Example: "  labctl snapshot save before.tar\n  labctl snapshot save /var/tmp/before",
		Args:    arguments("FILE.tar or DIRECTORY"),
		RunE: func(c *cobra.Command, args []string) error {
			to, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			tell := showProgress(c.ErrOrStderr())
			info, err := control.NewClient(o.state).SaveSnapshot(c.Context(), to, tell)
			if errors.Is(err, control.ErrNoLab) {
				info, err = lab.SaveSnapshot(c.Context(), o.state, to, tell)
			}
			if err != nil {
				return err
			}
			return o.printInfo(c.OutOrStdout(), info)
		},
	}
}

func newSnapshotRestore(o *options) *cobra.Command {
	noKube := false
	c := &cobra.Command{
		Use: "restore FILE.tar|DIRECTORY", Short: "Bring back the lab as it was saved",
		Long: `Bring back the lab as it was saved. One that runs is ended first and started again
in the background; what runs on its servers is started anew. Where there is no
lab one is made, for labctl up.`,
		Example: "  labctl snapshot restore before.tar\n  labctl snapshot restore before.tar --state ./copy",
		Args:    arguments("FILE.tar or DIRECTORY"),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := snapshot.Open(args[0]); err != nil { // before anything is ended
				return err
			}
			var info snapshot.Info
			err := o.whileDown(c, func() (err error) {
				if info, err = lab.RestoreSnapshot(c.Context(), o.state, args[0], showProgress(c.ErrOrStderr())); err != nil {
					return err
				}
				return o.settle(c.Context(), !noKube)
			})
			if err != nil {
				return err
			}
			return o.printInfo(c.OutOrStdout(), info)
		},
	}
	c.Flags().BoolVar(&noKube, "no-kube", false, "for a lab that is made: no Kubernetes API and no controller")
	return c
}

func newSnapshotReset(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "reset [HOST...]", Short: "Make servers new: as their profile says, with empty disks",
		Long: `Make servers new: as their profile says, with empty disks. Without a name all of
them are. A lab that runs is ended first and started again in the background.`,
		Example: "  labctl snapshot reset\n  labctl snapshot reset node-0 node-1",
		Args:    cobra.ArbitraryArgs, ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, hosts []string) error {
			for _, h := range hosts {
				if strings.ContainsAny(h, "*?[") {
					return &usageError{fmt.Errorf("%q: name each host", h)}
				}
			}
			if all, err := control.NewClient(o.state).Hosts(c.Context()); err == nil { // before anything is ended
				for _, name := range hosts {
					if !hasHost(all, name) {
						return fmt.Errorf("there is no host %s", name)
					}
				}
			}
			return o.whileDown(c, func() error { return lab.ResetHosts(c.Context(), o.state, hosts...) })
		},
	}
}

func hasHost(all []control.Host, name string) bool {
	for _, h := range all {
		if h.Name == name {
			return true
		}
	}
	return false
}

// whileDown does something to a lab that does not run. One that runs is ended
// before and started again, whatever became of it.
func (o *options) whileDown(c *cobra.Command, do func() error) error {
	err := control.NewClient(o.state).Down(c.Context())
	switch {
	case errors.Is(err, control.ErrNoLab):
		return do()
	case err != nil:
		return err
	}
	fmt.Fprintln(c.ErrOrStderr(), "the lab is down; it will be started again")
	err = do()
	o.explicit = true // its directory is named, be it the default
	return errors.Join(err, launch(c.Context(), o, []string{"up"}, c.ErrOrStderr()))
}

// settle lets labctl up find in a directory what it needs to start the lab that
// was put there.
func (o *options) settle(ctx context.Context, kube bool) error {
	r, err := lab.StoredRack(ctx, o.state)
	if err != nil {
		return err
	}
	return world.AdoptState(o.state, r, kube)
}
