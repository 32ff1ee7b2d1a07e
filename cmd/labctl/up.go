package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/tracing"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/ssdp"
	"github.com/metalab-dev/metalab/emulator/suggest"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/shards"
	"github.com/metalab-dev/metalab/scenarios/view"
	"github.com/metalab-dev/metalab/version"
)

// upFlags are the flags that define a lab. A flag that is not given has the value
// that the lab was made with, or the default.
type upFlags struct {
	settings lab.Settings
	file     string
	noKube   bool
	detach   bool
	schemas  string
	http2    bool
	ssdp     string
	image    string
	// acceptLoss has the meaning of lab.Config.
	acceptLoss bool
	view       bool   // show the link of the page
	record     string // file of the recording
	keep       bool   // snapshots beside the recording
	from       string // recording and time of the snapshot that the lab begins with
	profile    string // profile of the hosts: a name, or a file or folder
	models     string
	shards     int         // processes that run the hosts
	remote     *lab.Remote // set in a shard, as the next two are
	gateway    *lab.Gateway
	name       string // DNS name of the address of its BMCs
	ready      int    // file descriptor for progress; hidden
}

func newUp(o *options) *cobra.Command {
	f := &upFlags{settings: lab.DefaultSettings()}
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the lab",
		Long: `Start the lab: its BMCs, a Kubernetes API, the controller, the images.

An existing lab starts as it was; flags that differ from those it was made with are
refused, but --with adds families to it, and so is a state directory with something else than a lab in it. Nothing is applied to the Kubernetes API: hosts.yaml in the
state directory has a Secret and a BareMetalHost for every server.

With -f the racks come from a file:

  kind: Lab
  seed: 7
  speed: 60x
  accounts: [{name: admin, password: secret}]
  racks:
  - {name: r1, hosts: [{profile: generic, count: 40}]}
  timings: {post: 20s}
  faults:
  - {bmc: r1-node-7, path: /redfish/v1/Systems/**, status: 503, retryAfter: 30s, count: 3}

Each BMC has its own loopback address, at port 443 where that is allowed, else at
8443 or the next free port. With --listen ADDRESS each BMC has its own port of that
address instead.

With --shards the servers are in that many processes, each with as many servers, a state
directory below the lab's, and a port of its own. A shard that dies is started again.
Given once more with another number, --shards starts or stops shards: the servers of
those that stop are offline, and come back as they were.

With --kubeconfig the CRDs are installed in a cluster, and the lab's controller works
on all BareMetalHosts there; --no-controller leaves them to another controller, such
as lab-controller.`,
		Example: `  labctl up                          # four servers, until Ctrl-C
  labctl up --hosts 8 --speed max --detach
  labctl up -f lab.yaml --state ./lab
  labctl up --hosts 4 --listen 192.0.2.7:9000
  labctl up --profile ./models       # servers as labctl record found one
  labctl up --hosts 8000 --shards 4  # four processes of 2000 servers each
  labctl up --no-kube                # BMCs alone, for a provisioner of your own
  labctl up --from lab.json.gz@+90s --state ./again   # go on from a snapshot of a recording
  labctl up --kubeconfig ~/.kube/config   # a cluster of yours instead of the lab's own API`,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.keep && f.record == "" {
				return usage.New(errors.New("--recording-snapshots needs --recording: the snapshots are beside that file"))
			}
			if err := o.claim(); err != nil { // first: a settings.json of others is not read
				return err
			}
			settings, err := f.resolve(c, o.state)
			if err != nil {
				return err
			}
			if f.keep && settings.Shards > 0 {
				return usage.New(errors.New("--recording-snapshots and --shards exclude each other: labctl snapshot save DIRECTORY saves each shard"))
			}
			if st, err := control.NewClient(o.state).Status(c.Context()); err == nil {
				return f.isUp(c, o, st, settings)
			}
			if err := needLoopback(); err != nil { // before --from restores a snapshot
				return err
			}
			if f.record != "" && f.ready == 0 {
				if err := f.checkRecording(settings.Shards); err != nil {
					return err
				}
			}
			if f.ready == 0 { // else the process that starts this one has shown it
				o.showEnding(c.ErrOrStderr())
			}
			if f.from != "" && f.ready == 0 { // else it has restored it, too
				if settings, err = f.goOn(c, o, settings); err != nil {
					return err
				}
			}
			if f.detach {
				if err := detach(c.Context(), o, c, os.Stderr); err != nil {
					return err
				}
				return f.summary(c.Context(), o, c.OutOrStdout())
			}
			return f.run(c.Context(), o, settings, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "file that defines the racks (kind: Lab)")
	fl.StringVar(&f.profile, "profile", "", "model of the servers: "+strings.Join(lab.Profiles(), ", ")+", or a file or folder, as labctl record writes it (default: generic)")
	fl.StringVar(&f.models, "profiles", "", "folder with more models for the file of -f: profiles/, and the registries/ and dialects/ that they name")
	fl.Uint64Var(&f.settings.Seed, "seed", 0, "seed of all identities and random choices (default: 1)")
	fl.StringVar(&f.settings.Listen, "listen", "", "where the BMCs are: loopback, loopback:PORT, or ADDRESS[:FIRSTPORT], also with the name of a network interface (default: loopback; METALAB_LISTEN)")
	fl.IntVar(&f.settings.Hosts, "hosts", f.settings.Hosts, "number of servers")
	fl.IntVar(&f.shards, "shards", 0, "number of processes that run the servers (default: one, which is the lab's)")
	fl.StringVar(&f.settings.Speed, "speed", f.settings.Speed, "the lab's time: a factor of real time (60x), or max")
	fl.BoolVar(&f.noKube, "no-kube", false, "run no Kubernetes API and no controller")
	fl.StringVar(&f.settings.Kubeconfig, "kubeconfig", "", "kubeconfig of a cluster to use instead of the lab's own Kubernetes API")
	fl.BoolVar(&f.settings.NoController, "no-controller", false, "do not run the controller: another one works on the hosts")
	fl.StringVar(&f.settings.ModuleIndex, "module-index", "", "URL or file of the vendor's index of host OS modules; modules without url are beside it")
	fl.StringSliceVar(&f.settings.With, "with", nil, "families of kinds, with their controllers, beside those of hosts; a lab that is there gets them in addition: "+strings.Join(config.Families, ", "))
	fl.BoolVar(&f.detach, "detach", false, "return when the lab is ready, and leave it running")
	fl.BoolVar(&f.view, "view", false, "show the link of the lab's page, as labctl view does")
	fl.StringVar(&f.record, "recording", "", "file that gets a recording of the lab, without secrets: labctl view FILE shows it; of a lab in shards, one file for each: NAME.shard-0.json.gz for NAME.json.gz")
	fl.BoolVar(&f.keep, "recording-snapshots", false, "save snapshots at the beginning and the end of the recording, in FILE"+lab.SnapshotsSuffix+": they have all secrets and disks of the lab")
	fl.StringVar(&f.from, "from", "", "RECORDING[@TIME]: make the lab from the recording's latest snapshot at or before TIME, such as 2031-01-02T03:04:05Z or +90s (default: its end)")
	fl.StringVar(&f.schemas, "schemas", "", "DMTF's DSP8010 archive (a zip file), whose schemas the BMCs then serve")
	fl.BoolVar(&f.http2, "http2", false, "let clients speak HTTP/2 to the BMCs")
	fl.StringVar(&f.ssdp, "ssdp", "", "network device on which clients can search for the BMCs")
	fl.Lookup("ssdp").NoOptDefVal = ssdp.Loopback
	fl.BoolVar(&f.acceptLoss, "accept-loss", false, "start a lab whose state lacks changes that were acknowledged before it was killed, and go on without them")
	fl.StringVar(&f.image, "agent-image", "", "directory of the image that real servers boot: see labctl image build agent")
	fl.IntVar(&f.ready, "progress-fd", 0, "")
	must(fl.MarkHidden("progress-fd"))
	must(c.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(lab.Profiles(), cobra.ShellCompDirectiveDefault)))
	must(c.MarkFlagDirname("profiles"))
	must(c.RegisterFlagCompletionFunc("speed", cobra.FixedCompletions([]string{"1x", "60x", "max"}, cobra.ShellCompDirectiveNoFileComp)))
	return c
}

// checkRecording returns an error when the recording would replace something else, or the
// recording that the lab comes from.
func (f *upFlags) checkRecording(count int) error {
	if f.from != "" {
		file, _ := splitMoment(f.from)
		was, err := os.Stat(file)
		if to, other := os.Stat(f.record); err == nil && other == nil && os.SameFile(was, to) {
			return usage.New(fmt.Errorf("--recording %s is the recording of --from, which it would replace: name another file", f.record))
		}
	}
	if count == 0 {
		snapshots := ""
		if f.keep {
			snapshots = f.record + lab.SnapshotsSuffix
		}
		if err := view.CheckFree(f.record, snapshots); err != nil {
			return fmt.Errorf("--recording: %w", err)
		}
		return nil
	}
	tapes := recordings{file: f.record, runs: map[string]int{}}
	for i := range count {
		if err := view.CheckFree(tapes.next(filepath.Base(shards.StateOf("", i))), ""); err != nil {
			return fmt.Errorf("--recording: %w", err)
		}
	}
	return nil
}

// atStart are the flags that a lab does not remember: they count when it starts.
var atStart = []string{"from", "schemas", "recording", "recording-snapshots", "http2", "ssdp", "agent-image"}

// isUp shows a lab that is up already, which is as the flags ask. Flags that the lab in a directory
// does not allow are an error in the command line, whether it runs or not.
func (f *upFlags) isUp(c *cobra.Command, o *options, st control.Status, asked lab.Settings) error {
	for _, name := range atStart {
		if c.Flags().Changed(name) {
			return usage.New(fmt.Errorf("the lab in %s is up already, in process %d, and --%s counts when it starts: stop it first, with labctl down", o.state, st.PID, name))
		}
	}
	if speed := f.settings.Speed; c.Flags().Changed("speed") && speed != st.Speed {
		return usage.New(fmt.Errorf("the lab in %s is up already, in process %d, at speed %s: stop it first, with labctl down", o.state, st.PID, st.Speed))
	}
	if stored, found, err := lab.LoadSettings(o.state); err == nil && found {
		if lacks := asked.FamiliesBeyond(stored); len(lacks) > 0 {
			return usage.New(fmt.Errorf("the lab in %s is up already, in process %d, without %s: stop it with labctl down, and labctl up --with %s adds that", o.state, st.PID, strings.Join(lacks, " and "), strings.Join(lacks, ",")))
		}
	}
	if scaled, err := f.scale(c, o, st); scaled || err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "The lab in %s is up already, in process %d.\n", o.state, st.PID)
	return f.summary(c.Context(), o, c.OutOrStdout())
}

// scale changes how many shards run in a lab that is up, when the flags ask for another
// number.
func (f *upFlags) scale(c *cobra.Command, o *options, st control.Status) (bool, error) {
	running := 0
	for _, s := range st.Shards {
		if s.State != control.ScaledIn {
			running++
		}
	}
	if !c.Flags().Changed("shards") || f.shards == running {
		return false, nil
	}
	if _, err := control.NewClient(o.state).Scale(c.Context(), f.shards); err != nil {
		return false, err
	}
	fmt.Fprintf(c.ErrOrStderr(), "The lab in %s has %d shards now, not %d.\n", o.state, f.shards, running)
	return true, f.summary(c.Context(), o, c.OutOrStdout())
}

// define reads the racks from the file, and adds what the flags say.
func (f *upFlags) define(c *cobra.Command, dir string) error {
	for _, name := range []string{"hosts", "profile"} {
		if c.Flags().Changed(name) {
			return usage.New(fmt.Errorf("-f and --%s exclude each other: set it in the file", name))
		}
	}
	b, err := os.ReadFile(f.file)
	if err != nil {
		return err
	}
	from := rack.Beside(f.settings.Models, rack.Models(dir))
	r, err := rackfile.Parse(f.file, b, func(l *rackfile.Lab) error { return rack.CheckNames(from, l) }, checkFamilies)
	if err != nil {
		return err
	}
	flags := f.settings
	f.settings.Define(r)
	f.settings.Seed, f.settings.Listen = flags.Seed, flags.Listen
	if c.Flags().Changed("speed") {
		f.settings.Speed = flags.Speed
	}
	return nil
}

// checkFamilies returns an error for each family of a rack file that does not exist.
func checkFamilies(l *rackfile.Lab) error {
	var errs []error
	for i, family := range l.With {
		if !slices.Contains(config.Families, family) {
			errs = append(errs, yamlfile.Errorf(fmt.Sprintf("with[%d]", i), "%q: there is no such family: use one of %s%s", family, strings.Join(config.Families, ", "), suggest.DidYouMean(family, config.Families)))
		}
	}
	return errors.Join(errs...)
}

// bring reads the models that are not built in.
func (f *upFlags) bring() error {
	at, named := f.models, f.profile
	if f.settings.Profile = named; isPath(named) {
		if at != "" {
			return usage.New(errors.New("--profiles and a --profile that is a file exclude each other: give --profile a name"))
		}
		at = named
	}
	if at == "" {
		return nil
	}
	models, err := rack.LoadModels(at)
	if err != nil {
		return err
	}
	f.settings.AddModels(models)
	if at == f.models {
		return nil
	}
	all := models.Profiles()
	if len(all) != 1 {
		return usage.New(fmt.Errorf("--profile %s: has several models: give --profiles the folder, and --profile one of %s", at, strings.Join(all, ", ")))
	}
	f.settings.Profile = all[0]
	return nil
}

// isPath reports whether a model is named by a path.
func isPath(profile string) bool {
	if profile == "" || slices.Contains(lab.Profiles(), profile) {
		return false
	}
	_, err := os.Stat(profile)
	return err == nil || strings.ContainsRune(profile, filepath.Separator) || strings.HasSuffix(profile, ".yaml")
}

// resolve combines the flags with what the lab in dir was made with.
func (f *upFlags) resolve(c *cobra.Command, dir string) (lab.Settings, error) {
	if err := f.bring(); err != nil {
		return lab.Settings{}, err
	}
	if f.file != "" {
		if err := f.define(c, dir); err != nil {
			return lab.Settings{}, err
		}
	}
	f.settings.Kube = !f.noKube
	if err := lab.CheckSettings(dir); err != nil {
		return lab.Settings{}, err
	}
	stored, found, err := lab.LoadSettings(dir)
	if err != nil {
		return lab.Settings{}, err
	}
	if !found && !c.Flags().Changed("listen") && (f.settings.Rack == nil || f.settings.Rack.Listen == "") {
		f.settings.Listen = os.Getenv("METALAB_LISTEN")
	}
	if f.settings.Kubeconfig != "" { // the lab may be started from another directory the next time
		if f.settings.Kubeconfig, err = filepath.Abs(f.settings.Kubeconfig); err != nil {
			return lab.Settings{}, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	if at := f.settings.ModuleIndex; at != "" && !strings.Contains(at, "://") {
		if f.settings.ModuleIndex, err = filepath.Abs(at); err != nil {
			return lab.Settings{}, fmt.Errorf("--module-index: %w", err)
		}
	}
	if err := f.divide(c, found); err != nil {
		return lab.Settings{}, usage.New(err)
	}
	if err := f.settings.Validate(); err != nil {
		return lab.Settings{}, usage.New(err)
	}
	if !found {
		return f.settings, nil
	}
	asked := stored
	asked.AddModels(f.settings.Models)
	for name, take := range map[string]func(){
		"file": func() {
			asked.Rack, asked.Hosts, asked.Profile, asked.Speed = f.settings.Rack, f.settings.Hosts, "", f.settings.Speed
		},
		"hosts":         func() { asked.Hosts, asked.Rack = f.settings.Hosts, nil },
		"profile":       func() { asked.Profile, asked.Rack = f.settings.Profile, nil },
		"shards":        func() { asked.Shards = f.settings.Shards },
		"seed":          func() { asked.Seed = f.settings.Seed },
		"listen":        func() { asked.Listen = f.settings.Listen },
		"speed":         func() { asked.Speed = f.settings.Speed },
		"no-kube":       func() { asked.Kube = f.settings.Kube },
		"kubeconfig":    func() { asked.Kubeconfig = f.settings.Kubeconfig },
		"no-controller": func() { asked.NoController = f.settings.NoController },
		"with": func() {
			if asked.With = f.settings.With; len(asked.With) > 0 { // families come, and do not go
				asked.AddFamilies(stored.With)
			}
		},
		"module-index": func() { asked.ModuleIndex = f.settings.ModuleIndex },
	} {
		if c.Flags().Changed(name) {
			take()
		}
	}
	if err := stored.Differences(asked); err != nil {
		return lab.Settings{}, usage.New(fmt.Errorf("the lab in %s differs from the flags: %w: leave the flag out, name another --state, or remove the lab with labctl down --delete", dir, err))
	}
	if c.Flags().Changed("shards") && asked.Shards > 0 {
		err = asked.Scale(f.shards)
	}
	return asked, err
}

// divide checks --shards, and makes a new lab one of several shards. Four servers are the
// default of each.
func (f *upFlags) divide(c *cobra.Command, found bool) error {
	if !c.Flags().Changed("shards") {
		return nil
	}
	if c.Flags().Changed("ssdp") {
		return errors.New("--ssdp and --shards exclude each other")
	}
	if found {
		f.settings.Shards = f.shards
		return nil
	}
	if f.file == "" && !c.Flags().Changed("hosts") {
		f.settings.Hosts *= max(1, f.shards)
	}
	return f.settings.Divide(f.shards)
}

// run keeps the lab up until ctx ends or it fails, and writes how it ended. That is no
// deferred call: the Go runtime writes a panic, for which there would be no error.
func (f *upFlags) run(ctx context.Context, o *options, s lab.Settings, out, progress io.Writer) error {
	level, logs, logFile := slog.LevelWarn, io.Writer(os.Stderr), ""
	if f.ready > 0 {
		pipe := os.NewFile(uintptr(f.ready), "progress")
		if pipe == nil {
			return usage.New(errors.New("--progress-fd is not an open file descriptor"))
		}
		defer pipe.Close()
		progress, level, logFile = pipe, slog.LevelInfo, filepath.Join(o.state, lab.LogFile)
	}
	recording := f.record
	if s.Shards > 0 { // each shard has a file
		recording = ""
	}
	watch, err := watchProcess(o.state, logFile)
	if err != nil {
		return err
	}
	started := false
	err = f.keepUp(ctx, o, s, lab.Config{
		Dir: o.state, Settings: s, Fsync: o.explicit, AcceptLoss: f.acceptLoss,
		Log:      slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level})),
		Progress: stepper(progress), Schemas: f.schemas, HTTP2: f.http2, SSDP: f.ssdp, Recording: recording, RecordingSnapshots: f.keep,
	}, out, progress, func() { started = true })
	if ended := endProcess(ctx, o.state, watch, err); ended != nil {
		return errors.Join(err, ended)
	}
	switch {
	case f.ready > 0 || f.remote != nil: // the process that has started this one says goodbye
		return err
	case !started:
		return o.goodbye(ctx, progress, err, "Goodbye. The lab in %s had not come up yet, and is stopped: labctl up starts it again.", o.state)
	}
	return o.goodbye(ctx, progress, err, "Goodbye. The lab in %s is stopped: labctl up starts it again.", o.state)
}

// keepUp starts the lab and keeps it up until ctx ends or it fails.
func (f *upFlags) keepUp(ctx context.Context, o *options, s lab.Settings, c lab.Config, out, progress io.Writer, started func()) (err error) {
	if err := needLoopback(); err != nil {
		return err
	}
	if s.Kube {
		defer kube.TrimCollector()()
		klog.OsExit = func(int) { panic("a part of Kubernetes ends the process: see the log") }
	}
	if f.image != "" { // else the image for emulated servers
		if c.Image, err = netboot.LoadImage(f.image); err != nil {
			return usage.New(fmt.Errorf("--agent-image: %w", err))
		}
		defer func() { err = errors.Join(err, c.Image.Close()) }()
	}
	traces, stop, err := tracing.Start(ctx, "metalab", version.Read().Version)
	if err != nil {
		return usage.New(err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	c.Traces, c.Remote, c.Gateway, c.Advertise = traces, f.remote, f.gateway, f.name
	if s.Shards > 0 {
		if c.Fleet, err = f.fleet(o, s, c.Log); err != nil {
			return err
		}
	}
	w, err := lab.Start(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	started()
	if f.remote != nil { // it is a part of a lab
	} else if err := rememberLab(o.state); err != nil { // such as in a container whose file system cannot be written
		fmt.Fprintln(os.Stderr, "labctl: labctl ls will not list this lab:", err)
	}
	if f.ready > 0 {
		fmt.Fprintln(progress, readyLine)
		progress.(io.Closer).Close()
	} else if err := f.summary(ctx, o, out); err != nil {
		return err
	}
	return w.Wait(ctx)
}

// stepper prints the current step and when it began.
func stepper(w io.Writer) func(string) {
	start := time.Now()
	return func(text string) { fmt.Fprintf(w, "%5.1fs  %s\n", time.Since(start).Seconds(), text) }
}
