package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// options are the flags that every command takes.
type options struct {
	state  string
	output format
	// explicit: --state was given, so what is in it is meant to last.
	explicit bool
}

func newRoot() *cobra.Command {
	o := &options{output: table}
	root := &cobra.Command{
		Use:   "labctl",
		Short: "A virtual rack of servers for people who write bare-metal software",
		Example: `  labctl up --hosts 2        # a rack, a Kubernetes API, the controller; Ctrl-C ends it
  labctl demo                # provision one server and leave the lab up
  labctl hosts               # addresses and credentials of the BMCs
  labctl kubectl get bmh -w  # upstream's kubectl, talking to the lab`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return o.resolve(cmd) },
	}
	f := root.PersistentFlags()
	f.StringVar(&o.state, "state", "", "directory that the lab lives in (default: one lab per user; METALAB_STATE)")
	f.VarP(&o.output, "output", "o", "output format: table, json or yaml")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newUp(o), newDown(o), newStatus(o), newHosts(o), newDemo(o), newKubectl(o))
	for _, c := range root.Commands() {
		if c.Args == nil {
			c.Args = noArguments
		}
	}
	return root
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no argument %q", cmd.Name(), args[0])}
	}
	return nil
}

// resolve settles which lab is meant.
func (o *options) resolve(cmd *cobra.Command) error {
	o.explicit = o.state != ""
	if o.state == "" {
		o.state = os.Getenv("METALAB_STATE")
	}
	if o.state == "" {
		dir, err := defaultState()
		if err != nil {
			return err
		}
		o.state = dir
	}
	dir, err := filepath.Abs(o.state)
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	o.state = dir
	return nil
}

// defaultState is the lab of this user (XDG Base Directory 0.8: state).
func defaultState() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "metalab"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("where to keep the lab: %w: name a directory with --state", err)
	}
	return filepath.Join(home, ".local", "state", "metalab"), nil
}
