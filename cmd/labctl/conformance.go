package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/conformance/report"
)

// Exit codes of labctl conformance; 2 is a wrong command line.
const (
	exitNotReady = exitCode(1)
	exitTool     = exitCode(3) // the tool or the network failed
	exitUnsafe   = exitCode(4) // refused for safety
	exitQuirks   = exitCode(5) // ready with quirks, under --strict
)

func newConformance(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "conformance",
		Short: "Check whether a BMC, emulated or real, can be provisioned, and which step breaks",
		Long: `Check whether a BMC, emulated or real, can be provisioned, and which step breaks.

By default the checks read only. Higher levels write, and take the writes back:

  read-only    GET requests, and sessions of the run
  reversible   writes that the host does not notice
  disruptive   the host or the BMC restarts; needs --serial, and --yes or an answer
  destructive  erases disks and configuration; needs --i-will-lose-data, too

It exits with 0 when the server is ready (with quirks too, unless --strict), 1 when
it is not, 2 for a wrong command line, 3 when the tool or the network failed, 4 when
a run would not be safe, and 5 when it is ready with quirks under --strict.`,
		Example: `  labctl conformance run https://192.0.2.7 --username admin --password-file bmc.pass --insecure
  labctl conformance run https://192.0.2.7 --username admin --password-stdin --ca ca.crt --level reversible --for metal3-redfish-vmedia
  labctl conformance explain VM-003
  labctl conformance diff old/report.json new/report.json`,
	}
	c.AddCommand(newConformanceRun(o), newConformanceList(o), newConformanceExplain(o), newConformanceDiff(o), newConformanceRestore(), newConformanceReport(o))
	return c
}

// ended turns the error of a subcommand into its exit code. What is no mistake of
// the command line and no refusal is a failure of the tool or the network.
func ended(c *cobra.Command, err error) error {
	wrong, refusal, code := new(usage.Error), new(conformance.Refusal), exitCode(0)
	switch {
	case err == nil, errors.As(err, &wrong), errors.As(err, &code):
		return err
	case errors.As(err, &refusal):
		fmt.Fprintln(c.ErrOrStderr(), "labctl:", err)
		return exitUnsafe
	}
	fmt.Fprintln(c.ErrOrStderr(), "labctl:", err)
	return exitTool
}

func newConformanceList(o *options) *cobra.Command {
	var profile string
	c := &cobra.Command{
		Use: "list", Short: "List the checks, or those of a verdict profile",
		RunE: func(c *cobra.Command, _ []string) error {
			weights := map[string]conformance.Importance{}
			if profile != "" {
				p, err := conformance.FindProfile(profile)
				if err != nil {
					return usage.New(err)
				}
				weights = p.Importances()
			}
			type row struct {
				ID         string                 `json:"id"`
				Title      string                 `json:"title"`
				Level      conformance.Level      `json:"level"`
				Protocol   conformance.Protocol   `json:"protocol"`
				Step       conformance.Step       `json:"step"`
				Importance conformance.Importance `json:"importance,omitempty"`
				Built      bool                   `json:"built"`
			}
			all, rows := []row{}, [][]string{{"CHECK", "LEVEL", "PROTOCOL", "STEP", "IMPORTANCE", "=WHAT HOLDS"}}
			for _, k := range conformance.Checks() {
				if profile != "" && weights[k.ID] == "" {
					continue
				}
				all = append(all, row{k.ID, k.Title, k.Level, k.Protocol, k.Step, weights[k.ID], k.Run != nil})
				rows = append(rows, []string{k.ID, string(k.Level), string(k.Protocol), string(k.Step), string(weights[k.ID]), k.Title})
			}
			return o.output.print(c.OutOrStdout(), all, rows)
		},
	}
	c.Flags().StringVar(&profile, "for", "", "verdict profile: "+strings.Join(profileNames(), ", "))
	return c
}

func profileNames() []string {
	var names []string
	for _, p := range conformance.Profiles {
		names = append(names, p.Name)
	}
	return names
}

func newConformanceExplain(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "explain CHECK", Short: "Explain a check: what it predicts, what it needs and the remedy", Args: usage.Arguments("CHECK"),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := conformance.Find(args[0])
			if err != nil {
				return usage.New(err)
			}
			weights := map[string]conformance.Importance{}
			var uses []string
			for _, p := range conformance.Profiles {
				if w := p.Importances()[k.ID]; w != "" {
					weights[p.Name] = w
					uses = append(uses, fmt.Sprintf("%s: %s", p.Name, w))
				}
			}
			needs := []string{}
			for _, f := range k.Needs {
				needs = append(needs, string(f))
			}
			v := map[string]any{
				"id": k.ID, "title": k.Title, "level": k.Level, "protocol": k.Protocol, "step": k.Step, "predicts": k.Predicts, "remedy": k.Remedy,
				"after": append([]string{}, k.After...), "needs": needs, "importance": weights, "built": k.Run != nil,
			}
			rows := [][]string{
				{k.ID, k.Title},
				{"level", string(k.Level)},
				{"protocol", string(k.Protocol)},
				{"step", string(k.Step)},
				{"a failure predicts", k.Predicts},
				{"remedy", k.Remedy},
				{"after", strings.Join(k.After, ", ")},
				{"needs", strings.Join(needs, ", ")},
			}
			for _, u := range uses {
				rows = append(rows, []string{"importance", u})
			}
			if k.Run == nil {
				rows = append(rows, []string{"state", conformance.NotBuilt})
			}
			return o.output.print(c.OutOrStdout(), v, rows)
		},
	}
}

func newConformanceDiff(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "diff REPORT REPORT", Short: "Compare two reports, such as those of two firmware versions",
		Long: `Compare two reports, such as those of two firmware versions.

It exits with 1 when the second report has a failure or warning that the first does
not have.`,
		Args: usage.Arguments("REPORT", "REPORT"),
		RunE: func(c *cobra.Command, args []string) error {
			var docs [2]*report.Document
			for i, name := range args {
				d, err := report.Load(reportFile(name))
				if err != nil {
					return ended(c, err)
				}
				docs[i] = d
			}
			d := report.Diff(docs[0], docs[1])
			if o.output.text() {
				if err := d.Print(c.OutOrStdout()); err != nil {
					return err
				}
			} else if err := o.output.print(c.OutOrStdout(), d, nil); err != nil {
				return err
			}
			if len(d.Introduced) > 0 {
				return exitNotReady
			}
			return nil
		},
	}
}

// reportFile returns the report of a file or folder.
func reportFile(name string) string {
	if s, err := os.Stat(name); err == nil && s.IsDir() {
		return filepath.Join(name, report.JSONFile)
	}
	return name
}

func newConformanceReport(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "report FOLDER", Short: "Write the reports of a run again, from its report.json and evidence.har", Args: usage.Arguments("FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := report.Load(reportFile(args[0]))
			if err != nil {
				return ended(c, err)
			}
			evidence, err := report.LoadHAR(filepath.Join(args[0], report.HARFile))
			if err != nil {
				return ended(c, err)
			}
			names, err := report.Files(args[0], d, evidence, "")
			if err != nil {
				return ended(c, err)
			}
			rows := [][]string{{"FILE"}}
			for _, n := range names {
				rows = append(rows, []string{n})
			}
			return o.output.print(c.OutOrStdout(), names, rows)
		},
	}
}

func newConformanceRestore() *cobra.Command {
	t := &conformanceTarget{}
	c := &cobra.Command{
		Use: "restore URL", Short: "Take back what a run has written and could not restore, as after a crash", Args: usage.Arguments("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			t.url = args[0]
			return ended(c, t.restore(c.Context(), c.InOrStdin(), c.OutOrStdout()))
		},
	}
	t.flags(c)
	return c
}

// conformanceTarget holds the flags that name a BMC and the folder of its run.
type conformanceTarget struct {
	access
	url, ipmi, out string
	user           string // --user, the other name of --username
}

func (t *conformanceTarget) flags(c *cobra.Command) {
	f := c.Flags()
	t.access.flags(f, "do what the checks need")
	f.StringVar(&t.user, "user", "", "the same as --username")
	f.StringVar(&t.ipmi, "ipmi", "", "address of IPMI over LAN, with a port other than 623 if there is one")
	f.StringVar(&t.out, "out", "", "folder of the reports and of the journal of writes (default: conformance/ADDRESS)")
	c.MarkFlagsMutuallyExclusive("password-file", "password-stdin")
	c.MarkFlagsMutuallyExclusive("insecure", "ca")
	c.MarkFlagsMutuallyExclusive("username", "user")
	must(c.MarkFlagDirname("out"))
}

// resolve completes the flags and returns the host of the BMC.
func (t *conformanceTarget) resolve(stdin io.Reader) (host string, err error) {
	if t.user != "" {
		t.username = t.user
	}
	if !strings.Contains(t.url, "://") {
		t.url = "https://" + t.url
	}
	u, err := url.Parse(t.url)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return "", usage.New(fmt.Errorf("URL %q: use a form like https://192.0.2.7, without credentials", t.url))
	}
	if t.ipmi != "" {
		if _, _, err := net.SplitHostPort(t.ipmi); err != nil {
			t.ipmi = net.JoinHostPort(strings.Trim(t.ipmi, "[]"), "623")
		}
	}
	if t.out == "" {
		t.out = conformance.Folder(u.Host)
	}
	return u.Host, t.credentials(stdin)
}

// config returns the part of the configuration that the flags describe.
func (t *conformanceTarget) config() (conformance.Config, error) {
	cas, err := t.authorities()
	return conformance.Config{URL: t.url, Username: t.username, Password: t.password, Insecure: t.insecure, CAs: cas, IPMI: t.ipmi}, err
}

func (t *conformanceTarget) restore(ctx context.Context, stdin io.Reader, out io.Writer) error {
	host, err := t.resolve(stdin)
	if err != nil {
		return err
	}
	release, err := conformance.Lock(conformance.LockFolder(), host)
	if err != nil {
		return err
	}
	defer release()
	path := filepath.Join(t.out, conformance.JournalFile)
	if _, err := os.Stat(path); err != nil {
		return err
	}
	j, err := conformance.OpenJournal(path)
	if err != nil {
		return err
	}
	defer j.Close()
	before := j.Open()
	conf, err := t.config()
	if err != nil {
		return err
	}
	conf.Journal, conf.Level = j, conformance.Reversible
	b, err := conformance.Open(conf)
	if err != nil {
		return err
	}
	if err := b.RestoreAll(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d writes were taken back\n", len(before)-len(j.Open()))
	return err
}

// conclude returns the exit code for the conclusions of the profiles that the user
// asked for.
func conclude(all []conformance.Conclusion, strict bool) error {
	has := func(r conformance.Readiness) bool {
		return slices.ContainsFunc(all, func(c conformance.Conclusion) bool { return c.Readiness == r })
	}
	switch {
	case has(conformance.NotReady):
		return exitNotReady
	case has(conformance.Undecided):
		return exitTool
	case has(conformance.ReadyWithQuirks) && strict:
		return exitQuirks
	}
	return nil
}

// rounded is a duration for people.
func rounded(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
