package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/features"
	"github.com/metalab-dev/metalab/features/steps"
)

func newFeatures(o *options) *cobra.Command {
	run := features.Options{Format: features.Pretty}
	form, list := string(run.Format), false
	c := &cobra.Command{
		Use:   "features [PATH]...",
		Short: "Run feature files, built-in or yours, in temporary labs",
		Long: `Run scenarios in temporary labs, which leave nothing behind. Without PATH the
built-in features run: how hosts are registered, provisioned and deprovisioned, and
what can go wrong. PATH is a feature file, a file and line (FILE:LINE) or a
directory; a PATH that does not exist may name a built-in feature, such as
state/available.feature. A line selects the scenario, or the row of its Examples,
that it is in. labctl features steps lists the steps.

Tags are selected with and, or, not and parentheses; &&, ||, ! and ~ are the same,
and "@a,@b" is "(@a or @b)". Nothing runs when a scenario has a step that does not
exist.

A step waits for its effect for --limit of the lab's time, which goes as fast as there
is work: at the limit it fails once nothing has changed for a minute of real time.
In a lab whose time stands it fails after three minutes; METALAB_PATIENCE=2 doubles
what is real time.

Results go to standard output; with junit and html, one line per scenario goes to
standard error. The exit code is 1 when a scenario fails.`,
		Example: `  labctl features
  labctl features --tags '@B-91 or @B-93'
  labctl features --list --tags '@fault and not @slow'
  labctl features my.feature --format html > report.html
  labctl features my.feature --html report.html --recording failed
  labctl features my.feature --recording ./failed   # then labctl view ./failed/NAME.zip
  labctl features my.feature --limit 2h
  labctl features steps`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, paths []string) error {
			run.Paths, run.Format = paths, features.Format(form)
			run.Out, run.Progress = c.OutOrStdout(), c.ErrOrStderr()
			run.Colors = term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
			if run.Parallel < 1 {
				return usage.New(fmt.Errorf("--parallel %d: use 1 or more", run.Parallel))
			}
			if run.Limit <= 0 {
				return usage.New(fmt.Errorf("--limit %s: use a positive duration, such as 2h", run.Limit))
			}
			if run.RecordingSnapshots && run.Recordings == "" {
				return usage.New(errors.New("--recording-snapshots needs --recording: the snapshots are in those files"))
			}
			if list {
				return listScenarios(c.OutOrStdout(), o.output, run)
			}
			if err := needLoopback(); err != nil {
				return err
			}
			err := features.Run(c.Context(), run)
			if bad := new(features.UsageError); errors.As(err, &bad) {
				return usage.New(err)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&run.Tags, "tags", "", "only scenarios with these tags: '@B-91', '@B-91 or @B-93', '@fault and not @slow'")
	choiceFlag(c, &form, "format", []string{string(features.Pretty), string(features.JUnit), string(features.HTML)}, "format of the results: pretty, junit or html")
	f.StringVar(&run.Page, "html", "", "file that gets the results as a page, beside those of --format; failed steps have links to their recordings")
	f.BoolVar(&run.Force, "force", false, "let --html replace a file that is no page of results")
	f.BoolVar(&list, "list", false, "list the scenarios and their tags instead of running them")
	f.IntVar(&run.Parallel, "parallel", 1, "number of labs at a time")
	f.DurationVar(&run.Limit, "limit", steps.DefaultLimit, "how long, in the lab's time, a step waits for its effect")
	f.StringVar(&run.Recordings, "recording", "", "directory that gets a recording of each scenario that fails: labctl view FILE shows it")
	f.BoolVar(&run.RecordingSnapshots, "recording-snapshots", false, "keep a snapshot of the lab's end in each recording: labctl up --from FILE goes on from it")
	c.AddCommand(newFeaturesSteps(o))
	return c
}

func listScenarios(w io.Writer, output format, run features.Options) error {
	all, err := features.List(run)
	if err != nil {
		return usage.New(err)
	}
	rows := [][]string{{"=SCENARIO", "NAME", "=TAGS"}}
	for _, s := range all {
		rows = append(rows, []string{fmt.Sprintf("%s:%d", s.File, s.Line), s.Name, strings.Join(s.Tags, " ")})
	}
	return output.print(w, all, rows)
}

func newFeaturesSteps(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "steps",
		Short: "List the steps that scenarios can use",
		Long: `List the steps that scenarios can use, by subject. TEXT and NUMBER stand for values;
(this|that) is a choice; [s] is optional. Given, When, Then, And and But are all the same.`,
		Example: "  labctl features steps\n  labctl features steps -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			all := steps.Catalogue()
			if !o.output.text() {
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
