package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	opv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/agent/ledger"
	"github.com/metalab-dev/metalab/agent/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/machineconfig"
)

const (
	minBackoff   = 5 * time.Second // after an error of the API, or a failed update
	maxBackoff   = time.Minute
	drainPoll    = 10 * time.Second
	drainTimeout = time.Hour
	uncordonTime = 10 * time.Minute
)

// daemon is a running daemon.
type daemon struct {
	Config
	api   *kubeapi.Client
	leave func() // result of Enter
	// write writes files and units to the present root. It is never called for an image that
	// carries them.
	write func(ctx context.Context, w *writer, was, next *content, abandoned []string) error

	changed  chan struct{} // has a token when there is something to look at
	dirty    atomic.Bool   // files may differ from the current configuration
	watched  string        // configuration whose files are watched
	stop     func()        // ends the watch
	pull     pull
	parsed   parses
	certSeen time.Time
	drift    string // reason of the last event
	lastText string // text of the error that was logged last
}

// failure is the reason why the node does not get its configuration. The daemon tries again.
type failure struct {
	state string // machineconfig.Degraded or Unreconcilable
	err   error
	after time.Duration // until the next attempt; 0 is a growing time
}

// Error implements error.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the reason.
func (f *failure) Unwrap() error { return f.err }

func degraded(err error) error {
	if err == nil || errors.As(err, new(*failure)) || errors.Is(err, context.Canceled) {
		return err
	}
	return &failure{state: machineconfig.Degraded, err: err}
}

func newDaemon(c Config) *daemon {
	d := &daemon{Config: c, changed: make(chan struct{}, 1), stop: func() {}, write: func(ctx context.Context, w *writer, was, next *content, abandoned []string) error {
		return w.write(ctx, was, next, abandoned)
	}}
	d.api = &kubeapi.Client{Server: c.Server, CAFile: c.CAFile, TokenFile: c.TokenFile, Files: c.System, Transport: c.API}
	d.dirty.Store(true)
	return d
}

// Run brings the node to what its annotations name until ctx ends, and then returns nil. It
// returns an error for an invalid Config; all other errors are reported on the Node, or logged,
// and the daemon tries again.
func Run(ctx context.Context, c Config) error {
	if err := c.complete(); err != nil {
		return err
	}
	return newDaemon(c).run(ctx)
}

func (d *daemon) run(ctx context.Context) error {
	defer d.api.Close()
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	defer func() { d.stop() }()
	group.Go(func() { d.watchNode(ctx) })
	backoff := minBackoff
	for {
		d.leave = d.Enter()
		wait, err := d.step(ctx)
		switch f := new(failure); {
		case err == nil || ctx.Err() != nil:
			backoff, d.lastText = minBackoff, ""
		case errors.As(err, &f) && f.after > 0:
			wait = f.after
			d.report(err)
		default:
			d.report(err)
			wait = backoff
			backoff = min(2*backoff, maxBackoff)
		}
		timer := d.Clock.NewTimer(wait)
		d.leave()
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		case <-d.changed:
			timer.Stop()
		}
	}
}

// report logs an error that differs from the last one.
func (d *daemon) report(err error) {
	if text := err.Error(); text != d.lastText {
		d.lastText = text
		d.Log.Error("the machine-config daemon tries again", "error", err)
	}
}

// signal makes the daemon look at the node. It does not block.
func (d *daemon) signal() {
	select {
	case d.changed <- struct{}{}:
	default: // a look is due already
	}
}

// watchNode signals changes of the Node. Without a watch the daemon still looks at each Poll.
func (d *daemon) watchNode(ctx context.Context) {
	backoff := minBackoff
	for ctx.Err() == nil {
		err := d.api.Watch(ctx, nodesPath, "metadata.name="+d.Node, func() {
			backoff = minBackoff
			d.signal()
		})
		if err == nil {
			backoff = minBackoff
		}
		timer := d.Clock.NewTimer(backoff)
		backoff = min(2*backoff, maxBackoff)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// target is the configuration and the image that the Node's annotations name.
type target struct{ config, image string }

// step looks at the node, takes the next step, and returns the time until the next look. A
// failure is on the Node when it returns.
func (d *daemon) step(ctx context.Context) (time.Duration, error) {
	n, err := d.node(ctx)
	if err != nil {
		return 0, fmt.Errorf("Node %s: %w", d.Node, err)
	}
	if err := d.certificatesDue(ctx); err != nil {
		d.report(err) // a pull tells it on the Node
	}
	wait, err := d.reconcile(ctx, n)
	if f := new(failure); errors.As(err, &f) && ctx.Err() == nil {
		return wait, errors.Join(f, d.failed(ctx, n, f.state, f.err))
	}
	return wait, err
}

// certificatesDue syncs the certificates once in each Poll.
func (d *daemon) certificatesDue(ctx context.Context) error {
	now := d.Clock.Now()
	if !d.certSeen.IsZero() && now.Sub(d.certSeen) < d.Poll {
		return nil
	}
	c, err := d.controllerConfig(ctx)
	if err == nil {
		_, err = d.syncCertificates(ctx, c)
	}
	if err == nil {
		d.certSeen = now
	}
	return err
}

func (d *daemon) reconcile(ctx context.Context, n *corev1.Node) (time.Duration, error) {
	want := target{n.Annotations[machineconfig.DesiredConfig], n.Annotations[machineconfig.DesiredOSImage]}
	if want.config == "" { // the node is in no pool
		return d.Poll, nil
	}
	if want.image == "" {
		want.image = n.Annotations[machineconfig.DesiredImage]
	}
	if want.image != "" {
		if err := registry.CheckReference(want.image); err != nil {
			return 0, degraded(fmt.Errorf("annotation %s: %w", machineconfig.DesiredOSImage, err))
		}
	}
	s, err := d.readState()
	if err != nil {
		return 0, degraded(err)
	}
	forced, err := d.exists(ForceFile)
	if err != nil {
		return 0, degraded(err)
	}
	if s.update == nil && !forced && s.config.name == want.config && s.image == want.image {
		return d.steady(ctx, n, s)
	}
	return d.update(ctx, n, s, want, forced)
}

func (d *daemon) exists(name string) (bool, error) {
	_, err := d.System.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// steady checks a node that is at its target for drift: its files may have been changed.
func (d *daemon) steady(ctx context.Context, n *corev1.Node, s onDisk) (time.Duration, error) {
	if err := d.watchFiles(s.config); err != nil {
		d.report(err) // the files are compared at each Poll
		d.dirty.Store(true)
	}
	d.parsed = parses{}
	look := d.dirty.Swap(false)
	if look || n.Annotations[machineconfig.State] != machineconfig.Done {
		if err := validate(d.System, s.config, ofCertificates); err != nil {
			d.dirty.Store(true)
			err = d.blame(err)
			if d.drift != err.Error() {
				d.drift = err.Error()
				d.event(ctx, n, "ConfigDriftDetected", err.Error())
			}
			return 0, &failure{machineconfig.Degraded, err, d.Poll}
		}
	}
	d.drift = ""
	if look {
		if err := d.claim(s.config); err != nil {
			d.report(err) // others change the files unseen then
		}
	}
	return d.Poll, d.done(ctx, n, s.config.name, s.image, nil, nil)
}

// claim records the files of the current configuration, so that other agents of the host report
// their changes.
func (d *daemon) claim(c *content) error {
	files := map[string][]byte{}
	for name, f := range c.files {
		if f.Mode.IsRegular() && !ofCertificates(name) {
			files[name] = f.Content
		}
	}
	return ledger.Claim(d.System, "MachineConfig "+c.name, files)
}

// blame adds to a reason the owner that changed files of the configuration, if the ledger has one.
func (d *daemon) blame(reason error) error {
	r, err := ledger.Load(d.System)
	if err != nil {
		return reason
	}
	var by []string
	for _, name := range slices.Sorted(maps.Keys(r.Changed)) {
		by = append(by, fmt.Sprintf("%s was changed by %s", name, r.Changed[name]))
	}
	if len(by) == 0 {
		return reason
	}
	return fmt.Errorf("%w; conflict: %s", reason, strings.Join(by, ", "))
}

// done reports that the node has its configuration. The update of facts, if there was one, has left
// sections unapplied.
func (d *daemon) done(ctx context.Context, n *corev1.Node, config, image string, facts []fact, unapplied *[]mcv1.IrreconcilableChangeDiff) error {
	was := n.Annotations[machineconfig.State]
	values := reached(n, config, image)
	same := true
	for name, value := range values {
		same = same && n.Annotations[name] == value
	}
	if same && len(facts) == 0 {
		return nil
	}
	if err := d.annotate(ctx, n, values); err != nil {
		return err
	}
	if was == machineconfig.Degraded || was == machineconfig.Unreconcilable || len(facts) > 0 {
		facts = append(facts, fact{mcv1.MachineConfigNodeNodeDegraded, false, "AsExpected", "the node has its configuration"})
		return d.progressOf(ctx, n, unapplied, facts...)
	}
	return nil
}

// reached returns the annotations of a node that has a configuration and an image. The annotation
// reason, once it is there, stays empty.
func reached(n *corev1.Node, config, image string) map[string]string {
	values := map[string]string{machineconfig.CurrentConfig: config, machineconfig.CurrentImage: image, machineconfig.State: machineconfig.Done, postConfigAction: ""}
	if _, ok := n.Annotations[machineconfig.Reason]; ok {
		values[machineconfig.Reason] = ""
	}
	return values
}

// watchFiles watches the files of the current configuration.
func (d *daemon) watchFiles(c *content) error {
	if d.watched == c.name {
		return nil
	}
	d.unwatch()
	var names []string
	for _, name := range c.paths() {
		if !ofCertificates(name) {
			names = append(names, name)
		}
	}
	stop, err := d.Monitor.Watch(append(names, ForceFile), func() {
		d.dirty.Store(true)
		d.signal()
	})
	if err != nil {
		return fmt.Errorf("watch of files: %w", err)
	}
	d.watched, d.stop = c.name, stop
	d.dirty.Store(true) // files may have changed before the watch began
	return nil
}

// unwatch ends the watch: an update changes the files.
func (d *daemon) unwatch() {
	d.stop()
	d.stop, d.watched = func() {}, ""
}

// machineConfig returns a rendered configuration.
func (d *daemon) machineConfig(ctx context.Context, name string) (*content, error) {
	var raw rawObject
	err := d.api.Call(ctx, http.MethodGet, configsPath+"/machineconfigs/"+url.PathEscape(name), "", nil, &raw)
	if kubeapi.HasStatus(err, http.StatusNotFound) {
		return nil, &failure{machineconfig.Degraded, fmt.Errorf("machineconfig.machineconfiguration.openshift.io %q not found", name), 0}
	}
	if err != nil {
		return nil, fmt.Errorf("MachineConfig %s: %w", name, err)
	}
	c, err := d.parsed.content(raw)
	if err != nil {
		return nil, &failure{machineconfig.Unreconcilable, err, 0}
	}
	return c, nil
}

// rawObject is an object as the API sends it.
type rawObject []byte

// UnmarshalJSON implements json.Unmarshaler.
func (r *rawObject) UnmarshalJSON(b []byte) error { *r = slices.Clone(b); return nil }

// configuration holds the parts of a MachineConfiguration's spec that the daemon reads.
type configuration struct {
	NodeDisruptionPolicy              opv1.NodeDisruptionPolicyConfig        `json:"nodeDisruptionPolicy"`
	IrreconcilableValidationOverrides opv1.IrreconcilableValidationOverrides `json:"irreconcilableValidationOverrides"`
}

// machineConfiguration returns the MachineConfiguration of the cluster; an empty one when there is
// none.
func (d *daemon) machineConfiguration(ctx context.Context) (configuration, error) {
	var m struct {
		Spec configuration `json:"spec"`
	}
	err := d.api.Call(ctx, http.MethodGet, operatorPath+"/machineconfigurations/"+machineconfig.ConfigurationName, "", nil, &m)
	if err != nil && !kubeapi.HasStatus(err, http.StatusNotFound) {
		return configuration{}, fmt.Errorf("MachineConfiguration %s: %w", machineconfig.ConfigurationName, err)
	}
	return m.Spec, nil
}

// drained reports whether the node's drain for a configuration is complete.
func drained(n *corev1.Node, config string) bool {
	want := machineconfig.DrainVerb + "-" + config
	return n.Annotations[machineconfig.DesiredDrain] == want && n.Annotations[machineconfig.LastAppliedDrain] == want
}

// isDrain reports whether the node was drained, or is to be, for any configuration.
func isDrain(n *corev1.Node) bool {
	return strings.HasPrefix(n.Annotations[machineconfig.DesiredDrain], machineconfig.DrainVerb+"-")
}

// resetSteps are the conditions at the begin of an update: none is true but that it is prepared.
func resetSteps(config string) []fact {
	out := []fact{yes(mcv1.MachineConfigNodeUpdatePrepared, "the update to "+config+" can be applied")}
	for _, s := range steps[1:] {
		out = append(out, no(s))
	}
	return out
}
