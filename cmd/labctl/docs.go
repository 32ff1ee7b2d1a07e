package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/docs"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// newDocs shows the documentation of this version of labctl.
func newDocs(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "docs [PAGE]",
		Short: "List the pages of the documentation, or show one",
		Long: `List the pages of the documentation of this version, or show one.

On a terminal a page is shown by the pager that PAGER names (default: less, if it is
there; PAGER=cat shows it without one). PAGE may also be a link of another page, such
as how-to/vendor.md.`,
		Example: "  labctl docs\n  labctl docs first-lab\n  labctl docs how-to/vendor\n  labctl docs quirks | grep etag",
		Args:    usage.Arguments("[PAGE]"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			all, _ := docs.Pages() // a completion has no errors to show
			for _, p := range all {
				if len(args) == 0 {
					names = append(names, p.Name+"\t"+p.Title)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			all, err := docs.Pages()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				rows := [][]string{{"PAGE", "TITLE"}}
				for i := range all {
					all[i].Text = ""
					rows = append(rows, []string{all[i].Name, all[i].Title})
				}
				return o.output.print(c.OutOrStdout(), all, rows)
			}
			p, err := findPage(all, args[0])
			if err != nil {
				return err
			}
			if !o.output.text() {
				return o.output.print(c.OutOrStdout(), p, nil)
			}
			if command := pager(); command != "" && isTerminal(c.OutOrStdout()) {
				return runPager(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), command, p.Text)
			}
			_, err = io.WriteString(c.OutOrStdout(), p.Text)
			return err
		},
	}
}

// findPage returns the page of a name. The error for a name that no page has names
// the nearest, also by the last part of its name.
func findPage(all []docs.Page, name string) (docs.Page, error) {
	var names, ends []string
	want := docs.Name(name)
	for _, p := range all {
		if p.Name == want {
			return p, nil
		}
		names, ends = append(names, p.Name), append(ends, path.Base(p.Name))
	}
	near := suggest.Near(want, names)
	for _, end := range suggest.Near(want, ends) {
		if n := names[slices.Index(ends, end)]; !slices.Contains(near, n) {
			near = append(near, n)
		}
	}
	if len(near) == 0 {
		near = []string{names[suggest.Closest(want, names)]}
	}
	return docs.Page{}, usage.New(fmt.Errorf("there is no page %q: labctl docs lists them. Did you mean %s?", name, strings.Join(near, " or ")))
}

// pager returns the command line of the user's pager, or "" for none.
func pager() string {
	if command, set := os.LookupEnv("PAGER"); set {
		return command
	}
	if _, err := exec.LookPath("less"); err != nil {
		return ""
	}
	return "less"
}

// runPager gives a text to a pager. Ctrl-C is for the pager, which ends in its own way.
func runPager(ctx context.Context, out, errs io.Writer, command, text string) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), out, errs
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" { // a page that fits the screen is shown at once and stays there
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("PAGER %q: %w: set PAGER to another program, or to cat", command, err)
	}
	return nil
}
