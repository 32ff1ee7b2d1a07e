// Package runner runs jobs: it passes each to the plugin for its kind, bounds its
// duration, thins out its progress and remembers its result. It does not know
// where jobs come from nor how reports travel.
package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/plugin/disk"
	"github.com/metalab-dev/metalab/agent/plugin/inventory"
	"github.com/metalab-dev/metalab/agent/plugin/mdraid"
	"github.com/metalab-dev/metalab/agent/sys"
)

const (
	// defaultDeadline is longer than the largest image takes on a slow network,
	// and far shorter than people wait.
	defaultDeadline = 6 * time.Hour
	// maxResults is the number of stored results: a restarted controller offers
	// the last job again; more are stored to be safe.
	maxResults = 64
	// progressStep is the progress, in percent, between two reports.
	progressStep = 5
)

// Config holds the parameters of New.
type Config struct {
	System   sys.System    // required
	HTTP     *http.Client  // for images; nil means http.Client's defaults
	Deadline time.Duration // limit of one job, in wall time; 0 means six hours
	// Methods holds deployment methods in addition to the built-in ones, by name.
	Methods map[string]Method
}

// Method deploys a server in a custom way (a BareMetalHost's customDeploy). disks
// are those of the inventory; progress receives the percentage done.
type Method func(ctx context.Context, s sys.System, spec job.WriteSpec, disks []job.Disk, progress func(percent int)) (job.Report, error)

// Runner runs one job at a time.
type Runner struct {
	config   Config
	finished map[string]job.Report
	order    []string // IDs in finished, oldest first
}

// New returns a Runner.
func New(c Config) (*Runner, error) {
	if c.System == nil {
		return nil, errors.New("runner: no system")
	}
	if c.Deadline <= 0 {
		c.Deadline = defaultDeadline
	}
	return &Runner{config: c, finished: map[string]job.Report{}}, nil
}

// Run does a job and returns its final report. For the ID of a finished job it
// returns the stored report at once. progress receives the percentage at the start
// and then in steps. When ctx ends, Run returns as soon as the work has stopped,
// and the job does not count as finished.
func (r *Runner) Run(ctx context.Context, j job.Job, progress func(percent int)) job.Report {
	if report, ok := r.finished[j.ID]; ok {
		return report
	}
	bounded, cancel := context.WithTimeoutCause(ctx, r.config.Deadline,
		fmt.Errorf("runner: the job took longer than %v", r.config.Deadline))
	defer cancel()
	report, err := r.do(bounded, j, throttle(progress))
	report.State = job.Done
	if err != nil {
		report.State, report.Error = job.Failed, err.Error()
	}
	if ctx.Err() == nil {
		r.remember(j.ID, report)
	}
	return report
}

func (r *Runner) do(ctx context.Context, j job.Job, progress func(percent int)) (job.Report, error) {
	work, err := r.work(j)
	if err != nil {
		return job.Report{}, err
	}
	hardware, err := inventory.Collect(ctx, r.config.System)
	if err != nil {
		return job.Report{}, err
	}
	return work(ctx, hardware, progress)
}

// work returns the function for a job's kind.
func (r *Runner) work(j job.Job) (func(context.Context, job.Hardware, func(int)) (job.Report, error), error) {
	switch {
	case j.Kind == job.Inventory:
		return func(ctx context.Context, h job.Hardware, _ func(int)) (job.Report, error) {
			if j.Inspect != nil {
				inventory.Neighbours(ctx, r.config.System, h.NICs, time.Duration(j.Inspect.ListenSeconds)*time.Second)
			}
			return job.Report{Inventory: &h}, nil
		}, nil
	case j.Kind == job.Clean:
		var spec job.CleanSpec
		if j.Clean != nil {
			spec = *j.Clean
		}
		return func(ctx context.Context, h job.Hardware, progress func(int)) (job.Report, error) {
			return clean(ctx, r.config.System, spec, h.Disks, progress)
		}, nil
	case j.Kind == job.RAID && j.RAID == nil:
		return nil, errors.New("runner: a RAID job without its specification")
	case j.Kind == job.RAID:
		return func(ctx context.Context, h job.Hardware, progress func(int)) (job.Report, error) {
			return makeArrays(ctx, r.config.System, *j.RAID, h.Disks, progress)
		}, nil
	case j.Kind == job.Write && j.Write == nil:
		return nil, errors.New("runner: a write job without its specification")
	case j.Kind == job.Write:
		return r.deploy(r.write, *j.Write), nil
	case j.Kind == job.Custom && j.Custom == nil:
		return nil, errors.New("runner: a custom job without its specification")
	case j.Kind == job.Custom:
		for _, methods := range []map[string]Method{r.config.Methods, r.methods()} {
			if m := methods[j.Custom.Method]; m != nil {
				return r.deploy(m, j.Custom.Write), nil
			}
		}
		return nil, fmt.Errorf("runner: the agent knows no deployment method %q", j.Custom.Method)
	}
	return nil, fmt.Errorf("runner: the agent knows no job of kind %q", j.Kind)
}

func (r *Runner) deploy(m Method, spec job.WriteSpec) func(context.Context, job.Hardware, func(int)) (job.Report, error) {
	return func(ctx context.Context, h job.Hardware, progress func(int)) (job.Report, error) {
		return m(ctx, r.config.System, spec, h.Disks, progress)
	}
}

// methods returns the built-in deployment methods, named like the steps of
// ironic-python-agent.
func (r *Runner) methods() map[string]Method {
	return map[string]Method{
		"write_image":            r.write,
		"erase_devices_metadata": erase(job.EraseMetadata),
		"erase_devices":          erase(job.EraseSecure),
	}
}

func (r *Runner) write(ctx context.Context, s sys.System, spec job.WriteSpec, disks []job.Disk, progress func(int)) (job.Report, error) {
	w := disk.Writer{System: s, HTTP: r.config.HTTP, Progress: progress}
	written, err := w.Write(ctx, spec, disks)
	if err == nil && spec.Array != "" {
		err = mdraid.CopyLoader(ctx, s, written.Device)
	}
	if err != nil {
		return job.Report{}, err
	}
	return job.Report{Written: &written}, nil
}

// erase returns a method that erases every disk.
func erase(how job.Erase) Method {
	return func(ctx context.Context, s sys.System, _ job.WriteSpec, disks []job.Disk, progress func(int)) (job.Report, error) {
		return clean(ctx, s, job.CleanSpec{Erase: how}, disks, progress)
	}
}

func (r *Runner) remember(id string, report job.Report) {
	if len(r.order) == maxResults {
		delete(r.finished, r.order[0])
		r.order = r.order[1:]
	}
	r.finished[id] = report
	r.order = append(r.order, id)
}

// throttle passes on the first value and then values at least a step higher.
func throttle(progress func(percent int)) func(percent int) {
	if progress == nil {
		return func(int) {}
	}
	last := -progressStep
	return func(percent int) {
		if percent >= last+progressStep {
			last = percent
			progress(percent)
		}
	}
}
