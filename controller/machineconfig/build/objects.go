package build

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/ignition"
	"github.com/metalab-dev/metalab/controller/machineconfig/osimage"
)

// Prefixes of the names of a build's objects; the name of the MachineOSBuild follows.
const (
	JobPrefix           = "build-"
	ContainerfilePrefix = "containerfile-"
	ConfigPrefix        = "mc-"
	TrustBundlePrefix   = "additionaltrustbundle-"
	PolicyPrefix        = "etc-policy-"
	RegistriesPrefix    = "etc-registries-"
	PullSecretPrefix    = "base-"
	PushSecretPrefix    = "final-"
)

// Keys of the data of a build's ConfigMaps.
const (
	ContainerfileKey = "Containerfile"
	ConfigKey        = "machineconfig.json.gz"
	TrustBundleKey   = "openshift-config-user-ca-bundle.crt"
	PolicyKey        = "policy.json"
	RegistriesKey    = "registries.conf"
)

// Names of environment variables of a build's Job.
const (
	EnvTag    = "TAG"
	EnvDigest = "DIGEST_CONFIGMAP_NAME"
	EnvConfig = "MACHINECONFIG"
)

// serviceAccount is the account of the Job's pods.
const serviceAccount = "machine-os-builder"

// parts are the inputs of a build's objects.
type parts struct {
	build      *mcv1.MachineOSBuild
	config     *mcv1.MachineConfig
	osConfig   *mcv1.MachineOSConfig
	controller *mcv1.ControllerConfig
	pull, push *corev1.Secret
}

// containerfile returns the Containerfile of a build.
func (p parts) containerfile() string {
	return osimage.Recipe{
		Base: p.config.Spec.OSImageURL, Config: p.config.Name, Pool: p.osConfig.Spec.MachineConfigPool.Name, Content: content(p.osConfig),
	}.Containerfile()
}

func (p parts) meta(prefix string) metav1.ObjectMeta {
	labels := map[string]string{machineconfig.LayeringLabel: "", machineconfig.EphemeralLabel: "", machineconfig.OSBuildLabel: p.build.Name}
	for k, v := range labelsOf(p.osConfig, p.config.Name) {
		labels[k] = v
	}
	return metav1.ObjectMeta{
		Namespace: machineconfig.Namespace, Name: prefix + p.build.Name, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.build, mcv1.GroupVersion.WithKind("MachineOSBuild"))},
	}
}

// labelsOf returns the labels of all objects of a build.
func labelsOf(c *mcv1.MachineOSConfig, config string) map[string]string {
	return map[string]string{
		machineconfig.TargetPoolLabel: c.Spec.MachineConfigPool.Name, machineconfig.RenderedConfigLabel: config, machineconfig.OSConfigLabel: c.Name,
	}
}

// objects returns the objects of a build in the order of their creation: the Job is the last.
func (p parts) objects() ([]client.Object, error) {
	config, err := encode(p.config)
	if err != nil {
		return nil, err
	}
	data := func(prefix, key, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: p.meta(prefix), Data: map[string]string{key: value}}
	}
	secret := func(prefix string, from *corev1.Secret) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: p.meta(prefix), Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: from.Data[corev1.DockerConfigJsonKey]}}
	}
	policy, err := p.file("/etc/containers/policy.json")
	if err != nil {
		return nil, err
	}
	registries, err := p.file("/etc/containers/registries.conf")
	if err != nil {
		return nil, err
	}
	return []client.Object{
		data(ContainerfilePrefix, ContainerfileKey, p.containerfile()),
		data(ConfigPrefix, ConfigKey, config),
		data(TrustBundlePrefix, TrustBundleKey, p.bundle()),
		data(PolicyPrefix, PolicyKey, policy),
		data(RegistriesPrefix, RegistriesKey, registries),
		secret(PullSecretPrefix, p.pull),
		secret(PushSecretPrefix, p.push),
		p.job(),
	}, nil
}

// bundle returns the certificates that a build trusts, as PEM.
func (p parts) bundle() string {
	var b strings.Builder
	b.Write(p.controller.Spec.AdditionalTrustBundle)
	for _, list := range [][]mcv1.ImageRegistryBundle{p.controller.Spec.ImageRegistryBundleData, p.controller.Spec.ImageRegistryBundleUserData} {
		for _, r := range list {
			b.WriteString("\n")
			b.Write(r.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

// file returns the content of a file of the configuration, "" when it has none.
func (p parts) file(name string) (string, error) {
	c, err := ignition.Parse(p.config.Spec.Config.Raw)
	if err != nil {
		return "", err
	}
	for _, f := range c.Storage.Files {
		if f.Path == name {
			b, err := ignition.Content(f.Contents)
			return string(b), err
		}
	}
	return "", nil
}

// encode returns a MachineConfig as JSON that is compressed with gzip, in base64. What the API
// has added to its metadata is left out, so that the same configuration gives the same image.
func encode(m *mcv1.MachineConfig) (string, error) {
	out := mcv1.MachineConfig{Spec: m.Spec}
	out.APIVersion, out.Kind, out.Name = mcv1.GroupVersion.String(), "MachineConfig", m.Name
	b, err := json.Marshal(&out)
	if err != nil {
		return "", fmt.Errorf("build: MachineConfig %s: %w", m.Name, err)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err = w.Write(b); err == nil {
		err = w.Close()
	}
	if err != nil {
		return "", fmt.Errorf("build: MachineConfig %s: %w", m.Name, err)
	}
	return base64.StdEncoding.EncodeToString(z.Bytes()), nil
}

// The scripts of the Job's containers. The lab's builder does the same work without a shell.
const (
	buildScript = `set -euo pipefail
mkdir -p "$HOME/context/machineconfig"
cp /tmp/machineconfig/machineconfig.json.gz "$HOME/context/machineconfig/"
cat /tmp/trust-bundle/*.crt > /etc/pki/ca-trust/source/anchors/build.pem && update-ca-trust
buildah build --authfile /tmp/base-image-pull-creds/config.json --file /tmp/containerfile/Containerfile --tag "$TAG" "$HOME/context"
buildah push --authfile /tmp/final-image-push-creds/config.json --digestfile /tmp/done/digestfile "$TAG"
touch /tmp/done/done
`
	digestScript = `set -euo pipefail
while [ ! -f /tmp/done/done ]; do sleep 1; done
oc create configmap "$DIGEST_CONFIGMAP_NAME" --namespace "$NAMESPACE" --from-file=digest=/tmp/done/digestfile
oc label configmap "$DIGEST_CONFIGMAP_NAME" --namespace "$NAMESPACE" $DIGEST_CONFIGMAP_LABELS
`
)

// job returns the Job of a build.
func (p parts) job() *batchv1.Job {
	meta := p.meta(JobPrefix)
	var labels []string
	for _, k := range []string{machineconfig.OSBuildLabel, machineconfig.OSConfigLabel, machineconfig.TargetPoolLabel, machineconfig.RenderedConfigLabel} {
		labels = append(labels, k+"="+meta.Labels[k])
	}
	labels = append(labels, machineconfig.LayeringLabel+"=", machineconfig.EphemeralLabel+"=")
	env := []corev1.EnvVar{
		{Name: EnvTag, Value: string(p.build.Spec.RenderedImagePushSpec)},
		{Name: EnvDigest, Value: machineconfig.DigestPrefix + p.build.Name},
		{Name: "DIGEST_CONFIGMAP_LABELS", Value: strings.Join(labels, " ")},
		{Name: EnvConfig, Value: p.config.Name},
		{Name: "NAMESPACE", Value: machineconfig.Namespace},
		{Name: "HOME", Value: "/home/build"},
		{Name: "BUILDAH_ISOLATION", Value: "chroot"},
	}
	mounts := []corev1.VolumeMount{
		{Name: "containerfile", MountPath: "/tmp/containerfile"},
		{Name: "machineconfig", MountPath: "/tmp/machineconfig"},
		{Name: "trust-bundle", MountPath: "/tmp/trust-bundle"},
		{Name: "etc-policy", MountPath: "/etc/containers/policy.json", SubPath: PolicyKey},
		{Name: "etc-registries", MountPath: "/etc/containers/registries.conf", SubPath: RegistriesKey},
		{Name: "base-image-pull-creds", MountPath: "/tmp/base-image-pull-creds"},
		{Name: "final-image-push-creds", MountPath: "/tmp/final-image-push-creds"},
		{Name: "done", MountPath: "/tmp/done"},
		{Name: "home", MountPath: "/home/build"},
	}
	container := func(name, image, script string) corev1.Container {
		return corev1.Container{
			Name: name, Image: image, Command: []string{"/bin/bash", "-c", script}, Env: env, VolumeMounts: mounts,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Resources:                corev1.ResourceRequirements{},
			SecurityContext:          &corev1.SecurityContext{RunAsUser: ptr.To(int64(1000)), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SETUID", "SETGID"}}},
		}
	}
	tools := cmp.Or(p.controller.Spec.Images["machineConfigOperator"], p.config.Spec.OSImageURL)
	return &batchv1.Job{
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To(int32(BackoffLimit)), Completions: ptr.To(int32(1)), Parallelism: ptr.To(int32(1)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: serviceAccount,
					Containers: []corev1.Container{
						container("image-build", p.config.Spec.OSImageURL, buildScript),
						container("create-digest-configmap", tools, digestScript),
					},
					Volumes: p.volumes(),
				},
			},
		},
	}
}

func (p parts) volumes() []corev1.Volume {
	config := func(name, prefix string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: prefix + p.build.Name},
		}}}
	}
	secret := func(name, prefix string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: prefix + p.build.Name, Items: []corev1.KeyToPath{{Key: corev1.DockerConfigJsonKey, Path: "config.json"}},
		}}}
	}
	empty := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	return []corev1.Volume{
		config("containerfile", ContainerfilePrefix), config("machineconfig", ConfigPrefix), config("trust-bundle", TrustBundlePrefix),
		config("etc-policy", PolicyPrefix), config("etc-registries", RegistriesPrefix),
		secret("base-image-pull-creds", PullSecretPrefix), secret("final-image-push-creds", PushSecretPrefix),
		empty("done"), empty("home"),
	}
}
