package main

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/scenarios/capture"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/conformance/interop"
	"github.com/metalab-dev/metalab/scenarios/conformance/report"
	"github.com/metalab-dev/metalab/scenarios/record"
	"github.com/metalab-dev/metalab/version"
)

// conformanceRun holds the flags of a run.
type conformanceRun struct {
	conformanceTarget
	level, serial, name, schemas, interop string
	uses, checks                          []string
	yes, loseData, dryRun, resume, strict bool
	capture                               bool
	timeout, soak                         time.Duration
	firmware                              string
	rate                                  float64
	rack, media, dhcp                     string
	bootMedia, provisioner                string
	parallel                              int
}

func newConformanceRun(o *options) *cobra.Command {
	r := &conformanceRun{}
	levels := []string{}
	for _, l := range conformance.Levels {
		levels = append(levels, string(l))
	}
	c := &cobra.Command{
		Use: "run URL", Short: "Run the checks against a BMC, or against the BMCs of a rack with --rack",
		Example: `  labctl conformance run https://192.0.2.7 --username admin --password-file bmc.pass --insecure --ipmi 192.0.2.7
  labctl conformance run https://192.0.2.7 --username admin --password-file bmc.pass --ca ca.crt --level disruptive --serial CN123 --yes
  labctl conformance run --rack rack.yaml --out results`,
		Args: usage.Arguments("[URL]"),
		RunE: func(c *cobra.Command, args []string) error {
			if (r.rack == "") == (len(args) == 0) {
				return usage.New(errors.New("give the URL of a BMC, or --rack FILE"))
			}
			if _, err := r.profiles(); err != nil {
				return usage.New(err)
			}
			if _, err := conformance.Select(r.checks); err != nil {
				return usage.New(err)
			}
			if r.bootMedia != "" && r.media == "" {
				return usage.New(errors.New("--boot-media needs --media, the address at which the BMC and the server fetch the image"))
			}
			if r.provisioner != "" && r.bootMedia == "" {
				return usage.New(errors.New("--provisioner needs --boot-media: the agent writes the image"))
			}
			if r.rack != "" {
				return ended(c, r.runRack(c.Context(), c, o))
			}
			r.url = args[0]
			host, err := r.resolve(c.InOrStdin())
			if err != nil {
				return ended(c, err)
			}
			return ended(c, r.runOne(c.Context(), c, o, host))
		},
	}
	r.flags(c)
	f := c.Flags()
	f.Var(choiceValue{to: &r.level, name: "--level", allowed: levels}, "level", "what the checks may do: "+strings.Join(levels, ", "))
	f.StringSliceVar(&r.uses, "for", []string{"metal3-redfish-vmedia"}, "verdict profiles that decide the exit code: all, or some of "+strings.Join(profileNames(), ", "))
	f.StringSliceVar(&r.checks, "checks", nil, "only these checks or groups, with those that they need")
	f.StringVar(&r.serial, "serial", "", "serial number of the server, to confirm the levels disruptive and destructive")
	f.BoolVar(&r.yes, "yes", false, "do not ask before a disruptive or destructive run")
	f.BoolVar(&r.loseData, "i-will-lose-data", false, "confirm that the destructive level erases disks and configuration")
	f.BoolVar(&r.dryRun, "dry-run", false, "read only, and print every request that the run would send")
	f.BoolVar(&r.resume, "resume", false, "keep the results of an interrupted run in the folder --out")
	f.BoolVar(&r.strict, "strict", false, "exit with 5 when the server is ready with quirks")
	f.BoolVar(&r.capture, "capture", false, "also record the BMC as a server model that labctl up serves")
	f.DurationVar(&r.timeout, "timeout", 0, "time limit of a check (default: 2m, from disruptive on 30m)")
	f.DurationVar(&r.soak, "soak", 0, "duration of ROB-001, such as 30m")
	f.StringVar(&r.firmware, "firmware", "", "URL, which the BMC reaches, of an image of firmware that the server has already: FW-004 flashes it")
	f.Float64Var(&r.rate, "rate", 250, "most requests in a second")
	f.StringVar(&r.name, "name", "", "name of the server in the reports")
	f.StringVar(&r.media, "media", "", "IP address of this computer that the BMC reaches, for images and events")
	f.StringVar(&r.bootMedia, "boot-media", "", "image of the agent that the server boots: a directory of labctl image build agent, or "+emulatedImage+" for a server of a lab; needs --media")
	f.StringVar(&r.provisioner, "provisioner", "", "disk image that E2E-001 writes to the server: a raw or qcow2 file, or "+demoImage+" for that of labs; needs --boot-media")
	f.StringVar(&r.dhcp, "dhcp", "", "network interface on which the server's network boot is heard")
	f.StringVar(&r.schemas, "schemas", "", "archive of DMTF's schemas and interoperability profiles")
	f.StringVar(&r.interop, "interop-profile", "", "interoperability profile: a file, or a name in the archive")
	f.StringVar(&r.rack, "rack", "", "file with the BMCs of a rack")
	f.IntVar(&r.parallel, "parallel", 4, "BMCs of a rack that are checked at once")
	must(c.MarkFlagDirname("boot-media"))
	must(c.MarkFlagFilename("schemas", "zip"))
	must(c.MarkFlagFilename("rack", "yaml", "yml"))
	return c
}

// profiles returns the verdict profiles of --for.
func (r *conformanceRun) profiles() ([]conformance.Profile, error) {
	var all []conformance.Profile
	for _, name := range r.uses {
		if name == "all" {
			return conformance.Profiles, nil
		}
		p, err := conformance.FindProfile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// checked is what became of a run.
type checked struct {
	document *report.Document
	files    []string
}

func (r *conformanceRun) runOne(ctx context.Context, c *cobra.Command, o *options, host string) error {
	got, err := r.run(ctx, host, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), nil)
	if err != nil || r.dryRun {
		return err
	}
	if err := r.summary(c.OutOrStdout(), o, got); err != nil {
		return err
	}
	if len(got.document.Unrestored) > 0 {
		return errors.New("some writes were not taken back: labctl conformance restore tries again")
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: --resume goes on: %w", ctx.Err())
	}
	return conclude(got.document.Profiles[:r.chosen()], r.strict)
}

// chosen is how many of the report's profiles decide the exit code; the others are
// for information.
func (r *conformanceRun) chosen() int {
	if slices.Contains(r.uses, "all") {
		return len(conformance.Profiles)
	}
	return len(r.uses)
}

// summary prints the result of one BMC.
func (r *conformanceRun) summary(w io.Writer, o *options, got *checked) error {
	if !o.output.text() {
		return o.output.print(w, got.document, nil)
	}
	d := got.document
	fmt.Fprintf(w, "%s\n", d.Target.Title)
	for i, p := range d.Profiles {
		if i == r.chosen() {
			fmt.Fprintln(w, "other profiles:")
		}
		fmt.Fprintln(w, p.String())
	}
	fmt.Fprintf(w, "%s\n", d.SummaryText())
	for _, u := range d.Unrestored {
		fmt.Fprintf(w, "not taken back: %s\n", u)
	}
	for _, f := range got.files {
		fmt.Fprintf(w, "%s\n", f)
	}
	return nil
}

// run runs the checks on one BMC and writes the reports. The gate, if set, is
// held while the server restarts.
func (r *conformanceRun) run(ctx context.Context, host string, stdin io.Reader, out, progress io.Writer, gate func(chassis string) func()) (*checked, error) {
	conf, err := r.config()
	if err != nil {
		return nil, err
	}
	conf.Level, conf.Serial, conf.LoseData = conformance.Level(r.level), r.serial, r.loseData
	if conf.Level == "" {
		conf.Level = conformance.ReadOnly
	}
	conf.Rate, conf.Timeout, conf.Soak, conf.Firmware = r.rate, r.timeout, r.soak, r.firmware
	if r.schemas != "" {
		archive, err := zip.OpenReader(r.schemas)
		if err != nil {
			return nil, fmt.Errorf("--schemas %s: %w", r.schemas, err)
		}
		defer archive.Close()
		conf.Schemas = archive
	}
	if r.media != "" {
		stop, err := r.serve(&conf)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	if r.dhcp != "" {
		d, err := listenDHCP(ctx, r.dhcp)
		if err != nil {
			return nil, err
		}
		defer d.close()
		conf.DHCP = d
	}
	if r.interop != "" {
		if conf.Interop, err = interopProfile(r.interop, conf.Schemas); err != nil {
			return nil, err
		}
	}
	checks, err := conformance.Select(r.checks)
	if err != nil {
		return nil, err
	}
	if r.dryRun {
		conf.DryRun = out
		b, err := conformance.Open(conf)
		if err != nil {
			return nil, err
		}
		b.Execute(ctx, checks)
		return nil, nil
	}
	if err := report.CheckFolder(r.out); err != nil {
		return nil, err
	}
	release, err := conformance.Lock(conformance.LockFolder(), host)
	if err != nil {
		return nil, err
	}
	defer release()
	if conf.Journal, err = conformance.OpenFolder(r.out); err != nil {
		return nil, err
	}
	defer conf.Journal.Close()
	results, err := openResults(filepath.Join(r.out, report.ResultsFile), r.resume)
	if err != nil {
		return nil, err
	}
	defer results.close()
	conf.Done, conf.Earlier = results.done, results.exchanges
	var b *conformance.BMC
	began := time.Now()
	conf.Progress = func(done, all int, res conformance.Result) {
		results.add(res, b.Exchanges())
		fmt.Fprintf(progress, "%3d/%d %-9s %-5s %s\n", done, all, res.ID, res.Verdict, line(res))
	}
	if b, err = conformance.Open(conf); err != nil {
		return nil, err
	}
	identity, err := b.Identify(ctx)
	if conf.Level.Allows(conformance.Disruptive) {
		if err != nil {
			return nil, err
		}
		if !identity.Has(r.serial) {
			return nil, &conformance.Refusal{Text: fmt.Sprintf("--serial %q is not the serial number of the server at %s, %s", r.serial, host, identity.Title())}
		}
		if err := r.confirm(stdin, progress, identity, b.Losses(ctx, runnable(checks, conf.Level))); err != nil {
			return nil, err
		}
		if gate != nil {
			defer gate(identity.Chassis())()
		}
	}
	all := b.Execute(ctx, checks)
	if identity.Model == "" { // the address or the credentials were wrong, or the BMC was busy
		if again, err := b.Identify(context.WithoutCancel(ctx)); err == nil {
			identity = again
		}
	}
	if err := results.failed(); err != nil {
		return nil, err
	}
	chosen, err := r.profiles()
	if err != nil {
		return nil, err
	}
	for _, p := range conformance.Profiles {
		if !slices.ContainsFunc(chosen, func(other conformance.Profile) bool { return other.Name == p.Name }) {
			chosen = append(chosen, p)
		}
	}
	var unrestored []string
	for _, e := range conf.Journal.Open() {
		unrestored = append(unrestored, fmt.Sprintf("%s: %s %s", e.Check, e.Method, e.URI))
	}
	made := report.Run{
		Tool: version.Read().String(), Name: r.name, URL: r.url, IPMI: r.ipmi != "", Identity: identity, Level: conf.Level, Began: began, Took: time.Since(began),
		Profiles: chosen, Results: all, Exchanges: b.Exchanges(), Unrestored: unrestored,
	}
	if r.schemas != "" {
		made.Data = dataVersion(r.schemas)
	}
	document, evidence := report.New(made)
	model := ""
	if r.capture && ctx.Err() == nil {
		if model, err = r.record(ctx, conf, progress); err != nil {
			return nil, err
		}
	}
	files, err := report.Files(r.out, document, evidence, model)
	if err != nil {
		return nil, err
	}
	return &checked{document, files}, nil
}

// serve serves media, boot media and the provisioner's image, and puts them into conf.
func (r *conformanceRun) serve(conf *conformance.Config) (_ func(), err error) {
	var stops []func()
	stop := func() {
		for _, s := range slices.Backward(stops) {
			s()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	m, stopMedia, err := serveMedia(r.media)
	if err != nil {
		return nil, err
	}
	stops, conf.Media = append(stops, stopMedia), m
	if r.bootMedia == "" {
		return stop, nil
	}
	b, stopBoot, err := serveBoot(m, r.bootMedia)
	if err != nil {
		return nil, err
	}
	stops, conf.Boot = append(stops, stopBoot), b
	if r.provisioner == "" {
		return stop, nil
	}
	p, stopImage, err := newProvisioner(m, b, r.provisioner, *conf)
	if err != nil {
		return nil, err
	}
	stops, conf.Provisioner = append(stops, stopImage), p
	return stop, nil
}

// interopProfile returns the interoperability profile of a file, or of a name in the
// archive. Profiles that it requires lie beside it, or in the archive.
func interopProfile(name string, archive fs.FS) (*interop.Profile, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		if archive == nil {
			return nil, fmt.Errorf("--interop-profile: %w (a name needs --schemas)", err)
		}
		return conformance.FindInterop(archive, name)
	}
	return interop.Parse(data, func(required string) ([]byte, error) {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(name), required+"*.json"))
		if err == nil && len(files) > 0 {
			return os.ReadFile(slices.Max(files))
		}
		return nil, fmt.Errorf("no %s*.json beside %s", required, name)
	})
}

// line is the rest of a check's line of progress.
func line(res conformance.Result) string {
	text := res.Title
	if res.Reason != "" && res.Verdict != conformance.Pass {
		text = res.Reason
	}
	if res.Took > time.Second {
		text += " (" + rounded(res.Took) + ")"
	}
	return text
}

// runnable returns the checks that a level runs.
func runnable(all []conformance.Check, level conformance.Level) []conformance.Check {
	return slices.DeleteFunc(slices.Clone(all), func(c conformance.Check) bool { return !level.Allows(c.Level) })
}

// dataVersion is the version in the name of DMTF's archive, such as 2025.4.
func dataVersion(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".zip")
	if i := strings.LastIndexAny(name, "-_"); i >= 0 {
		return name[i+1:]
	}
	return name
}

// confirm asks for the serial number again, unless --yes was given.
func (r *conformanceRun) confirm(stdin io.Reader, w io.Writer, i conformance.Identity, losses []string) error {
	fmt.Fprintf(w, "%s: level %s restarts this server\n", i.Title(), r.level)
	for _, l := range losses {
		fmt.Fprintf(w, "  will be lost or changed: %s\n", l)
	}
	if r.yes {
		return nil
	}
	if r.passwordStdin {
		return &conformance.Refusal{Text: "standard input holds the password: confirm the run with --yes"}
	}
	fmt.Fprint(w, "Type the serial number to go on: ")
	answer, err := bufio.NewReader(io.LimitReader(stdin, 256)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != r.serial {
		return &conformance.Refusal{Text: fmt.Sprintf("%q is not %q: nothing was written", strings.TrimSpace(answer), r.serial)}
	}
	return nil
}

// record saves the BMC as a model in the folder, and returns its name.
func (r *conformanceRun) record(ctx context.Context, conf conformance.Config, progress io.Writer) (string, error) {
	fmt.Fprintln(progress, "recording the BMC")
	taken, err := capture.Take(ctx, capture.Config{URL: conf.URL, Username: conf.Username, Password: conf.Password, CAs: conf.CAs, Insecure: conf.Insecure, Parallel: 1})
	if err != nil {
		return "", err
	}
	made, err := record.Make(ctx, taken, "")
	if err != nil {
		return "", err
	}
	return made.Name, made.Save(filepath.Join(r.out, report.ModelDir), true) // the folder is that of runs, or report.CheckFolder refuses it
}

// resultFile keeps results as they come, for --resume.
type resultFile struct {
	file      *os.File
	done      map[string]conformance.Result
	exchanges []conformance.Exchange

	mu      sync.Mutex
	begun   bool // has a result of this run, or goes on with those of the one before
	written int  // exchanges
	err     error
}

// resultLine is a line of results.jsonl.
type resultLine struct {
	ID        string                 `json:"id"`
	Outcome   conformance.Outcome    `json:"outcome"`
	Evidence  []int                  `json:"evidence"`
	Began     time.Time              `json:"began"`
	Took      time.Duration          `json:"took"`
	Exchanges []conformance.Exchange `json:"exchanges"`
}

// openResults opens the file of results. Those of the run before stay until this one has a result:
// a run that is refused loses nothing.
func openResults(path string, resume bool) (*resultFile, error) {
	r := &resultFile{begun: resume}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	r.file = f
	if !resume {
		return r, nil
	}
	r.done = map[string]conformance.Result{}
	lines := bufio.NewReader(f)
	var good int64
	for {
		text, err := lines.ReadBytes('\n')
		var l resultLine
		if err != nil || json.Unmarshal(text, &l) != nil {
			break // a crash cut the last line: its check runs again
		}
		good += int64(len(text))
		r.exchanges = append(r.exchanges, l.Exchanges...)
		if l.Outcome.Verdict == conformance.Broken || l.Outcome.Verdict == conformance.Skip {
			continue // the network may be back, or the level another
		}
		r.done[l.ID] = conformance.Result{Outcome: l.Outcome, Evidence: l.Evidence, Began: l.Began, Took: l.Took}
	}
	r.written = len(r.exchanges)
	if err := f.Truncate(good); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(good, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (r *resultFile) add(res conformance.Result, all []conformance.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, earlier := r.done[res.ID]; earlier || r.err != nil {
		return
	}
	line, err := json.Marshal(resultLine{ID: res.ID, Outcome: res.Outcome, Evidence: res.Evidence, Began: res.Began, Took: res.Took, Exchanges: all[min(r.written, len(all)):]})
	if err == nil && !r.begun {
		r.begun, err = true, r.file.Truncate(0)
	}
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	r.written, r.err = len(all), err
}

func (r *resultFile) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *resultFile) close() { r.file.Close() }
