// Package builder does the Jobs of builds where no node runs pods: in the lab's embedded API. It
// takes the Job that controller/machineconfig/build has created, with its ConfigMaps and
// Secrets, makes the image, pushes it, and reports as the pods and the Job controller of a
// cluster do: by the Job's status and the ConfigMap with the digest.
//
// The content of an image is osimage's. The package does not know why there is a build.
package builder

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/build"
	"github.com/metalab-dev/metalab/controller/machineconfig/osimage"
	"github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// The delay before the attempt after the first failure, and the longest one; each failure doubles
// it (Kubernetes, "Pod backoff failure policy").
const (
	firstDelay = 10 * time.Second
	maxDelay   = 6 * time.Minute
)

// workers is how many images are built at a time.
const workers = 2

// Config configures a Reconciler.
type Config struct {
	Client client.Client
	Reader client.Reader // reads the API without a cache
	queue.Work
}

// Reconciler builds the images of Jobs.
type Reconciler struct {
	Config

	mu      sync.Mutex
	running map[types.UID]context.CancelFunc // attempts, by their Jobs
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Clock == nil {
		return nil, errors.New("builder: Config.Client, Config.Reader and Config.Clock are required")
	}
	c.Workers = workers
	return &Reconciler{Config: c, running: map[types.UID]context.CancelFunc{}}, nil
}

// Setup adds the reconciler to a manager.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("machineconfig-builder").
		For(&batchv1.Job{}, ctrlbuilder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			_, ours := o.GetLabels()[machineconfig.EphemeralLabel]
			return ours && o.GetNamespace() == machineconfig.Namespace
		}), predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool {
				r.endDeleted(e.ObjectNew, e.ObjectNew.GetDeletionTimestamp() != nil)
				return true
			},
			DeleteFunc: func(e event.DeleteEvent) bool { r.endDeleted(e.Object, true); return true },
		})).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for a Job.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.ReconcileAfter(r.Enter, func() (time.Duration, error) { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *Reconciler) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	j := new(batchv1.Job)
	// Past the cache: an attempt that has ended must not begin again.
	if err := r.Reader.Get(ctx, key, j); err != nil {
		return 0, queue.Deleted(err)
	}
	if finished(j) || j.DeletionTimestamp != nil || ptr.Deref(j.Spec.Suspend, false) {
		return 0, nil
	}
	if wait := r.delay(j); wait > 0 {
		return wait, nil
	}
	// The attempt is in the status before it begins. After a restart it is made again: the
	// same input gives the same image.
	if err := r.write(ctx, j, func(s *batchv1.JobStatus) {
		if s.Active = 1; s.StartTime == nil {
			s.StartTime = ptr.To(metav1.NewTime(r.Clock.Now()))
		}
		s.Ready = ptr.To(int32(1))
	}); err != nil {
		return 0, err
	}
	log := &buildLog{now: r.Clock.Now}
	running, end := r.begin(ctx, j)
	err := r.attempt(running, j, log)
	deleted := running.Err() != nil && ctx.Err() == nil
	if end(); deleted {
		return 0, nil
	}
	if ctx.Err() != nil || apierrors.IsConflict(err) {
		return 0, err
	}
	if err != nil {
		_, _ = fmt.Fprintf(log, "ERROR %v\n", err) // it writes to memory
	}
	if lerr := r.storeLog(ctx, j, log); lerr != nil {
		return 0, lerr
	}
	if err == nil {
		return 0, r.write(ctx, j, r.succeed)
	}
	if err := r.write(ctx, j, func(s *batchv1.JobStatus) { r.fail(s, j, err) }); err != nil {
		return 0, err
	}
	return r.delay(j), nil
}

// begin returns the context of an attempt, which the deletion of its Job ends as that ends the
// pods of a cluster's.
func (r *Reconciler) begin(ctx context.Context, j *batchv1.Job) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[j.UID] = cancel
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, j.UID)
		cancel()
	}
}

// endDeleted ends the attempt of a Job that is deleted: its reconciliation is under way, and
// another one waits for that.
func (r *Reconciler) endDeleted(j client.Object, deleted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.running[j.GetUID()]; cancel != nil && deleted {
		cancel()
	}
}

// finished reports whether a Job has ended.
func finished(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}

// failedAnnotation of a Job is the time of its last failure.
const failedAnnotation = "metalab.dev/failed-at"

// delay returns how long the next attempt of a Job waits.
func (r *Reconciler) delay(j *batchv1.Job) time.Duration {
	if j.Status.Failed == 0 || finished(j) || j.Status.Active > 0 {
		return 0
	}
	at, err := time.Parse(time.RFC3339Nano, j.Annotations[failedAnnotation])
	if err != nil {
		return 0
	}
	d := min(firstDelay<<min(j.Status.Failed-1, 10), maxDelay)
	return max(at.Add(d).Sub(r.Clock.Now()), 0)
}

// write changes the status of a Job.
func (r *Reconciler) write(ctx context.Context, j *batchv1.Job, change func(*batchv1.JobStatus)) error {
	failed := j.Status.Failed
	before := j.DeepCopy()
	change(&j.Status)
	if j.Status.Failed > failed && !finished(j) { // the time of it comes first: a crash in between costs a delay
		status := j.Status
		meta := j.DeepCopy()
		meta.Status = before.Status
		metav1.SetMetaDataAnnotation(&meta.ObjectMeta, failedAnnotation, r.Clock.Now().Format(time.RFC3339Nano))
		if err := r.Client.Patch(ctx, meta, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("builder: Job %s: %w", j.Name, err)
		}
		*j = *meta
		before = j.DeepCopy()
		j.Status = status
	}
	if err := r.Client.Status().Patch(ctx, j, patch.IfUnchanged(before)); err != nil {
		return fmt.Errorf("builder: status of Job %s: %w", j.Name, err)
	}
	return nil
}

// succeed makes a status that of a Job that is complete (Kubernetes, "Terminal Job conditions").
func (r *Reconciler) succeed(s *batchv1.JobStatus) {
	now := metav1.NewTime(r.Clock.Now())
	s.Active, s.Ready, s.Terminating, s.Succeeded, s.CompletionTime = 0, ptr.To(int32(0)), ptr.To(int32(0)), 1, &now
	s.UncountedTerminatedPods = nil
	for _, conditionType := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		s.Conditions = append(s.Conditions, batchv1.JobCondition{
			Type: conditionType, Status: corev1.ConditionTrue, Reason: "CompletionsReached", Message: "Reached expected number of succeeded pods", LastProbeTime: now, LastTransitionTime: now,
		})
	}
}

// fail counts a failed attempt. The last one, and one that every other would repeat, is the
// failure of the Job.
func (r *Reconciler) fail(s *batchv1.JobStatus, j *batchv1.Job, cause error) {
	now := metav1.NewTime(r.Clock.Now())
	s.Active, s.Ready, s.Terminating, s.Failed = 0, ptr.To(int32(0)), ptr.To(int32(0)), s.Failed+1
	reason := batchv1.JobReasonBackoffLimitExceeded
	if permanent := new(osimage.PermanentError); errors.As(cause, &permanent) {
		reason = batchv1.JobReasonPodFailurePolicy
	} else if s.Failed <= ptr.Deref(j.Spec.BackoffLimit, build.BackoffLimit) {
		return
	}
	for _, conditionType := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		s.Conditions = append(s.Conditions, batchv1.JobCondition{
			Type: conditionType, Status: corev1.ConditionTrue, Reason: reason, Message: clip(cause.Error(), maxMessage), LastProbeTime: now, LastTransitionTime: now,
		})
	}
}

// maxMessage is how many bytes of a cause a condition has. The log has all.
const maxMessage = 1024

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// attempt builds and pushes the image of a Job and stores its digest, unless an earlier attempt
// has.
func (r *Reconciler) attempt(ctx context.Context, j *batchv1.Job, log *buildLog) error {
	in, err := r.read(ctx, j)
	if err != nil {
		return err
	}
	if in.done {
		return nil
	}
	pull := registry.Access{Config: in.pull, CAs: in.bundle}
	img, err := osimage.Build(ctx, osimage.Input{
		Containerfile: in.containerfile, Config: in.config, Context: map[string][]byte{osimage.ContextConfig: in.encoded},
		Pull: func(ctx context.Context, ref string) (v1.Image, error) { return pull.Pull(ctx, ref) },
		HTTP: httpClient(in.bundle), Log: log,
	})
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	_, _ = fmt.Fprintf(log, "PUSH %s %s\n", in.tag, digest) // it writes to memory
	push := registry.Access{Config: in.push, CAs: in.bundle}
	if err := push.Push(ctx, in.tag, img); err != nil {
		return err
	}
	return r.storeDigest(ctx, j, in.digestName, digest.String())
}

// httpClient returns the client of ADD.
func httpClient(bundle []byte) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	if len(bundle) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM(bundle)
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t}
}
