package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newFault(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "fault",
		Short: "Add, list and remove fault rules",
		Example: `  labctl fault add --bmc node-0 --status 503 --retry-after 30s --count 3
  labctl fault ls
  labctl fault rm fault-1`,
	}
	c.AddCommand(newFaultAdd(o), newFaultLs(o), newFaultRm(o), newFaultQuirk(o))
	return c
}

// faultFlags are the flags of a fault rule that need conversion.
type faultFlags struct {
	rule               fault.Rule
	file               string
	retry, from, until time.Duration
	methods            []string
	set, sends         []string // POINTER=VALUE
	patch, body        string
}

func newFaultAdd(o *options) *cobra.Command {
	f := &faultFlags{}
	c := &cobra.Command{
		Use:   "add",
		Short: "Add a fault rule",
		Long: `Add a fault rule: where it applies (--bmc, --path, --method, --sends), when (--after, --count,
--probability, --from, --until) and what it does. Counts are per BMC. With -f the
rules come from a file: a YAML list, as under faults: in a rack file.`,
		Example: `  labctl fault add --bmc node-0 --path '/redfish/v1/Systems/**' --status 503 --retry-after 30s --count 2
  labctl fault add --method PATCH --method POST --latency p50=300ms,p99=4s
  labctl fault add --bmc 'node-1?' --drop reset --probability 0.05
  labctl fault add --bmc node-7 --offline --until 2m
  labctl fault add --tls expired --bmc node-3
  labctl fault add --path /redfish/v1/Systems/1 --set /PowerState=null
  labctl fault add -f faults.yaml`,
		RunE: func(c *cobra.Command, _ []string) error {
			rules, err := f.rules(c)
			if err != nil {
				return err
			}
			added, err := control.NewClient(o.state).AddFaults(c.Context(), rules...)
			if err != nil {
				return err
			}
			rows := [][]string{{"ID", "WHERE", "=RULE"}}
			for _, r := range added {
				rows = append(rows, []string{r.ID, where(r), ruleText(r)})
			}
			return o.output.print(c.OutOrStdout(), added, rows)
		},
	}
	fl, r := c.Flags(), &f.rule
	fl.StringVarP(&f.file, "file", "f", "", "file with rules, instead of all other flags")
	fl.StringVar(&r.ID, "id", "", "ID of the rule (default: generated)")
	fl.StringVar(&r.BMC, "bmc", "", "host, or a pattern such as 'node-*' (default: every one)")
	fl.StringVar(&r.Path, "path", "", "path of requests; * stands for a part of a segment, ** for any segments")
	fl.StringArrayVar(&f.methods, "method", nil, "method of requests; can be given more than once")
	fl.StringArrayVar(&f.sends, "sends", nil, "value in the body of requests by JSON pointer: /ResetType=ForceOff; can be given more than once")
	fl.IntVar(&r.After, "after", 0, "requests that pass before the rule applies")
	fl.IntVar(&r.Count, "count", 0, "requests that the rule applies to at most (default: all)")
	fl.Float64Var(&r.Probability, "probability", 1, "probability that the rule applies, above 0 up to 1")
	fl.DurationVar(&f.from, "from", 0, "start this much of the lab's time from now")
	fl.DurationVar(&f.until, "until", 0, "end this much of the lab's time from now")
	fl.StringVar((*string)(&r.Latency), "latency", "", "delay: 200ms, 100ms..2s, or p50=200ms,p99=3s")
	fl.IntVar(&r.Status, "status", 0, "answer with this status")
	fl.DurationVar(&f.retry, "retry-after", 0, "Retry-After header of that answer")
	fl.StringVar(&r.Message, "message", "", "text of that answer's error")
	fl.StringVar(&r.MessageID, "message-id", "", "MessageId of that answer's error")
	fl.BoolVar(&r.Performed, "performed", false, "with --status or --drop: carry out the request all the same")
	fl.StringVar((*string)(&r.Limit), "limit", "", "answer 429 to requests beyond a rate: 10/s, 100/5m")
	choiceFlag(c, (*string)(&r.Drop), "drop", fault.Drops(), "end the connection: connect, silent, reset, close, hang or body")
	choiceFlag(c, (*string)(&r.TLS), "tls", fault.TLSFaults(), "fail the handshake: refused, expired, wrong-name, self-signed, not-yet, sha1 or old")
	fl.BoolVar(&r.Offline, "offline", false, "the BMC is not on the network")
	fl.BoolVar(&r.Stale, "stale", false, "reads show the state before the last change")
	fl.BoolVar(&r.Stuck, "stuck", false, "tasks do not end")
	fl.StringVar((*string)(&r.Truncate), "truncate", "", "keep only the first part of the body: bytes, or 50%")
	fl.BoolVar(&r.InvalidJSON, "invalid-json", false, "send a body that is not valid JSON")
	fl.StringToStringVar((*map[string]string)(&r.Headers), "header", nil, "header of the response: OData-Version=3.0; without a text it is removed; can be given more than once")
	fl.IntVar(&r.LengthError, "length-error", 0, "add this many bytes to Content-Length; may be negative")
	fl.StringVar(&f.patch, "patch", "", "JSON that is merged into the body (RFC 7396)")
	fl.StringArrayVar(&f.set, "set", nil, "value of the body by JSON pointer: /PowerState=null; can be given more than once")
	fl.StringVar(&f.body, "body", "", "text instead of the body")
	choiceFlag(c, (*string)(&r.Wire), "wire", fault.Wires(), "IPMI datagrams: lose, double, swap, spoil or late (by --latency); --method IN or OUT selects a direction")
	fl.Uint8Var(&r.Code, "code", 0, "completion code of IPMI commands: 0xc0; --path /ipmi/00/02 selects a command by NetFn and number")
	fl.StringVar(&r.ContentType, "content-type", "", "Content-Type of that text")
	must(c.RegisterFlagCompletionFunc("bmc", completeHosts(o)))
	must(c.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(faultMethods, cobra.ShellCompDirectiveNoFileComp)))
	return c
}

// faultMethods are the methods of requests to BMCs, and the directions of datagrams.
var faultMethods = []string{"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "IN", "OUT"}

// rules returns the rules that the flags or the file define.
func (f *faultFlags) rules(c *cobra.Command) ([]fault.Rule, error) {
	if f.file != "" {
		var other error
		c.Flags().Visit(func(f *pflag.Flag) {
			if f.Name != "file" && f.Name != "state" && f.Name != "output" {
				other = usage.New(fmt.Errorf("-f and --%s exclude each other: set it in the file", f.Name))
			}
		})
		if other != nil {
			return nil, other
		}
		b, err := os.ReadFile(f.file)
		if err != nil {
			return nil, err
		}
		return fault.Parse(f.file, b)
	}
	r := f.rule
	given := c.Flags().Changed
	if given("probability") && r.Probability == 0 {
		return nil, usage.New(errors.New("--probability 0: must be above 0 and at most 1"))
	}
	if !given("probability") {
		r.Probability = 0 // as in a file without the field
	}
	r.RetryAfter.Duration, r.From.Duration, r.Until.Duration = f.retry, f.from, f.until
	for _, m := range f.methods {
		method, err := choice("--method", m, faultMethods)
		if err != nil {
			return nil, err
		}
		r.Method = append(r.Method, method)
	}
	if given("body") {
		r.Body = &f.body
	}
	if given("patch") {
		if err := json.Unmarshal([]byte(f.patch), &r.Patch); err != nil {
			return nil, usage.New(fmt.Errorf("--patch: %w", err))
		}
	}
	var err error
	if r.Set, err = pointedValues("--set", f.set); err != nil {
		return nil, err
	}
	if r.Sends, err = pointedValues("--sends", f.sends); err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range r.Problems() {
		if p.Field == "" {
			errs = append(errs, errors.New("the rule does nothing: add one of --status, --latency, --drop, --tls, --offline, --limit, --stale, --stuck, --truncate, --invalid-json, --length-error, --patch, --set, --body, --wire or --code"))
			continue
		}
		errs = append(errs, fmt.Errorf("--%s: %s", kebab(p.Field), p.Text))
	}
	if len(errs) > 0 {
		return nil, usage.New(errors.Join(errs...))
	}
	return []fault.Rule{r}, nil
}

// pointedValues parses the values of a flag: POINTER=VALUE.
func pointedValues(flag string, given []string) (fault.Values, error) {
	var out fault.Values
	for _, s := range given {
		at, text, ok := strings.Cut(s, "=")
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil { // a value that is no JSON is a string
			v = text
		}
		if !ok {
			return nil, usage.New(fmt.Errorf("%s %q: use a form like /PowerState=null", flag, s))
		}
		if out == nil {
			out = fault.Values{}
		}
		out[at] = v
	}
	return out, nil
}

// kebab returns the flag of a field.
func kebab(field string) string {
	var b strings.Builder
	upper := true // true: ID and JSON become one word
	for _, r := range field {
		if unicode.IsUpper(r) && !upper {
			b.WriteByte('-')
		}
		upper = unicode.IsUpper(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func where(r fault.Rule) string {
	parts := slices.Concat([]string{r.BMC}, r.Method, []string{r.Path})
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return "everywhere"
	}
	return strings.Join(parts, " ")
}

// ruleText is a rule but for its ID and where it applies: each field with its value,
// as a rack file has them.
func ruleText(r fault.Rule) string {
	r.ID, r.BMC, r.Path, r.Method = "", "", "", nil
	b, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	in := json.NewDecoder(bytes.NewReader(b)) // an ordered reader: a map has no order
	var fields []string
	for _, err = in.Token(); in.More(); {
		name, err := in.Token()
		if err != nil {
			return err.Error()
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err.Error()
		}
		fields = append(fields, fmt.Sprintf("%s=%s", name, strings.Trim(string(value), `"`)))
	}
	return strings.Join(fields, " ")
}

func newFaultLs(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the rules", Example: "  labctl fault ls\n  labctl fault ls -o yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := control.NewClient(o.state).Faults(c.Context())
			if err != nil {
				return err
			}
			rows := [][]string{{"ID", "PHASE", "HITS", "=WHERE", "=RULE"}}
			for _, r := range all {
				rows = append(rows, []string{r.ID, string(r.Phase), strconv.FormatUint(r.Hits, 10), where(r.Rule), ruleText(r.Rule)})
			}
			return o.output.print(c.OutOrStdout(), all, rows)
		},
	}
}

func newFaultRm(o *options) *cobra.Command {
	all := false
	c := &cobra.Command{
		Use: "rm [ID...]", Short: "Remove rules", Example: "  labctl fault rm fault-1\n  labctl fault rm --all",
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			if o.resolve(c) == nil {
				rules, _ := control.NewClient(o.state).Faults(c.Context())
				for _, r := range rules {
					ids = append(ids, r.ID)
				}
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, ids []string) error {
			lab := control.NewClient(o.state)
			switch {
			case all && len(ids) > 0:
				return usage.New(errors.New("--all and IDs exclude each other"))
			case all:
				rules, err := lab.Faults(c.Context())
				if err != nil {
					return err
				}
				for _, r := range rules {
					ids = append(ids, r.ID)
				}
			case len(ids) == 0:
				return usage.New(errors.New("name the rules to remove, or use --all"))
			}
			var errs []error
			for _, id := range ids {
				errs = append(errs, lab.RemoveFault(c.Context(), id))
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "remove all rules")
	return c
}
