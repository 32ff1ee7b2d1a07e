package builder

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/build"
)

// input is read from a Job's environment and its volumes.
type input struct {
	tag, digestName string
	containerfile   string
	encoded         []byte // the MachineConfig as the context has it
	config          *mcv1.MachineConfig
	bundle          []byte
	pull, push      []byte
	done            bool // the digest of an earlier attempt is stored
}

// read reads the environment and the volumes of a Job's first container.
func (r *Reconciler) read(ctx context.Context, j *batchv1.Job) (in input, err error) {
	env := map[string]string{}
	for _, c := range j.Spec.Template.Spec.Containers {
		for _, e := range c.Env {
			env[e.Name] = e.Value
		}
	}
	in.tag, in.digestName = env[build.EnvTag], env[build.EnvDigest]
	if in.tag == "" || in.digestName == "" {
		return in, fmt.Errorf("the Job's environment lacks %s or %s", build.EnvTag, build.EnvDigest)
	}
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: j.Namespace, Name: in.digestName}, new(corev1.ConfigMap))
	if in.done = err == nil; in.done || !apierrors.IsNotFound(err) {
		return in, err
	}
	var text []byte
	for _, x := range []struct {
		volume, key string
		to          *[]byte
	}{
		{"containerfile", build.ContainerfileKey, &text},
		{"machineconfig", build.ConfigKey, &in.encoded},
		{"trust-bundle", build.TrustBundleKey, &in.bundle},
		{"base-image-pull-creds", corev1.DockerConfigJsonKey, &in.pull},
		{"final-image-push-creds", corev1.DockerConfigJsonKey, &in.push},
	} {
		if *x.to, err = r.volume(ctx, j, x.volume, x.key); err != nil {
			return in, err
		}
	}
	in.containerfile = string(text)
	in.config, err = decode(in.encoded)
	return in, err
}

// volume returns the value of a key of a volume.
func (r *Reconciler) volume(ctx context.Context, j *batchv1.Job, name, key string) ([]byte, error) {
	for _, x := range j.Spec.Template.Spec.Volumes {
		switch {
		case x.Name != name:
		case x.ConfigMap != nil:
			var m corev1.ConfigMap
			err := r.Reader.Get(ctx, client.ObjectKey{Namespace: j.Namespace, Name: x.ConfigMap.Name}, &m)
			return []byte(m.Data[key]), err
		case x.Secret != nil:
			var s corev1.Secret
			err := r.Reader.Get(ctx, client.ObjectKey{Namespace: j.Namespace, Name: x.Secret.SecretName}, &s)
			return s.Data[key], err
		}
	}
	return nil, fmt.Errorf("the Job has no volume %s of a ConfigMap or Secret", name)
}

// maxConfig is how many bytes a MachineConfig may have once it is decompressed.
const maxConfig = 4 << 20

// decode reads a MachineConfig from JSON that is compressed with gzip, in base64.
func decode(b []byte) (*mcv1.MachineConfig, error) {
	z, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil {
		return nil, fmt.Errorf("MachineConfig: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(z))
	if err != nil {
		return nil, fmt.Errorf("MachineConfig: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = fmt.Errorf("more than %d bytes", maxConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("MachineConfig: %w", err)
	}
	out := new(mcv1.MachineConfig)
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("MachineConfig: %w", err)
	}
	return out, nil
}

// ofBuild returns the metadata of an object that belongs to the build of a Job.
func ofBuild(j *batchv1.Job, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: j.Namespace, Name: name, Labels: labels, OwnerReferences: j.OwnerReferences}
}

// errGone means that a Job was deleted while its image was built.
var errGone = errors.New("the Job is gone: its image is not handed on")

// storeDigest stores the digest of the image, as the container create-digest-configmap does.
func (r *Reconciler) storeDigest(ctx context.Context, j *batchv1.Job, name, digest string) error {
	now := new(batchv1.Job)
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(j), now); apierrors.IsNotFound(err) || err == nil && now.UID != j.UID {
		return errGone
	} else if err != nil {
		return fmt.Errorf("Job: %w", err)
	}
	m := &corev1.ConfigMap{ObjectMeta: ofBuild(j, name, maps.Clone(j.Labels)), Data: map[string]string{machineconfig.DigestKey: digest}}
	if err := r.Client.Create(ctx, m); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	return nil
}

// maxLog is how many bytes of a log are stored.
const maxLog = 256 << 10

// buildLog is the log of an attempt.
type buildLog struct {
	now  func() time.Time
	text bytes.Buffer
}

// Write implements io.Writer for complete lines.
func (l *buildLog) Write(p []byte) (int, error) {
	if l.text.Len() < maxLog {
		l.text.WriteString(l.now().UTC().Format(time.RFC3339) + " ")
		l.text.Write(p)
	}
	return len(p), nil
}

// storeLog appends the log of an attempt to that of the build, which stays as long as the
// MachineOSBuild.
func (r *Reconciler) storeLog(ctx context.Context, j *batchv1.Job, l *buildLog) error {
	if l.text.Len() == 0 {
		return nil
	}
	labels := maps.Clone(j.Labels)
	delete(labels, machineconfig.EphemeralLabel)
	name := machineconfig.LogPrefix + labels[machineconfig.OSBuildLabel]
	var m corev1.ConfigMap
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: j.Namespace, Name: name}, &m)
	if apierrors.IsNotFound(err) {
		m = corev1.ConfigMap{ObjectMeta: ofBuild(j, name, labels), Data: map[string]string{machineconfig.LogKey: l.text.String()}}
		err = r.Client.Create(ctx, &m)
	} else if err == nil {
		before := m.DeepCopy()
		if m.Data == nil {
			m.Data = map[string]string{}
		}
		text := m.Data[machineconfig.LogKey] + l.text.String()
		m.Data[machineconfig.LogKey] = text[max(len(text)-maxLog, 0):]
		err = r.Client.Patch(ctx, &m, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("builder: ConfigMap %s: %w", name, err)
	}
	return nil
}
