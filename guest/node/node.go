package node

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
)

// agent is a running agent.
type agent struct {
	Config
	facts   Facts
	name    string
	account string               // user of the token; "" is unknown
	api     kubernetes.Interface // nil: the account is read again

	renewed  time.Time
	podsSeen bool   // since the last change
	lastText string // text of the error that was logged last
}

// Run registers the node and serves it until ctx ends, and then returns nil. It returns an
// error for an invalid Config and for a host name that cannot be a Node's; all other errors
// are logged and retried.
func Run(ctx context.Context, c Config) (err error) {
	if err := c.complete(); err != nil {
		return err
	}
	a := &agent{Config: c}
	if a.facts, err = c.Facts(ctx); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	if a.name, err = nodeName(a.facts.Hostname); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	changed := make(chan struct{}, 1)
	stopWatch := func() {}
	defer func() { stopWatch() }()
	watching := false
	for {
		leave := a.Enter()
		wait, err := a.step(ctx)
		if err != nil && ctx.Err() == nil {
			a.report(err)
			wait, a.renewed = retry, time.Time{}
			if apierrors.IsUnauthorized(err) || errors.As(err, new(x509.UnknownAuthorityError)) { // the token or the CA was replaced
				stopWatch()
				a.api, watching = nil, false
			}
		} else if err == nil {
			a.lastText = ""
			if !watching {
				watching, stopWatch = true, a.startWatch(ctx, changed)
			}
		}
		timer := a.Clock.NewTimer(wait)
		leave()
		select {
		case <-ctx.Done():
			timer.Stop()
			a.leave()
			return nil
		case <-timer.C():
		case <-changed:
			timer.Stop()
			a.podsSeen = false
		}
	}
}

// leave reports that the node shuts down, as far as the API answers at once.
func (a *agent) leave() {
	defer a.Enter()()
	if a.api == nil || a.Lost() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	err := a.writeReady(ctx, corev1.ConditionFalse, "NodeShutdown", "the node agent was stopped: the server shuts down, or its unit does")
	if err != nil && !apierrors.IsNotFound(err) {
		a.report(fmt.Errorf("node: the shutdown is not reported: %w", err))
	}
}

// report logs an error that differs from the last one.
func (a *agent) report(err error) {
	if text := err.Error(); text != a.lastText {
		a.lastText = text
		a.Log.Error("the node agent tries again", "error", err)
	}
}

// connect reads the account and returns a client.
func (a *agent) connect() error {
	ca, err := a.Files.ReadFile(a.CAFile)
	if err != nil {
		return fmt.Errorf("node: caFile: %w", err)
	}
	token, err := a.Files.ReadFile(a.TokenFile)
	if err != nil {
		return fmt.Errorf("node: tokenFile: %w", err)
	}
	a.account = accountOf(string(token))
	a.api, err = kubernetes.NewForConfig(&rest.Config{
		Host: a.Server, BearerToken: strings.TrimSpace(string(token)), TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		QPS: -1, UserAgent: "lab-agent-node",
	})
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

// step renews the lease and the status when they are due, serves the pods, and returns the
// time until the next renewal.
func (a *agent) step(ctx context.Context) (time.Duration, error) {
	if a.api == nil {
		if err := a.connect(); err != nil {
			return 0, err
		}
	}
	if since := a.Clock.Now().Sub(a.renewed); since >= renewal || since < 0 {
		// The node may have been deleted, or marked as lost while the API did not answer.
		n, err := a.register(ctx)
		if err != nil {
			return 0, fmt.Errorf("node: register %s: %w", a.name, err)
		}
		if err := a.renew(ctx, n); err != nil {
			return 0, fmt.Errorf("node: lease %s: %w", a.name, err)
		}
		a.renewed = a.Clock.Now()
	}
	if !a.podsSeen {
		if err := a.servePods(ctx); err != nil {
			return 0, err
		}
		a.podsSeen = true
	}
	return max(renewal-a.Clock.Now().Sub(a.renewed), time.Second), nil
}

// AgentAnnotation of a Node is the user that its agent has registered it as. The API of a lab lets
// an account that is not named as the Node write it only with this annotation; see
// controller/config/nodes.
const AgentAnnotation = nodeaccount.Annotation

// accountOf returns the user that a service account's token is for, "" for another token. The
// token is not verified: the API does that.
func accountOf(token string) string {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(b, &claims) != nil {
		return ""
	}
	return claims.Subject
}

// register creates the Node and writes its status, unless they are right.
func (a *agent) register(ctx context.Context) (*corev1.Node, error) {
	n, err := a.api.CoreV1().Nodes().Get(ctx, a.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		meta := metav1.ObjectMeta{Name: a.name, Labels: map[string]string{
			corev1.LabelHostname: a.name, corev1.LabelOSStable: a.facts.OSTag, corev1.LabelArchStable: architectures[a.facts.Arch],
		}}
		if a.account != "" {
			meta.Annotations = map[string]string{AgentAnnotation: a.account}
		}
		n, err = a.api.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: meta}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	if err := a.patchStatus(ctx, n, a.status()); err != nil {
		return nil, err
	}
	return n, a.setReady(ctx, n, corev1.ConditionTrue, "LabAgentReady", "the node agent of the lab runs: pods are reported as Running, and no container runs")
}

// architectures are the names that Kubernetes has for uname's.
var architectures = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// maxPods is the kubelets' default.
const maxPods = 110

// status returns the status of the node, without conditions.
func (a *agent) status() corev1.NodeStatus {
	f := a.facts
	resources := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(f.CPUs, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(f.MemoryBytes, resource.BinarySI),
		corev1.ResourcePods: *resource.NewQuantity(maxPods, resource.DecimalSI),
	}
	s := corev1.NodeStatus{
		Capacity: resources, Allocatable: resources,
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: f.MachineID, SystemUUID: strings.ToLower(f.UUID), BootID: f.BootID, KernelVersion: f.KernelVersion, OSImage: f.OSImage,
			ContainerRuntimeVersion: "none://", KubeletVersion: "lab-agent " + f.Version, OperatingSystem: f.OSTag, Architecture: architectures[f.Arch],
		},
	}
	for _, at := range f.Addresses {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: at.String()})
	}
	s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: a.name})
	return s
}

// patchStatus writes the status but for the conditions, if it differs.
func (a *agent) patchStatus(ctx context.Context, n *corev1.Node, s corev1.NodeStatus) error {
	current := n.Status
	if equality.Semantic.DeepEqual(current.Capacity, s.Capacity) && equality.Semantic.DeepEqual(current.Addresses, s.Addresses) && current.NodeInfo == s.NodeInfo {
		return nil
	}
	// A merge patch replaces lists: a strategic one would merge addresses by type.
	b, err := json.Marshal(map[string]any{"status": map[string]any{
		"capacity": s.Capacity, "allocatable": s.Allocatable, "addresses": s.Addresses, "nodeInfo": s.NodeInfo,
	}})
	if err != nil {
		return err
	}
	_, err = a.api.CoreV1().Nodes().Patch(ctx, a.name, types.MergePatchType, b, metav1.PatchOptions{}, "status")
	return err
}

// writeReady writes the condition Ready of a node that was read earlier.
func (a *agent) writeReady(ctx context.Context, status corev1.ConditionStatus, reason, message string) error {
	n, err := a.api.CoreV1().Nodes().Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return a.setReady(ctx, n, status, reason, message)
}

// setReady writes the condition Ready, if it differs.
func (a *agent) setReady(ctx context.Context, n *corev1.Node, status corev1.ConditionStatus, reason, message string) error {
	now := metav1.NewTime(a.Clock.Now())
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	for _, current := range n.Status.Conditions {
		if current.Type == c.Type && current.Status == status && current.Reason == reason {
			return nil
		}
	}
	return patchCondition(ctx, a.api, n.Name, c)
}

// patchCondition writes a condition of a node, and no other.
func patchCondition(ctx context.Context, api kubernetes.Interface, node string, c corev1.NodeCondition) error {
	b, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{c}}})
	if err != nil {
		return err
	}
	_, err = api.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, b, metav1.PatchOptions{}, "status")
	return err
}

// renew renews the node's Lease, which the lifecycle of nodes watches.
func (a *agent) renew(ctx context.Context, n *corev1.Node) error {
	leases := a.api.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(a.Clock.Now())
	l, err := leases.Get(ctx, a.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: a.name}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(a.name), LeaseDurationSeconds: ptr.To(int32(LeaseDuration.Seconds())), RenewTime: &now,
		}}
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}
		_, err = leases.Create(ctx, l, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	}
	l.Spec.RenewTime = &now
	_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
	return err
}
