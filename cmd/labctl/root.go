package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/version"
)

// options are the flags of all commands.
type options struct {
	state  string
	output format
	// explicit means that --state was given: the lab in it is meant to last.
	explicit bool
	cluster  clusterFlags
	root     *cobra.Command // labctl itself
}

// foreign are flags that Kubernetes' libraries add to every program. kubectl has
// them; labctl does not use them.
var foreign = pflag.CommandLine

func newRoot() *cobra.Command {
	pflag.CommandLine = pflag.NewFlagSet("labctl", pflag.ContinueOnError)
	o := &options{output: table}
	root := &cobra.Command{
		Use:   "labctl",
		Short: "A virtual rack of servers for people who write bare-metal software",
		Long: `A virtual rack of servers for people who write bare-metal software.

labctl exits with 0 on success, with 1 when something failed, and with 2 for a wrong
command line.`,
		Example: `  labctl up --hosts 2                      # a rack, a Kubernetes API, the controller; Ctrl-C ends it
  labctl demo                              # provision one server and leave the lab up
  labctl hosts                             # addresses and credentials of the BMCs
  labctl host power node-0 On
  labctl console node-0                    # its serial console
  labctl fault add --bmc node-0 --status 503 --retry-after 30s --count 3
  labctl view                              # the link of its racks in a browser
  labctl journal --follow                  # which client did what, and what happened
  labctl docs first-lab                    # this documentation, page by page
  labctl kubectl get bmh -w                # upstream's kubectl, talking to the lab`,
		Version:      version.Read().String(),
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return o.resolve(cmd) },
	}
	root.SetVersionTemplate("labctl {{.Version}}\n") // as labctl version prints it
	f := root.PersistentFlags()
	f.StringVar(&o.state, "state", "", "directory that the lab lives in (default: one lab per user; METALAB_STATE)")
	f.VarP(&o.output, "output", "o", "output format: table, wide, json or yaml")
	o.cluster.bind(f)
	must(root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	root.AddCommand(
		newUp(o), newShard(o), newDown(o), newList(o), newStatus(o), newHosts(o), newHost(o), newConsole(o), newDisk(o), newMedia(o), newSEL(o), newFault(o), newQuirk(o), newProfile(o), newDialect(o), newRecord(o), newConformance(o), newJournal(o), newView(o),
		newImage(o), newModule(o), newMCO(o), newSnapshot(o), newMetrics(o), newVersion(o), newDocs(o), newDemo(o), newFeatures(o), newKubectl(o), newKube(o), newElemental(o),
	)
	usage.Strict(root)
	o.explainEnds(root)
	o.leaveCluster(root)
	o.nameLab(root)
	o.root = root
	return root
}

// must panics on an error in the definition of a command.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// resolve determines the lab's directory.
func (o *options) resolve(cmd *cobra.Command) (err error) {
	if o.explicit = o.state != ""; o.cluster.name != "" {
		if o.explicit {
			return usage.New(errors.New("--state and --cluster exclude each other"))
		}
		o.state, err = o.cluster.enter(cmd)
		return err
	}
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

// defaultState returns the directory of this user's lab (XDG Base Directory 0.8:
// state).
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
