package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/aliases"
)

// configDataError is an error in a host's configuration data. It is not an error
// of the host: the pass is repeated until the user has fixed it (B-14, B-155).
type configDataError struct{ err error }

func (e *configDataError) Error() string { return e.err.Error() }
func (e *configDataError) Unwrap() error { return e.err }

// Keys of Secrets with configuration data (B-115).
const (
	userDataKey    = "userData"
	networkDataKey = "networkData"
	metaDataKey    = "metaData"
	anyDataKey     = "value"
)

// configDrive returns the content of the host's config drive. Without configuration data
// it names the host, as upstream's does (B-155), and is optional. A live ISO is not
// written, and gets no drive (B-153).
func (r *Reconciler) configDrive(ctx context.Context, h *metal3.BareMetalHost) (*job.ConfigDrive, error) {
	network := h.Spec.NetworkData
	if network == nil && h.Spec.PreprovisioningNetworkDataName != "" {
		network = &corev1.SecretReference{Name: h.Spec.PreprovisioningNetworkDataName}
	}
	user, err := r.configData(ctx, h, h.Spec.UserData, userDataKey, true)
	if err != nil {
		return nil, &configDataError{fmt.Errorf("could not retrieve user data: %w", err)}
	}
	out := &job.ConfigDrive{UserData: user, Optional: h.Spec.UserData == nil && network == nil && h.Spec.MetaData == nil}
	// A Secret without network data counts as none.
	raw, err := r.configData(ctx, h, network, networkDataKey, false)
	if err != nil {
		return nil, &configDataError{fmt.Errorf("could not retrieve network data: %w", err)}
	}
	if len(raw) > 0 {
		if err := aliases.Check(raw); err != nil {
			return nil, &configDataError{fmt.Errorf("network data: %w", err)}
		}
		doc := map[string]any{}
		if err := yaml.Unmarshal(raw, &doc); err != nil {
			return nil, &configDataError{fmt.Errorf("failed to unmarshal network_data.json from secret: %w", errNoObject)}
		}
		if out.NetworkData, err = json.Marshal(doc); err != nil {
			return nil, &configDataError{fmt.Errorf("network data: %w", err)}
		}
	}
	meta := map[string]any{
		"uuid": string(h.UID), "metal3-namespace": h.Namespace, "metal3-name": h.Name,
		"local-hostname": h.Name, "local_hostname": h.Name, "name": h.Name,
	}
	raw, err = r.configData(ctx, h, h.Spec.MetaData, metaDataKey, true)
	if err != nil {
		return nil, &configDataError{fmt.Errorf("could not retrieve metadata: %w", err)}
	}
	if len(raw) > 0 {
		if err := aliases.Check(raw); err != nil {
			return nil, &configDataError{fmt.Errorf("metadata: %w", err)}
		}
		if err := yaml.Unmarshal(raw, &meta); err != nil {
			return nil, &configDataError{fmt.Errorf("failed to unmarshal metadata from secret: %w", errNoObject)}
		}
	}
	if out.MetaData, err = json.Marshal(meta); err != nil {
		return nil, &configDataError{fmt.Errorf("metadata: %w", err)}
	}
	return out, nil
}

// errNoObject replaces the parser's error, which would quote the Secret.
var errNoObject = errors.New("it is neither a YAML nor a JSON object")

// configData reads one of the Secrets. It may be in another namespace than the host: an
// admission policy of controller/config refuses the reference of a user who may not read
// the Secret. configData counts a missing key, which is an error if must is true (B-115).
func (r *Reconciler) configData(ctx context.Context, h *metal3.BareMetalHost, ref *corev1.SecretReference, key string, must bool) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	var s corev1.Secret
	name := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, h.Namespace), Name: ref.Name}
	if err := r.read.Get(ctx, name, &s); err != nil {
		return nil, fmt.Errorf("failed to fetch %s secret %s: %w", key, name, err)
	}
	if err := r.labelSecret(ctx, &s); err != nil {
		return nil, err
	}
	for _, k := range []string{key, anyDataKey} {
		if data, ok := s.Data[k]; ok {
			return data, nil
		}
	}
	r.metrics.configData.WithLabelValues(key).Inc()
	if must {
		return nil, fmt.Errorf("Secret %s does not contain key %s", ref.Name, key) // upstream's text (B-115)
	}
	return nil, nil
}

// labelSecret labels a Secret that hosts use. The host does not own it: it may be
// deleted at any time (B-113, B-115).
func (r *Reconciler) labelSecret(ctx context.Context, s *corev1.Secret) error {
	if s.Labels[secretLabel] == secretLabelValue {
		return nil
	}
	before := s.DeepCopy()
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[secretLabel] = secretLabelValue
	if err := r.Client.Patch(ctx, s, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("secret %s: %w", s.Name, err)
	}
	r.read.Wrote(s)
	return nil
}
