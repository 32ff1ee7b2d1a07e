package machineconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/agent/machineconfig/registry"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// This file writes the certificates and the pull secret of the ControllerConfig. They change
// without an update of the node, and no configuration carries them.

const (
	pullSecretFile     = "/etc/mco/internal-registry-pull-secret.json"
	ostreeSecretFile   = "/run/ostree/auth.json" // that rpm-ostree reads (ostree-container auth)
	kubeletSecretFile  = "/var/lib/kubelet/config.json"
	registryCertsDir   = "/etc/docker/certs.d/"
	userCAFile         = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt"
	kubeletCAFile      = "/etc/kubernetes/kubelet-ca.crt"
	rootCAFile         = "/etc/kubernetes/ca.crt"
	cloudCAFile        = "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem"
	controllerConfigAt = configsPath + "/controllerconfigs/" + machineconfig.ControllerConfigName
)

// certificateFiles are the files that this writer owns, beside those of registries.
var certificateFiles = []string{pullSecretFile, ostreeSecretFile, kubeletSecretFile, userCAFile, kubeletCAFile, rootCAFile, cloudCAFile}

// ofCertificates reports whether a file is one of this writer's.
func ofCertificates(name string) bool {
	return slices.Contains(certificateFiles, name) || strings.HasPrefix(name, registryCertsDir)
}

// controllerConfig returns the ControllerConfig; nil when there is none.
func (d *daemon) controllerConfig(ctx context.Context) (*mcv1.ControllerConfig, error) {
	c := &mcv1.ControllerConfig{}
	err := d.api.Call(ctx, http.MethodGet, controllerConfigAt, "", nil, c)
	if kubeapi.HasStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ControllerConfig: %w", err)
	}
	return c, nil
}

// syncCertificates writes the certificates and the pull secret, where they differ, and returns
// the credentials of registries.
func (d *daemon) syncCertificates(ctx context.Context, c *mcv1.ControllerConfig) (registry.Credentials, error) {
	if c == nil {
		return registry.Credentials{}, nil
	}
	var put []sys.File
	add := func(name string, mode fs.FileMode, content []byte) {
		if len(content) == 0 {
			return
		}
		if current, err := d.System.ReadFile(name); err == nil && bytes.Equal(current, content) {
			return
		}
		put = append(put, sys.File{Name: name, Mode: mode, Content: content})
	}
	add(kubeletCAFile, 0o644, c.Spec.KubeAPIServerServingCAData)
	add(rootCAFile, 0o644, c.Spec.RootCAData)
	add(cloudCAFile, 0o644, c.Spec.CloudProviderCAData)
	add(userCAFile, 0o644, c.Spec.AdditionalTrustBundle)
	for _, b := range slices.Concat(c.Spec.ImageRegistryBundleUserData, c.Spec.ImageRegistryBundleData) {
		if strings.ContainsAny(b.File, "/\x00") || b.File == "" || strings.HasPrefix(b.File, ".") {
			return nil, fmt.Errorf("ControllerConfig: file %q of an image registry bundle: give the host of a registry, with .. for each colon", b.File)
		}
		add(registry.CertificateFile(b.File), 0o644, b.Data)
	}
	secret, err := d.pullSecret(ctx, c)
	if err != nil {
		return nil, errors.Join(err, d.System.Put(put...))
	}
	auth, err := registry.ParseCredentials(secret)
	if err != nil {
		return nil, fmt.Errorf("ControllerConfig: %w", errors.Join(err, d.System.Put(put...)))
	}
	add(pullSecretFile, 0o600, secret)
	add(ostreeSecretFile, 0o600, secret)
	if len(put) == 0 {
		return auth, nil
	}
	return auth, d.System.Put(put...)
}

// pullSecret returns the pull secret of a ControllerConfig: internalRegistryPullSecret, else the
// Secret that pullSecret names.
func (d *daemon) pullSecret(ctx context.Context, c *mcv1.ControllerConfig) ([]byte, error) {
	if len(c.Spec.InternalRegistryPullSecret) > 0 || c.Spec.PullSecret == nil || c.Spec.PullSecret.Name == "" {
		return c.Spec.InternalRegistryPullSecret, nil
	}
	ref := c.Spec.PullSecret
	s := &corev1.Secret{}
	uri := fmt.Sprintf("/api/v1/namespaces/%s/secrets/%s", url.PathEscape(ref.Namespace), url.PathEscape(ref.Name))
	if err := d.api.Call(ctx, http.MethodGet, uri, "", nil, s); err != nil {
		return nil, fmt.Errorf("pull secret %s/%s of the ControllerConfig: %w", ref.Namespace, ref.Name, err)
	}
	b, ok := s.Data[corev1.DockerConfigJsonKey]
	if !ok {
		return nil, fmt.Errorf("pull secret %s/%s of the ControllerConfig has no key %s", ref.Namespace, ref.Name, corev1.DockerConfigJsonKey)
	}
	return b, nil
}
