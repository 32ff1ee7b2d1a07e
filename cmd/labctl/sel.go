package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newSEL(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:     "sel",
		Short:   "Read and clear the logs of a BMC",
		Example: "  labctl sel ls node-0\n  labctl sel ls node-0 --log audit\n  labctl sel clear node-0",
	}
	log := control.Events
	list := &cobra.Command{
		Use: "ls HOST", Aliases: []string{"list"}, Short: "List a log, oldest entry first", Example: "  labctl sel ls node-0 -o json",
		Args: usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(lab *control.Client, host string) ([]control.LogEntry, error) {
				return lab.Log(c.Context(), host, log)
			}, logRows)
		},
	}
	wipe := &cobra.Command{
		Use: "clear HOST", Short: "Clear a log", Example: "  labctl sel clear 'node-*'",
		Args: usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			lab := control.NewClient(o.state)
			_, err := forEach(c.Context(), lab, args[0], c.ErrOrStderr(), func(host string) (struct{}, error) {
				return struct{}{}, lab.ClearLog(c.Context(), host, log)
			})
			return err
		},
	}
	for _, x := range []*cobra.Command{list, wipe} {
		choiceFlag(x, &log, "log", []string{control.Events, control.Audit}, "events (of the machine) or audit (requests and logins)")
	}
	c.AddCommand(list, wipe)
	return c
}

func logRows(entries []control.LogEntry) [][]string {
	rows := [][]string{{"ID", "TIME", "SEVERITY", "+KIND", "SUBJECT", "TEXT"}}
	for _, e := range entries {
		rows = append(rows, []string{
			strconv.FormatUint(e.ID, 10), e.Time.Format(time.RFC3339), string(e.Severity), e.Kind, e.Subject, e.Text,
		})
	}
	return rows
}
