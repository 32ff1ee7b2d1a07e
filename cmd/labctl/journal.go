package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/version"
)

func newJournal(o *options) *cobra.Command {
	q, follow := control.Question{}, false
	c := &cobra.Command{
		Use:   "journal",
		Short: "Show requests to BMCs and events of servers",
		Long: `Show the lab's journal since its start: every request to a BMC, and the events of
BMCs and their machines. TIME, TOOK and --since are of the lab's clock, REAL TIME is
of this computer's.`,
		Example: `  labctl journal --host node-0 --last 20
  labctl journal --status 5xx --since 10m
  labctl journal --kind event --what 'power.*'
  labctl journal --follow -o json | jq .path`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkQuestion(q); err != nil {
				return err
			}
			lab, out := control.NewClient(o.state), c.OutOrStdout()
			if q.Host != "" {
				if _, err := matching(c.Context(), lab, q.Host); err != nil {
					return err
				}
			}
			if !follow {
				all, err := lab.Journal(c.Context(), q)
				if err != nil {
					return err
				}
				rows := [][]string{{"TIME", "REAL TIME", "HOST", "WHAT", "STATUS", "+USER", "+TOOK", "FAULTS"}}
				for _, e := range all {
					rows = append(rows, journalRow(e))
				}
				return o.output.print(out, all, rows)
			}
			return lab.Follow(c.Context(), q, func(e journal.Entry) error { return printEntry(out, o.output, e) })
		},
	}
	f := c.Flags()
	f.BoolVar(&follow, "follow", false, "show further entries as they come, until Ctrl-C")
	f.StringVar(&q.Host, "host", "", "host, or a pattern such as 'node-*'")
	choiceFlag(c, &q.Kind, "kind", []string{"request", "event", "control"}, "request, event or control")
	f.StringVar(&q.Method, "method", "", "method of requests")
	f.StringVar(&q.Path, "path", "", "path of requests; * and ** as in faults")
	f.StringVar(&q.Status, "status", "", "status of requests: 404, 5xx, none")
	f.StringVar(&q.User, "user", "", "user of the requests")
	f.StringVar(&q.What, "what", "", "kind of event, or a pattern such as 'power.*'")
	f.StringVar(&q.Since, "since", "", "a time of the lab, or a duration before now: 5m")
	f.IntVar(&q.Last, "last", 0, "number of latest entries")
	must(c.RegisterFlagCompletionFunc("host", completeHosts(o)))
	return c
}

// checkQuestion returns the error for a flag that no lab takes.
func checkQuestion(q control.Question) error {
	bad := new(journal.FieldError)
	err := journal.Query{Host: q.Host, Kind: journal.Kind(q.Kind), Method: q.Method, Path: q.Path, Status: q.Status, User: q.User, What: q.What, Last: q.Last}.Check()
	if errors.As(err, &bad) {
		return usage.New(fmt.Errorf("--%s %s", bad.Field, bad.Text))
	}
	if q.Since == "" {
		return nil
	}
	if _, err := time.ParseDuration(q.Since); err == nil {
		return nil
	}
	if _, err := time.Parse(time.RFC3339Nano, q.Since); err != nil {
		return usage.New(fmt.Errorf("--since %q: use a form like 5m or 2031-01-02T03:04:05Z", q.Since))
	}
	return nil
}

// printEntry prints one entry of a journal that is followed.
func printEntry(w io.Writer, f format, e journal.Entry) error {
	switch f {
	case jsonFormat:
		return json.NewEncoder(w).Encode(e)
	case yamlFormat:
		if _, err := fmt.Fprintln(w, "---"); err != nil {
			return err
		}
		return f.print(w, e, nil)
	}
	_, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(journalRow(e), "  "), " "))
	return err
}

func journalRow(e journal.Entry) []string {
	const layout = "2006-01-02T15:04:05.000Z07:00"
	at, realTime := e.At.Format(layout), ""
	if !e.Real.IsZero() {
		realTime = e.Real.Format(layout)
	}
	if e.Kind != journal.Request {
		return []string{at, realTime, e.Host, strings.TrimSpace(e.What + "  " + e.Text), "", "", "", strings.Join(e.Faults, " ")}
	}
	status := strconv.Itoa(e.Status)
	if e.Status == 0 {
		status = "none"
	}
	return []string{at, realTime, e.Host, e.Method + " " + e.Path, status, e.User, e.Took.String(), strings.Join(e.Faults, " ")}
}

func newMetrics(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "metrics", Short: "Show the metrics for Prometheus",
		Long: `Show the metrics for Prometheus. The lab serves them at /metrics on its control socket:
curl --unix-socket STATE/control.sock http://lab/metrics`,
		Example: "  labctl metrics | grep redfish_requests",
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := control.NewClient(o.state).Metrics(c.Context())
			if err == nil {
				_, err = c.OutOrStdout().Write(text)
			}
			return err
		},
	}
}

func newVersion(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of labctl, its commit and its Kubernetes API", Example: "  labctl version -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			v := version.Read()
			return o.output.print(c.OutOrStdout(), v, [][]string{{"labctl " + v.String()}})
		},
	}
}
