package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/osimage"
	access "github.com/metalab-dev/metalab/controller/machineconfig/registry"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/scenarios/registry"
)

const (
	// registryDir has the images of the lab's registry, in the state directory.
	registryDir = "registry"
	// baseRepository is the repository of the base image.
	baseRepository = "lab/os"
	// PushSecret is the Secret of the lab's registry that pushes, in the namespace of builds.
	PushSecret = "lab-registry-push"
	// PullSecret is the one that pulls.
	PullSecret = "lab-registry-pull"
)

// servesMachineConfig reports whether the lab has a registry, a base image and a builder of its
// own. A cluster of the user's has those.
func (l *Lab) servesMachineConfig() bool {
	s := l.cfg.Settings
	return s.Kube && s.Kubeconfig == "" && slices.Contains(s.Families(), config.MachineConfig)
}

// startMachineConfig serves the registry, pushes the base image, and creates what an operator
// creates in a cluster: the ControllerConfig, the pools of the roles and their first
// MachineConfigs.
func (l *Lab) startMachineConfig(ctx context.Context) error {
	if !l.servesMachineConfig() {
		return nil
	}
	l.cfg.Progress("the registry of OS images")
	s, err := registry.New(registry.Config{Dir: filepath.Join(l.cfg.Dir, registryDir), Log: l.cfg.Log, Enter: l.clock.Enter})
	if err != nil {
		return err
	}
	listener, err := listenWhereBefore(ctx, l.ports.Registry, l.cfg.Log)
	if err != nil {
		return fmt.Errorf("the registry: %w", err)
	}
	l.registry, l.ports.Registry = s, listener.Addr().String()
	l.serve(listener, s)
	base, err := l.pushBase(ctx)
	if err != nil {
		return fmt.Errorf("the base image: %w", err)
	}
	c, err := l.Kubernetes()
	if err != nil {
		return err
	}
	if err := l.createMachineConfig(ctx, c, base); err != nil {
		return fmt.Errorf("machine configuration: %w", err)
	}
	return nil
}

// Registry returns the lab's registry of OS images, nil in a lab without one, and its address.
func (l *Lab) Registry() (*registry.Server, string) { return l.registry, l.ports.Registry }

// pushBase pushes the base image of the lab's systems, and returns its pullspec by digest.
func (l *Lab) pushBase(ctx context.Context) (string, error) {
	layer, err := debian.Base(debian.Bookworm).Encode()
	if err != nil {
		return "", err
	}
	img, err := osimage.Base(layer, runtime.GOARCH, map[string]string{"org.opencontainers.image.title": "metalab"})
	if err != nil {
		return "", err
	}
	digest, err := img.Digest()
	if err != nil {
		return "", err
	}
	repository := l.ports.Registry + "/" + baseRepository
	a := access.Access{Config: l.registry.DockerConfig(registry.Pusher, l.ports.Registry)}
	return repository + "@" + digest.String(), a.Push(ctx, repository+":base", img)
}

// createMachineConfig creates the objects of an operator. Those of the lab's registry are
// written again: its address may be another one. Others are the user's once they exist.
func (l *Lab) createMachineConfig(ctx context.Context, c client.Client, base string) error {
	secret := func(name, account string) *corev1.Secret {
		return &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: machineconfig.Namespace, Name: name},
			Type:       corev1.SecretTypeDockerConfigJson,
			Data:       map[string][]byte{corev1.DockerConfigJsonKey: l.registry.DockerConfig(account, l.ports.Registry)},
		}
	}
	ca, err := os.ReadFile(l.rack.CAFile())
	if err != nil {
		return err
	}
	for _, o := range []client.Object{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: machineconfig.Namespace}},
		secret(PushSecret, registry.Pusher), secret(PullSecret, registry.Puller),
		&mcv1.ControllerConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: mcv1.GroupVersion.String(), Kind: "ControllerConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: machineconfig.ControllerConfigName, Annotations: map[string]string{machineconfig.GeneratedByVersion: machineconfig.ControllerVersion}},
			Spec: mcv1.ControllerConfigSpec{
				// The definition refuses null and "" for these.
				KubeAPIServerServingCAData: ca, RootCAData: ca,
				ImageRegistryBundleData: []mcv1.ImageRegistryBundle{}, ImageRegistryBundleUserData: []mcv1.ImageRegistryBundle{},
				BaseOSContainerImage: base, Images: map[string]string{}, IPFamilies: mcv1.IPFamiliesIPv4,
				PullSecret:                 &corev1.ObjectReference{Namespace: machineconfig.Namespace, Name: PullSecret},
				InternalRegistryPullSecret: l.registry.DockerConfig(registry.Puller, l.ports.Registry),
			},
		},
	} {
		if err := c.Patch(ctx, o, client.Apply, client.FieldOwner("metalab"), client.ForceOwnership); err != nil { //nolint:staticcheck // Client.Apply takes no objects
			return err
		}
	}
	var errs []error
	for _, o := range firstObjects() {
		if err := c.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// firstObjects returns the pools of the roles, with a MachineConfig each, and the
// MachineConfiguration.
func firstObjects() []client.Object {
	// As the Go type, it would have empty fields that the definition refuses.
	configuration := new(unstructured.Unstructured)
	configuration.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("MachineConfiguration"))
	configuration.SetName(machineconfig.ConfigurationName)
	configuration.Object["spec"] = map[string]any{"managementState": string(operatorv1.Managed)}
	out := []client.Object{configuration}
	for _, role := range []string{machineconfig.ControlPlanePool, machineconfig.WorkerPool} {
		labels := map[string]string{mcv1.MachineConfigRoleLabelKey: role}
		out = append(out,
			&mcv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
				Name: "00-" + role, Labels: labels, Annotations: map[string]string{machineconfig.GeneratedByVersion: machineconfig.ControllerVersion},
			}},
			&mcv1.MachineConfigPool{
				ObjectMeta: metav1.ObjectMeta{Name: role},
				Spec: mcv1.MachineConfigPoolSpec{
					MachineConfigSelector: &metav1.LabelSelector{MatchLabels: labels},
					NodeSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + role: ""}},
				},
			},
		)
	}
	return out
}
