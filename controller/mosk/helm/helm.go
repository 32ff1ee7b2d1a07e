package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const (
	// fetchTimeout limits the download of a chart, in real time.
	fetchTimeout = time.Minute
	// minBackoff and maxBackoff are the waits after the first failure of a release, and
	// after many.
	minBackoff, maxBackoff = 10 * time.Second, 5 * time.Minute
	// readyPeriod is the time between two checks of releases that are not ready.
	readyPeriod = 30 * time.Second
	// maxText limits a message or notes in a status, in bytes.
	maxText = 2048
)

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client client.Client
	// Reader reads Secrets, and bundles that another process has worked on, past the cache.
	Reader client.Reader
	// Target returns the API that the releases of a bundle are installed in: that of the cluster
	// of the bundle's namespace and name.
	Target func(ctx context.Context, namespace, name string) (API, error)
	HTTP   *http.Client // fetches charts; nil means one with the proxy of the environment
	// Leases, if not nil, hold the Lease of a bundle's Cluster for each pass, so that the controller
	// in that cluster does not act at the same time. nil means that no other process acts.
	Leases *helmcontroller.Leases
}

// API is the API that the releases of a bundle are installed in.
type API struct {
	Config *rest.Config
	// Shared is set for the API that has the bundles, too. Charts act there as a service account of
	// the bundle's namespace, and elsewhere with the rights of Config's user.
	Shared bool
}

// Reconciler reconciles HelmBundles.
type Reconciler struct {
	Config
	events *events.Recorder
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Target == nil || c.Clock == nil {
		return nil, errors.New("helm: Config.Client, Config.Reader, Config.Target or Config.Clock is nil")
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: fetchTimeout}}
	}
	return &Reconciler{c, events.New(c.Client, c.Clock)}, nil
}

// Setup adds the reconciler to a manager.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("helm").
		For(&lcmv1.HelmBundle{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for a HelmBundle.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.ReconcileAfter(r.Enter, func() (time.Duration, error) { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *Reconciler) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	b := new(lcmv1.HelmBundle)
	if err := r.Client.Get(ctx, key, b); err != nil {
		return 0, queue.Deleted(err)
	}
	if r.Leases != nil {
		held, release, wait, err := r.Leases.Hold(ctx, key)
		if err != nil || release == nil {
			return wait, err
		}
		defer release()
		ctx, b = held, new(lcmv1.HelmBundle)
		if err := r.Reader.Get(ctx, key, b); err != nil { // the cache may not have what the other process has written
			return 0, queue.Deleted(err)
		}
	}
	deleted := !b.DeletionTimestamp.IsZero()
	if deleted && !controllerutil.ContainsFinalizer(b, lcmv1.HelmFinalizer) {
		return 0, nil
	}
	if before := b.DeepCopy(); !deleted && controllerutil.AddFinalizer(b, lcmv1.HelmFinalizer) {
		if err := r.Client.Patch(ctx, b, patch.IfUnchanged(before)); err != nil {
			return 0, fmt.Errorf("helm: finalizer: %w", err)
		}
	}
	api, err := r.Target(ctx, key.Namespace, key.Name)
	if errors.As(err, new(*workload.SecretError)) {
		if deleted { // nobody can uninstall anything there: the end of the Cluster must not wait for ever
			return 0, r.release(ctx, b)
		}
		return queue.SecretWait, nil // the Cluster's condition Kubernetes has the reason
	}
	if err != nil {
		return 0, fmt.Errorf("helm: %w", err)
	}
	p := &pass{r: r, b: b, target: api.Config, installers: map[string]*installer{}}
	if api.Shared {
		if err := p.actAsAccount(ctx); err != nil {
			return 0, err
		}
	}
	order := plan(b)
	if deleted {
		order = nil
	}
	if err := p.prune(ctx, order); err != nil {
		return 0, err
	}
	for _, rel := range order {
		if err := p.release(ctx, rel); err != nil {
			return 0, err
		}
	}
	err = p.record(ctx, func(s *lcmv1.HelmBundleStatus) {
		s.ObservedGeneration = b.Generation
		if !slices.ContainsFunc(order, func(rel planned) bool { return !s.ReleaseStatuses[rel.Name].Success }) {
			s.Release = b.Spec.Release
		}
	})
	if err != nil || !deleted || len(b.Status.ReleaseStatuses) > 0 {
		return p.after, err
	}
	return 0, r.release(ctx, b)
}

// release lets the API delete a bundle.
func (r *Reconciler) release(ctx context.Context, b *lcmv1.HelmBundle) error {
	before := b.DeepCopy()
	controllerutil.RemoveFinalizer(b, lcmv1.HelmFinalizer)
	if err := r.Client.Patch(ctx, b, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("helm: finalizer: %w", err)
	}
	return nil
}

// pass is one look at a bundle.
type pass struct {
	r          *Reconciler
	b          *lcmv1.HelmBundle
	target     *rest.Config
	user       string        // the service account that the charts act as; "" is target's own user
	noAccount  string        // why that account cannot act yet
	after      time.Duration // when to look again; 0: at a change
	installers map[string]*installer
}

// again asks for another look.
func (p *pass) again(after time.Duration) {
	if p.after == 0 || after < p.after {
		p.after = after
	}
}

func (p *pass) installer(ctx context.Context, namespace string) (*installer, error) {
	if i := p.installers[namespace]; i != nil {
		return i, nil
	}
	log := ctrl.LoggerFrom(ctx).V(1)
	i, err := newInstaller(p.target, namespace, ownerOf(p.b), func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) })
	if err != nil {
		return nil, err
	}
	if i.createNamespace, err = p.mayCreate(ctx, namespace); err != nil {
		return nil, err
	}
	p.installers[namespace] = i
	return i, nil
}

// record writes the status, if it has changed.
func (p *pass) record(ctx context.Context, change func(*lcmv1.HelmBundleStatus)) error {
	before := p.b.DeepCopy()
	if p.b.Status.ReleaseStatuses == nil {
		p.b.Status.ReleaseStatuses = map[string]lcmv1.HelmReleaseStatus{}
	}
	change(&p.b.Status)
	if equality.Semantic.DeepEqual(before.Status, p.b.Status) {
		return nil
	}
	if err := p.r.Client.Status().Patch(ctx, p.b, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("helm: status: %w", err)
	}
	return nil
}

func (p *pass) set(ctx context.Context, name string, s lcmv1.HelmReleaseStatus) error {
	s.Message, s.Notes = short(s.Message), short(s.Notes)
	was := p.b.Status.ReleaseStatuses[name]
	if err := p.record(ctx, func(status *lcmv1.HelmBundleStatus) { status.ReleaseStatuses[name] = s }); err != nil {
		return err
	}
	p.changed(ctx, name, was, s)
	return nil
}

// prune uninstalls the releases in the status that the bundle no longer lists, or lists with
// another namespace, in the reverse order of their installation.
func (p *pass) prune(ctx context.Context, order []planned) error {
	wanted := map[string]string{} // namespaces
	for _, rel := range order {
		wanted[rel.Name] = namespaceOf(p.b, rel.HelmRelease)
	}
	var gone []string
	for name, s := range p.b.Status.ReleaseStatuses {
		namespace, exists := wanted[name]
		if !exists || s.Namespace != "" && s.Namespace != namespace {
			gone = append(gone, name)
		}
	}
	place := map[string]int{} // in the order of installation, where the spec still has it
	for i, rel := range plan(p.b) {
		place[rel.Name] = i + 1
	}
	slices.SortFunc(gone, func(a, b string) int {
		if d := place[b] - place[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, name := range gone {
		s := p.b.Status.ReleaseStatuses[name]
		if left := p.wait(s); !s.Success && s.Status == string(release.StatusUninstalling) && left > 0 {
			p.again(left)
			continue
		}
		var err error
		if s.Namespace != "" { // else it was never installed
			var i *installer
			if i, err = p.installer(ctx, s.Namespace); err == nil {
				err = i.uninstall(name)
			}
		}
		if p.lacksRights(err) {
			err = p.unlessItEnds(ctx, s.Namespace, p.explain(err))
		}
		if err != nil {
			s.Success, s.Ready, s.Status, s.Message = false, false, string(release.StatusUninstalling), "uninstall: "+err.Error()
			p.failed(&s)
			if err := p.set(ctx, name, s); err != nil {
				return err
			}
			continue
		}
		if err := p.record(ctx, func(s *lcmv1.HelmBundleStatus) { delete(s.ReleaseStatuses, name) }); err != nil {
			return err
		}
		p.event(ctx, corev1.EventTypeNormal, "ReleaseUninstalled", "release %s is uninstalled", name)
	}
	return nil
}

// wait returns how long a release that has failed still waits.
func (p *pass) wait(s lcmv1.HelmReleaseStatus) time.Duration {
	if s.FinishedAt == nil || s.Attempt == 0 {
		return 0
	}
	return s.FinishedAt.Add(backoff(s.Attempt)).Sub(p.r.Clock.Now())
}

// backoff returns the wait after a number of failures.
func backoff(attempts int) time.Duration {
	return min(minBackoff<<min(attempts-1, 10), maxBackoff)
}

// failed notes the end of an attempt that has failed.
func (p *pass) failed(s *lcmv1.HelmReleaseStatus) {
	s.Attempt++
	s.FinishedAt = now(p.r.Clock.Now())
	p.again(backoff(s.Attempt))
}

// release installs, upgrades or uninstalls a release as its bundle demands.
func (p *pass) release(ctx context.Context, rel planned) error {
	was := p.b.Status.ReleaseStatuses[rel.Name]
	s, namespace := was, namespaceOf(p.b, rel.HelmRelease)
	if s.Namespace != "" && s.Namespace != namespace {
		return nil // it is not uninstalled there yet
	}
	if s.Hash != rel.hash {
		s = lcmv1.HelmReleaseStatus{Namespace: namespace, Hash: rel.hash, Chart: s.Chart, Version: s.Version, Revision: s.Revision}
	}
	if why := p.withheld(rel); why != "" {
		if s.Success {
			return nil // it stays
		}
		s.Namespace, s.Message, s.Ready = was.Namespace, why, false
		return p.set(ctx, rel.Name, s)
	}
	s.Namespace = namespace
	i, err := p.installer(ctx, namespace)
	if err != nil {
		return err
	}
	last, err := i.last(rel.Name)
	if p.lacksRights(err) {
		if left := p.wait(s); !s.Success && left > 0 {
			p.again(left)
			return nil
		}
		s.Namespace, s.Success, s.Ready, s.Message, s.Status = was.Namespace, false, false, p.explain(err).Error(), string(release.StatusFailed)
		p.failed(&s)
		return p.set(ctx, rel.Name, s)
	}
	if err != nil {
		return fmt.Errorf("helm: release %s: %w", rel.Name, err)
	}
	if other := i.foreign(last); other != "" {
		if s.Success {
			s = lcmv1.HelmReleaseStatus{Hash: rel.hash}
		}
		s.Success, s.Ready, s.Namespace, s.Status = false, false, "", ""
		s.Message = fmt.Sprintf("release %s in namespace %s is that of HelmBundle %s: give it another name or namespace, or its Cluster a Kubernetes API of its own (annotation %s)", rel.Name, namespace, other, workload.Annotation)
		p.again(readyPeriod)
		return p.set(ctx, rel.Name, s)
	}
	if last == nil || last.Info.Status != release.StatusDeployed || last.Labels[hashLabel] != shortHash(rel.hash) {
		if left := p.wait(s); !s.Success && left > 0 {
			p.again(left)
			return nil
		}
		if was.Namespace == "" { // after a crash, prune knows that there may be something to uninstall
			begun := s
			begun.Status = string(release.StatusPendingInstall)
			if err := p.set(ctx, rel.Name, begun); err != nil {
				return err
			}
		}
		p.begins(ctx, rel, s)
		if last, err = p.install(ctx, i, rel); err != nil {
			s.Success, s.Ready, s.Message, s.Status = false, false, p.explain(err).Error(), string(release.StatusFailed)
			p.failed(&s)
			return p.set(ctx, rel.Name, s)
		}
	}
	if !s.Success {
		s.Attempt, s.FinishedAt = s.Attempt+1, now(p.r.Clock.Now())
	}
	s.Success, s.Revision, s.Status, s.Message = true, last.Version, string(last.Info.Status), ""
	s.Chart, s.Version, s.Notes = last.Chart.Metadata.Name, last.Chart.Metadata.Version, last.Info.Notes
	if s.Ready, err = i.ready(ctx, last); err != nil {
		s.Message = "not ready: " + p.explain(err).Error()
	}
	if !s.Ready {
		p.again(readyPeriod)
	}
	return p.set(ctx, rel.Name, s)
}

// withheld returns why a release is not installed yet, "" if it may be.
func (p *pass) withheld(rel planned) string {
	if rel.problem != "" {
		return rel.problem
	}
	if p.noAccount != "" {
		p.again(readyPeriod)
		return p.noAccount
	}
	for _, name := range rel.Requires {
		if !p.b.Status.ReleaseStatuses[name].Success {
			return "waits for the release " + name
		}
	}
	return ""
}

// install fetches the chart of a release, and installs or upgrades it.
func (p *pass) install(ctx context.Context, i *installer, rel planned) (*release.Release, error) {
	var values map[string]any
	if rel.Values != nil {
		if err := json.Unmarshal(rel.Values.Raw, &values); err != nil {
			return nil, fmt.Errorf("values: give an object: %w", err)
		}
	}
	ch, err := p.r.load(ctx, p.b, rel.HelmRelease, p.secretsOf(i))
	if err != nil {
		return nil, err
	}
	return i.apply(ctx, rel, ch, values)
}

// short returns a text of at most maxText bytes.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText] + "…"
}

func bytesOf(text string) io.Reader { return strings.NewReader(text) }
