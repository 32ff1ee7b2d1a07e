package clusterapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/guest/node"
)

func (k *Core) setupMachines() error {
	ofInfra := enqueue(func(ctx context.Context, m *elementalv1.ElementalMachine) (out []client.ObjectKey) {
		var list capi.MachineList
		if err := k.client.List(ctx, &list, client.InNamespace(m.Namespace)); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "machines are not listed")
		}
		for i := range list.Items {
			if list.Items[i].Spec.InfrastructureRef.Name == m.Name {
				out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
			}
		}
		return append(out, owned(m, "Machine")...)
	})
	ofCluster := enqueue(func(ctx context.Context, c *capi.Cluster) (out []client.ObjectKey) {
		var list capi.MachineList
		if err := k.client.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "machines are not listed")
		}
		for i := range list.Items {
			if list.Items[i].Spec.ClusterName == c.Name {
				out = append(out, client.ObjectKeyFromObject(&list.Items[i]))
			}
		}
		return out
	})
	return ctrl.NewControllerManagedBy(k.manager).
		Named("clusterapi-machine").
		For(&capi.Machine{}).
		Watches(&elementalv1.ElementalMachine{}, ofInfra).
		Watches(&capi.Cluster{}, ofCluster).
		WithOptions(k.Options()).
		Complete(reconciler(k.Enter, k.client, k.machine))
}

// reconciler returns a reconciler that reads the object first.
func reconciler[T any, O interface {
	*T
	client.Object
}](enter func() func(), c client.Reader, reconcileOnce func(context.Context, O) error) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		return queue.Reconcile(enter, func() error {
			o := O(new(T))
			if err := c.Get(ctx, req.NamespacedName, o); err != nil {
				return queue.Deleted(err)
			}
			return reconcileOnce(ctx, o)
		})
	})
}

// machineInfrastructure returns the infrastructure of a Machine, nil when there is none.
func (k *Core) machineInfrastructure(ctx context.Context, m *capi.Machine) (*elementalv1.ElementalMachine, error) {
	out := new(elementalv1.ElementalMachine)
	err := k.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.InfrastructureRef.Name}, out)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return out, nil
}

// machine reconciles a Machine.
func (k *Core) machine(ctx context.Context, m *capi.Machine) error {
	infra, err := k.machineInfrastructure(ctx, m)
	if err != nil {
		return err
	}
	before := m.DeepCopy()
	if !m.DeletionTimestamp.IsZero() {
		return k.removeMachine(ctx, before, m, infra)
	}
	var c capi.Cluster
	err = k.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}, &c)
	if apierrors.IsNotFound(err) {
		return nil // its event follows
	}
	if err != nil || c.Spec.Paused {
		return err
	}
	controllerutil.AddFinalizer(m, capi.MachineFinalizer)
	metav1.SetMetaDataLabel(&m.ObjectMeta, capi.ClusterNameLabel, c.Name)
	if len(owned(m, "Cluster")) == 0 {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: capi.GroupVersion.String(), Kind: "Cluster", Name: c.Name, UID: c.UID})
	}
	if infra != nil {
		if err := k.adopt(ctx, infra, m, c.Name, "Machine"); err != nil {
			return err
		}
	}
	if m.Spec.Bootstrap.DataSecretName == nil && m.Spec.Bootstrap.ConfigRef == nil && c.Status.InfrastructureReady {
		name, err := k.bootstrapSecret(ctx, m)
		if err != nil {
			return fmt.Errorf("bootstrap data: %w", err)
		}
		m.Spec.Bootstrap.DataSecretName = &name
	}
	now := k.Wall.Now()
	m.Status.BootstrapReady = m.Spec.Bootstrap.DataSecretName != nil
	condition.Set(m, holds(capi.BootstrapReadyCondition, m.Status.BootstrapReady, capi.WaitingForDataSecretFallbackReason), now)
	if infra != nil && infra.Status.Ready && infra.Spec.ProviderID != nil {
		m.Spec.ProviderID, m.Status.InfrastructureReady = infra.Spec.ProviderID, true
		if err := k.findNode(ctx, m, infra); err != nil {
			return err
		}
	}
	condition.Set(m, holds(capi.InfrastructureReadyCondition, m.Status.InfrastructureReady, capi.WaitingForInfrastructureFallbackReason), now)
	m.Status.SetTypedPhase(phaseOfMachine(m))
	return object.Patch(ctx, k.live, before, m)
}

func phaseOfMachine(m *capi.Machine) capi.MachinePhase {
	switch {
	case m.Status.NodeRef != nil:
		return capi.MachinePhaseRunning
	case m.Status.InfrastructureReady:
		return capi.MachinePhaseProvisioned
	case m.Status.BootstrapReady:
		return capi.MachinePhaseProvisioning
	}
	return capi.MachinePhasePending
}

// findNode sets the Node of a Machine: infrastructure is ready once its Node has the provider ID.
func (k *Core) findNode(ctx context.Context, m *capi.Machine, infra *elementalv1.ElementalMachine) error {
	if m.Status.NodeRef != nil || infra.Spec.HostRef == nil {
		return nil
	}
	var n corev1.Node
	err := k.live.Get(ctx, client.ObjectKey{Name: infra.Spec.HostRef.Name}, &n)
	if err == nil && n.Spec.ProviderID == *infra.Spec.ProviderID {
		m.Status.NodeRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
	}
	return client.IgnoreNotFound(err)
}

// removeMachine deletes the infrastructure of a Machine, then its Node, then lets it go.
func (k *Core) removeMachine(ctx context.Context, before, m *capi.Machine, infra *elementalv1.ElementalMachine) error {
	if infra != nil {
		if err := k.remove(ctx, infra); err != nil {
			return err
		}
		m.Status.SetTypedPhase(capi.MachinePhaseDeleting)
		return object.Patch(ctx, k.live, before, m)
	}
	if err := k.removeNode(ctx, m); err != nil {
		return err
	}
	if err := k.live.Delete(ctx, accountOf(m)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("account: %w", err)
	}
	controllerutil.RemoveFinalizer(m, capi.MachineFinalizer)
	return object.Patch(ctx, k.live, before, m)
}

// removeNode deletes the Node of a Machine: the one that its status refers to, or one that has registered
// after the last look at the infrastructure, which is known by its account: left behind, it would refuse
// the next Machine's. A Node that another account has registered stays, whatever the status says: others
// than this controller may write that. So does one of a kubelet that has no provider ID of the namespace:
// the infrastructure gives a Node that of its own host alone.
func (k *Core) removeNode(ctx context.Context, m *capi.Machine) error {
	var list corev1.NodeList
	if err := k.live.List(ctx, &list); err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	account := accountOf(m)
	user := nodeaccount.User(account.Namespace, account.Name)
	for i := range list.Items {
		n := &list.Items[i]
		ref, told := m.Status.NodeRef, n.Annotations[nodeaccount.Annotation]
		if told != user && (told != "" || ref == nil || ref.Name != n.Name || ref.UID != n.UID || !strings.HasPrefix(n.Spec.ProviderID, "elemental://"+m.Namespace+"/")) {
			continue
		}
		if err := k.live.Delete(ctx, n, client.Preconditions{UID: &n.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

const (
	// sentinel tells the agent of a server that it has bootstrapped (Cluster API, bootstrap
	// contract).
	sentinel = "/run/cluster-api/bootstrap-success.complete"

	agentDir = "/etc/lab-agent/"

	// tokenLifetime is that of a node agent's token, in real time.
	tokenLifetime = 30 * 24 * time.Hour
)

// accountOf is the account of the node agent on a Machine's server.
func accountOf(m *capi.Machine) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: nodeaccount.Machines, Name: nodeaccount.OfMachine(m.Namespace, m.Name)}}
}

// bootstrapSecret makes the Secret that a Machine's server bootstraps from, and returns its name.
func (k *Core) bootstrapSecret(ctx context.Context, m *capi.Machine) (string, error) {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name + "-bootstrap", Labels: map[string]string{capi.ClusterNameLabel: m.Spec.ClusterName},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, capi.GroupVersion.WithKind("Machine"))},
		},
		Type: capi.ClusterSecretType,
	}
	err := k.live.Get(ctx, client.ObjectKeyFromObject(s), s)
	if !apierrors.IsNotFound(err) {
		return s.Name, err
	}
	account := accountOf(m)
	if err := k.live.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime / time.Second))}}
	if err := k.live.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	text, err := cloudConfig(k.API, request.Status.Token)
	if err != nil {
		return "", err
	}
	s.Data = map[string][]byte{"format": []byte("cloud-config"), "value": text}
	return s.Name, k.live.Create(ctx, s)
}

// cloudConfig returns a cloud-config that makes a server a Node of an API.
func cloudConfig(api *rest.Config, token string) ([]byte, error) {
	api = rest.CopyConfig(api)
	if err := rest.LoadTLSFiles(api); err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(api)
	if err != nil {
		return nil, err
	}
	settings, err := yaml.Marshal(map[string]string{"server": server.String(), "caFile": agentDir + "ca.crt", "tokenFile": agentDir + "token"})
	if err != nil {
		return nil, err
	}
	type file struct {
		Path        string `json:"path"`
		Content     string `json:"content"`
		Permissions string `json:"permissions"`
	}
	text, err := yaml.Marshal(map[string]any{
		"write_files": []file{
			{node.ConfigFile, string(settings), "0644"}, {agentDir + "ca.crt", string(api.CAData), "0644"}, {agentDir + "token", token, "0600"},
			{"/etc/systemd/system/lab-agent-node.service", node.Unit, "0644"},
			{sentinel, "success\n", "0644"},
		},
		"runcmd": []string{"systemctl enable --now lab-agent-node"},
	})
	return slices.Concat([]byte("#cloud-config\n"), text), err
}
