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

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/shards"
)

func newSnapshot(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Save, restore and reset servers with their disks",
		Long: `Save, restore and reset servers with their disks. A snapshot contains machines, BMCs,
accounts, logs, media, disks, faults and passwords, and nothing of the Kubernetes
API.`,
		Example: "  labctl snapshot save before.tar\n  labctl snapshot restore before.tar\n  labctl snapshot reset node-0",
	}
	c.AddCommand(newSnapshotSave(o), newSnapshotRestore(o), newSnapshotReset(o))
	return c
}

// showProgress prints the progress of a copy, not too often.
func showProgress(w io.Writer) snapshot.Progress {
	shown := -1
	return func(done, all int64) {
		if all <= 0 {
			return
		}
		if tenth := int(done * 10 / all); tenth > shown && all > 64<<20 {
			shown = tenth
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
		Use: "save FILE.tar|DIRECTORY", Short: "Save the lab as it is now",
		Long: `Save the lab as it is now, whether it runs or not. A running lab stands still
meanwhile. In a directory on the same file system, disks share their blocks with the
lab's when the file system supports that.`,
		Example: "  labctl snapshot save before.tar\n  labctl snapshot save /var/tmp/before",
		Args:    usage.Arguments("FILE.tar or DIRECTORY"),
		RunE: func(c *cobra.Command, args []string) error {
			to, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			report := showProgress(c.ErrOrStderr())
			info, err := control.NewClient(o.state).SaveSnapshot(c.Context(), to, report)
			if errors.Is(err, control.ErrNoLab) {
				if err := o.oneProcess(); err != nil {
					return err
				}
				info, err = rack.SaveSnapshot(c.Context(), o.state, to, report)
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
		Use: "restore FILE.tar|DIRECTORY", Short: "Restore the lab from a snapshot",
		Long: `Restore the lab from a snapshot. A running lab is stopped first and started again in
the background; systems on its servers start again. When there is no lab, the
command makes one for labctl up.`,
		Example: "  labctl snapshot restore before.tar\n  labctl snapshot restore before.tar --state ./copy",
		Args:    usage.Arguments("FILE.tar or DIRECTORY"),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := snapshot.Open(args[0]); err != nil { // before the lab is stopped
				return err
			}
			if err := o.oneProcess(); err != nil {
				return err
			}
			if err := o.claim(); err != nil {
				return err
			}
			var info snapshot.Info
			err := o.whileDown(c, func() (err error) {
				if info, err = rack.RestoreSnapshot(c.Context(), o.state, args[0], showProgress(c.ErrOrStderr())); err != nil {
					return err
				}
				return o.settle(c.Context(), lab.Settings{Kube: !noKube})
			})
			if err != nil {
				return err
			}
			return o.printInfo(c.OutOrStdout(), info)
		},
	}
	c.Flags().BoolVar(&noKube, "no-kube", false, "for a new lab: no Kubernetes API and no controller")
	return c
}

func newSnapshotReset(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "reset [HOST...]", Short: "Reset servers to their profile, with empty disks",
		Long: `Reset servers to what their profile says, with empty disks. Faults and quirks remain. In
a running lab AC power of each named server is cut and comes back, and the other
servers go on. Without names the command resets all servers: it stops a running lab and
starts it again in the background.`,
		Example: "  labctl snapshot reset\n  labctl snapshot reset node-0 node-1",
		Args:    cobra.ArbitraryArgs, ValidArgsFunction: completeAllHosts(o),
		RunE: func(c *cobra.Command, hosts []string) error {
			for _, h := range hosts {
				if strings.ContainsAny(h, "*?[") {
					return usage.New(fmt.Errorf("%q: patterns are not allowed: name each host", h))
				}
			}
			reset := func() error { return rack.ResetHosts(c.Context(), o.state, hosts...) }
			if len(hosts) == 0 {
				if err := o.oneProcess(); err != nil {
					return err
				}
				return o.whileDown(c, reset)
			}
			all, err := control.NewClient(o.state).Hosts(c.Context())
			if errors.Is(err, control.ErrNoLab) {
				return reset()
			}
			if err != nil {
				return err
			}
			for _, name := range hosts { // all of them before the first is reset
				if !hasHost(all, name) {
					_, err := matching(c.Context(), control.NewClient(o.state), name)
					return err
				}
			}
			for _, name := range hosts {
				if _, err := control.NewClient(o.state).ResetToProfile(c.Context(), name); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		},
	}
}

// oneProcess returns an error when the lab is in shards, which have the servers.
func (o *options) oneProcess() error {
	s, _, err := lab.LoadSettings(o.state)
	if err != nil || s.Shards == 0 { // a damaged lab is restored, too
		return nil
	}
	return fmt.Errorf("the lab in %s is in shards: stop it with labctl down, and do this to each of them, such as --state %s", o.state, shards.StateOf(o.state, 0))
}

func hasHost(all []control.Host, name string) bool {
	for _, h := range all {
		if h.Name == name {
			return true
		}
	}
	return false
}

// whileDown changes a lab that does not run. A running lab is stopped before and
// started again, also after an error.
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
	o.explicit = true // the directory is named, even if it is the default
	return errors.Join(err, launch(c.Context(), o, []string{"up"}, c.ErrOrStderr()))
}

// settle stores in a restored lab's directory what labctl up needs to start it. A lab without
// settings gets fresh ones.
func (o *options) settle(ctx context.Context, fresh lab.Settings) error {
	r, err := rack.StoredRack(ctx, o.state)
	if err != nil {
		return err
	}
	return lab.AdoptState(o.state, r, fresh)
}
