package machineconfig

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/controller/machineconfig"
)

const (
	nodesPath    = "/api/v1/nodes"
	configsPath  = "/apis/machineconfiguration.openshift.io/v1"
	operatorPath = "/apis/operator.openshift.io/v1"
	mergePatch   = "application/merge-patch+json"
)

// maxReason is how many characters the annotation reason has.
const maxReason = 2000

// postConfigAction is the annotation that names the action after all files are written.
const postConfigAction = "machineconfiguration.openshift.io/post-config-action"

// node returns the daemon's Node.
func (d *daemon) node(ctx context.Context) (*corev1.Node, error) {
	n := &corev1.Node{}
	return n, d.api.Call(ctx, http.MethodGet, nodesPath+"/"+url.PathEscape(d.Node), "", nil, n)
}

// annotate changes annotations of the Node in one patch, unless they are so; "" removes one.
func (d *daemon) annotate(ctx context.Context, n *corev1.Node, values map[string]string) error {
	patch := map[string]any{}
	for name, value := range values {
		current, ok := n.Annotations[name]
		switch {
		case value == "" && ok && name != machineconfig.Reason:
			patch[name] = nil
		case value != current:
			patch[name] = value
		}
	}
	if len(patch) == 0 {
		return nil
	}
	doc := map[string]any{"metadata": map[string]any{"annotations": patch}}
	got := &corev1.Node{}
	if err := d.api.Call(ctx, http.MethodPatch, nodesPath+"/"+url.PathEscape(d.Node), mergePatch, doc, got); err != nil {
		return fmt.Errorf("annotations of Node %s: %w", d.Node, err)
	}
	n.Annotations = got.Annotations
	return nil
}

// working reports that an update has begun, with other annotations in the same patch. A node
// that has failed stays so until it is done.
func (d *daemon) working(ctx context.Context, n *corev1.Node, more map[string]string) error {
	values := maps.Clone(more)
	if values == nil {
		values = map[string]string{}
	}
	if s := n.Annotations[machineconfig.State]; s != machineconfig.Degraded && s != machineconfig.Unreconcilable {
		values[machineconfig.State] = machineconfig.Working
	}
	return d.annotate(ctx, n, values)
}

// failed reports the reason why the node does not get its configuration.
func (d *daemon) failed(ctx context.Context, n *corev1.Node, state string, reason error) error {
	text := reason.Error()
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	if err := d.annotate(ctx, n, map[string]string{machineconfig.State: state, machineconfig.Reason: text}); err != nil {
		return err
	}
	return d.progress(ctx, n, fact{mcv1.MachineConfigNodeNodeDegraded, true, state, text})
}

// fact is a condition of the MachineConfigNode.
type fact struct {
	condition mcv1.StateProgress
	holds     bool
	reason    string
	message   string
}

func yes(condition mcv1.StateProgress, message string) fact {
	return fact{condition, true, string(condition), message}
}
func no(condition mcv1.StateProgress) fact {
	return fact{condition, false, "Not" + string(condition), "this has not happened in the present update"}
}

// steps are the conditions of an update in the order in which they become true.
var steps = []mcv1.StateProgress{
	mcv1.MachineConfigNodeUpdatePrepared, mcv1.MachineConfigNodeUpdateCordoned, mcv1.MachineConfigNodeUpdateDrained,
	mcv1.MachineConfigNodeImagePulledFromRegistry, mcv1.MachineConfigNodeUpdateFiles, mcv1.MachineConfigNodeUpdateOS, mcv1.MachineConfigNodeUpdateFilesAndOS,
	mcv1.MachineConfigNodeUpdateExecuted, mcv1.MachineConfigNodeUpdateRebooted, mcv1.MachineConfigNodeUpdatePostActionComplete,
	mcv1.MachineConfigNodeUpdateUncordoned, mcv1.MachineConfigNodeResumed, mcv1.MachineConfigNodeUpdateComplete, mcv1.MachineConfigNodeUpdated,
}

// progress sets conditions of the node's MachineConfigNode in one patch. A node without one has
// no pool yet.
func (d *daemon) progress(ctx context.Context, n *corev1.Node, facts ...fact) error {
	return d.progressOf(ctx, n, nil, facts...)
}

// progressOf does the same, and sets the sections that the node cannot apply, unless unapplied is
// nil.
func (d *daemon) progressOf(ctx context.Context, n *corev1.Node, unapplied *[]mcv1.IrreconcilableChangeDiff, facts ...fact) error {
	uri := configsPath + "/machineconfignodes/" + url.PathEscape(d.Node)
	m := &mcv1.MachineConfigNode{}
	err := d.api.Call(ctx, http.MethodGet, uri, "", nil, m)
	if kubeapi.HasStatus(err, http.StatusNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("MachineConfigNode %s: %w", d.Node, err)
	}
	conditions := slices.Clone(m.Status.Conditions)
	now := metav1.NewTime(d.Clock.Now())
	for _, f := range facts {
		c := metav1.Condition{Type: string(f.condition), Status: metav1.ConditionFalse, Reason: f.reason, Message: f.message, LastTransitionTime: now}
		if f.holds {
			c.Status = metav1.ConditionTrue
		}
		i := slices.IndexFunc(conditions, func(o metav1.Condition) bool { return o.Type == c.Type })
		if i < 0 {
			conditions = append(conditions, c)
			continue
		}
		if conditions[i].Status == c.Status {
			c.LastTransitionTime = conditions[i].LastTransitionTime
		}
		conditions[i] = c
	}
	next := *m.Status.DeepCopy()
	next.Conditions, next.ObservedGeneration = conditions, m.Generation
	next.ConfigVersion = nil
	if desired := n.Annotations[machineconfig.DesiredConfig]; desired != "" {
		next.ConfigVersion = &mcv1.MachineConfigNodeStatusMachineConfigVersion{Current: n.Annotations[machineconfig.CurrentConfig], Desired: desired}
	}
	next.ConfigImage = mcv1.MachineConfigNodeStatusConfigImage{
		CurrentImage: mcv1.ImageDigestFormat(n.Annotations[machineconfig.CurrentImage]), DesiredImage: mcv1.ImageDigestFormat(n.Annotations[machineconfig.DesiredOSImage]),
	}
	if unapplied != nil {
		next.IrreconcilableChanges = *unapplied
	}
	if reflect.DeepEqual(m.Status, next) {
		return nil
	}
	status := map[string]any{"conditions": next.Conditions, "observedGeneration": next.ObservedGeneration, "configImage": images(next.ConfigImage)}
	if v := next.ConfigVersion; v != nil {
		status["configVersion"] = map[string]any{"current": orNull(v.Current), "desired": v.Desired}
	}
	if !reflect.DeepEqual(m.Status.IrreconcilableChanges, next.IrreconcilableChanges) {
		status["irreconcilableChanges"] = next.IrreconcilableChanges // null when there are none any more
	}
	err = d.api.Call(ctx, http.MethodPatch, uri+"/status", mergePatch, map[string]any{"status": status}, &mcv1.MachineConfigNode{})
	if err != nil && !kubeapi.HasStatus(err, http.StatusNotFound) {
		return fmt.Errorf("MachineConfigNode %s: %w", d.Node, err)
	}
	return nil
}

// images returns the images of a status for a merge patch.
func images(i mcv1.MachineConfigNodeStatusConfigImage) any {
	if i.CurrentImage == "" && i.DesiredImage == "" {
		return nil
	}
	return map[string]any{"currentImage": orNull(i.CurrentImage), "desiredImage": orNull(i.DesiredImage)}
}

// orNull returns a text for a merge patch, where null removes a field: the definition of
// MachineConfigNode refuses "".
func orNull[T ~string](text T) any {
	if text == "" {
		return nil
	}
	return text
}

// event publishes an event about the Node. It is lost when the API refuses it.
func (d *daemon) event(ctx context.Context, n *corev1.Node, reason, message string) {
	now := metav1.NewTime(d.Clock.Now())
	e := corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{GenerateName: d.Node + "-", Namespace: metav1.NamespaceDefault}, // events of cluster-scoped objects are there
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: d.Node, UID: n.UID},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "machineconfigdaemon", Host: d.Node},
	}
	if err := d.api.Call(ctx, http.MethodPost, "/api/v1/namespaces/"+metav1.NamespaceDefault+"/events", "application/json", e, &corev1.Event{}); err != nil {
		d.Log.Warn("an event is lost", "reason", reason, "error", err)
	}
}
