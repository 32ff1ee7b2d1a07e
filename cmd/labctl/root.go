package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/emulator/suggest"
	"github.com/metalab-dev/metalab/version"
)

// options are the flags of all commands.
type options struct {
	state  string
	output format
	// explicit means that --state was given: the lab in it is meant to last.
	explicit bool
	cluster  clusterFlags
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
	root.SetFlagErrorFunc(flagError)
	must(root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	root.AddCommand(
		newUp(o), newShard(o), newDown(o), newList(o), newStatus(o), newHosts(o), newHost(o), newConsole(o), newDisk(o), newMedia(o), newSEL(o), newFault(o), newQuirk(o), newProfile(o), newDialect(o), newRecord(o), newConformance(o), newJournal(o), newView(o),
		newImage(o), newModule(o), newMCO(o), newSnapshot(o), newMetrics(o), newVersion(o), newDocs(o), newDemo(o), newFeatures(o), newKubectl(o), newKube(o), newElemental(o),
	)
	group(root)
	strict(root)
	o.explainEnds(root)
	o.leaveCluster(root)
	return root
}

// strict makes every command refuse arguments that it does not take.
func strict(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.Args == nil {
			sub.Args = noArguments
		}
		if sub.RunE == nil && sub.HasSubCommands() {
			group(sub)
		}
		strict(sub)
	}
}

// group makes a command that has commands refuse those that it has not.
func group(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, append(sub.Aliases, sub.Name())...)
			}
		}
		return &usageError{fmt.Errorf("%s has no command %q%s", c.CommandPath(), args[0], suggest.DidYouMean(args[0], names))}
	}
}

// unknownFlag matches pflag's error for a flag that a command has not.
var unknownFlag = regexp.MustCompile(`^unknown flag: --([^=]+)`)

// valueForms are the forms of the values of a flag, by pflag's type.
var valueForms = map[string]string{
	"int": "a whole number", "uint": "a whole number", "uint8": "a number from 0 to 255, such as 0xc0", "uint64": "a whole number",
	"float64": "a number", "bool": "true or false", "duration": "a duration, such as 30s or 5m",
}

// flagError returns the usage error for a flag, with the flag that may be meant.
func flagError(c *cobra.Command, err error) error {
	if bad := new(pflag.InvalidValueError); errors.As(err, &bad) {
		if strings.HasPrefix(bad.Unwrap().Error(), "--") {
			return &usageError{bad.Unwrap()} // it names the flag already
		}
		if form := valueForms[bad.GetFlag().Value.Type()]; form != "" {
			return &usageError{fmt.Errorf("--%s %q is not %s", bad.GetFlag().Name, bad.GetValue(), form)}
		}
	}
	near := ""
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if all := suggest.Near(m[1], names); len(all) > 0 {
			near = ". Did you mean --" + strings.Join(all, " or --") + "?"
		}
	}
	return &usageError{fmt.Errorf("%w%s", err, near)}
}

// must panics on an error in the definition of a command.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// arguments makes a command accept the named arguments. Those in brackets are
// optional.
func arguments(names ...string) cobra.PositionalArgs {
	least := 0
	for _, n := range names {
		if n[0] != '[' {
			least++
		}
	}
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return &usageError{fmt.Errorf("%s takes no argument %q", c.CommandPath(), args[len(names)])}
		case len(args) < least:
			return &usageError{fmt.Errorf("%s needs %s", c.CommandPath(), names[len(args)])}
		}
		return nil
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no argument %q", cmd.Name(), args[0])}
	}
	return nil
}

// resolve determines the lab's directory.
func (o *options) resolve(cmd *cobra.Command) (err error) {
	if o.explicit = o.state != ""; o.cluster.name != "" {
		if o.explicit {
			return &usageError{errors.New("--state and --cluster exclude each other")}
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
