package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/metalab-dev/metalab/features"
	"github.com/metalab-dev/metalab/features/steps"
)

func newFeatures(o *options) *cobra.Command {
	run := features.Options{Format: features.Pretty}
	form := string(run.Format)
	c := &cobra.Command{
		Use:   "features [PATH]...",
		Short: "Run scenarios, ours or yours, in labs of their own",
		Long: `Run scenarios in labs of their own, which leave nothing behind. Without PATH they
are ours: how hosts are registered, provisioned and let go, and what goes wrong.
A PATH is a file of yours, with :LINE behind it or not, or a directory; what is
not there may be one of ours, such as state/available.feature. The steps are
listed by labctl features steps.

Results go to the standard output; with junit and html, a line per scenario goes
to the standard error. The exit code is 1 if a scenario does not pass.`,
		Example: `  labctl features
  labctl features --tags '@B-91 || @B-93'
  labctl features my.feature --format html > report.html
  labctl features steps`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, paths []string) error {
			run.Paths, run.Format = paths, features.Format(form)
			run.Out, run.Progress = c.OutOrStdout(), c.ErrOrStderr()
			run.Colors = term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
			if run.Parallel < 1 {
				return &usageError{fmt.Errorf("--parallel %d: use 1 or more", run.Parallel)}
			}
			err := features.Run(c.Context(), run)
			if bad := new(features.UsageError); errors.As(err, &bad) {
				return &usageError{err}
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&run.Tags, "tags", "", "only scenarios whose tags fit: '@B-91', '@B-91 || @B-93', '@fault && ~@slow'")
	f.StringVar(&form, "format", form, "how results are told: pretty, junit or html")
	f.IntVar(&run.Parallel, "parallel", 1, "how many labs there are at a time")
	must(c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"pretty", "junit", "html"}, cobra.ShellCompDirectiveNoFileComp)))
	c.AddCommand(newFeaturesSteps(o))
	return c
}

func newFeaturesSteps(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "steps",
		Short: "List the steps that scenarios can be made of",
		Long: `List the steps that scenarios can be made of, by what they are about. TEXT and NUMBER
stand for what a scenario says; of (this|that) it says one; [s] may be left out. Given, When, Then, And and But are all the same.`,
		Example: "  labctl features steps\n  labctl features steps -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			all := steps.Catalogue()
			if o.output != table {
				return o.output.print(c.OutOrStdout(), all, nil)
			}
			about := ""
			var b strings.Builder
			for _, s := range all {
				if s.About != about {
					about = s.About
					fmt.Fprintf(&b, "%s:\n", about)
				}
				fmt.Fprintf(&b, "  %s\n      %s\n", s.Phrase, s.Doc)
			}
			_, err := fmt.Fprint(c.OutOrStdout(), b.String())
			return err
		},
	}
}
