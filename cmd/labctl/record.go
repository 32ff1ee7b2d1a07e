package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/scenarios/capture"
	"github.com/metalab-dev/metalab/scenarios/record"
)

// newRecord makes a server model of a BMC.
func newRecord(o *options) *cobra.Command {
	r := &recorder{}
	c := &cobra.Command{
		Use:   "record URL",
		Short: "Record a BMC, emulated or real, as a server model",
		Long: `Record a BMC, emulated or real, as a server model.

The command reads the BMC over Redfish. It sends only GET requests, a few at a time,
and stops after a number of requests or a time limit. The folder --to gets

  profiles/NAME.yaml     the hardware
  registries/NAME.yaml   the settings of its BIOS
  dialects/NAME.yaml     how the BMC differs from the built-in dialect that fits best

labctl up --profile serves the model: with the same URIs, IDs and properties, and
with working power, boot, media, BIOS settings and volumes.

Serial numbers, UUIDs, MAC addresses, world wide names, addresses, host names,
service and asset tags, licence keys, users, passwords and certificates are
replaced, equal values by equal ones. Review the files before you publish them: a
vendor may keep such data in unexpected places.`,
		Example: `  labctl record https://192.0.2.7 --username admin --password-file bmc.pass --insecure
  labctl record https://192.0.2.7 --username admin --password-stdin --ca ca.crt --name r750 --to ./models < bmc.pass
  labctl up --profile ./models/profiles/r750.yaml --hosts 3`,
		Args: usage.Arguments("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.credentials(c.InOrStdin()); err != nil {
				return err
			}
			made, err := r.run(c.Context(), args[0], c.ErrOrStderr())
			if err != nil {
				return err
			}
			return made.print(c.OutOrStdout(), o)
		},
	}
	f := c.Flags()
	r.flags(f, "read everything")
	f.StringVar(&r.password, "password", "", "password; other users of this computer can see it: prefer a file")
	f.StringVar(&r.to, "to", "models", "folder for the model")
	f.StringVar(&r.name, "name", "", "name of the model (default: from manufacturer and model, with a number if that is taken)")
	f.BoolVar(&r.force, "force", false, "replace the files of an earlier recording of the same name")
	f.IntVar(&r.parallel, "parallel", 2, "requests at once, 1 to 4")
	f.IntVar(&r.requests, "requests", 5000, "maximum number of requests")
	f.DurationVar(&r.within, "within", 15*time.Minute, "time limit")
	c.MarkFlagsMutuallyExclusive("password", "password-file", "password-stdin")
	c.MarkFlagsMutuallyExclusive("insecure", "ca")
	must(c.MarkFlagDirname("to"))
	return c
}

// maxNames is up to which number a name is searched for that no recording in the folder has.
const maxNames = 9

// recorder holds the flags of record.
type recorder struct {
	access
	to, name           string
	force              bool
	parallel, requests int
	within             time.Duration
}

func (r *recorder) run(ctx context.Context, target string, progress io.Writer) (*recorded, error) {
	if r.name != "" && r.name != record.Name(r.name) {
		return nil, usage.New(fmt.Errorf("--name %s: use lower-case letters, digits and dashes", r.name))
	}
	if !strings.Contains(target, "://") {
		target = "https://" + target
	}
	if at, err := url.Parse(target); err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
		return nil, usage.New(fmt.Errorf("URL %q: use a form like https://192.0.2.1", target))
	}
	if r.parallel < 1 || r.parallel > 4 {
		return nil, usage.New(fmt.Errorf("--parallel %d: use 1 to 4", r.parallel))
	}
	if r.requests < 1 {
		return nil, usage.New(fmt.Errorf("--requests %d: use 1 or more", r.requests))
	}
	if r.within <= 0 {
		return nil, usage.New(fmt.Errorf("--within %s: use a time above 0, such as 15m", r.within))
	}
	cas, err := r.authorities()
	if err != nil {
		return nil, err
	}
	if err := record.CheckFree(r.to, r.name, r.force); err != nil { // before the BMC is read for minutes
		return nil, err
	}
	began, last := time.Now(), time.Time{}
	c, err := capture.Take(ctx, capture.Config{
		URL: target, Username: r.username, Password: r.password, CAs: cas, Insecure: r.insecure, Parallel: r.parallel, MaxRequests: r.requests, Timeout: r.within,
		Progress: func(done, known int) {
			if now := time.Now(); now.Sub(last) > time.Second {
				last = now
				fmt.Fprintf(progress, "%5.1fs  %d resources of %d that are known\n", now.Sub(began).Seconds(), done, known)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%5.1fs  %d resources were read; now served, to see what differs\n", time.Since(began).Seconds(), len(c.Resources))
	made, err := record.Make(ctx, c, r.name)
	if err != nil {
		return nil, err
	}
	for n, first := 2, made.Name; r.name == "" && record.CheckFree(r.to, made.Name, r.force) != nil; n++ { // minutes are not lost for a name that nobody chose
		if n > maxNames {
			break
		}
		if made, err = record.Make(ctx, c, fmt.Sprintf("%s-%d", first, n)); err != nil {
			return nil, err
		}
	}
	if err := made.Save(r.to, r.force); err != nil {
		return nil, err
	}
	out := &recorded{Name: made.Name, Base: made.Base, Resources: len(c.Resources), Refused: len(c.Refused), Notes: made.Notes}
	for _, name := range slices.Sorted(maps.Keys(made.Files())) {
		out.Files = append(out.Files, filepath.Join(r.to, filepath.FromSlash(name)))
	}
	return out, nil
}

// recorded is what became of it.
type recorded struct {
	Name      string   `json:"name"`
	Base      string   `json:"base"` // the dialect that fits best
	Resources int      `json:"resources"`
	Refused   int      `json:"refused"`
	Files     []string `json:"files"`
	Notes     []string `json:"notes,omitempty"`
}

func (r *recorded) print(w io.Writer, o *options) error {
	rows := [][]string{{"MODEL", r.Name}, {"dialect", "fits " + r.Base + " best"}, {"resources", fmt.Sprintf("%d, %d were refused", r.Resources, r.Refused)}}
	profile := ""
	for _, f := range r.Files {
		rows = append(rows, []string{"file", f})
		if filepath.Base(filepath.Dir(f)) == "profiles" {
			profile = f
		}
	}
	for _, n := range r.Notes {
		rows = append(rows, []string{"note", n})
	}
	return o.output.print(w, r, append(rows, []string{"serve it", "labctl up --profile " + profile}))
}
