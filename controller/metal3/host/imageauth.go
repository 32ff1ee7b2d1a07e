package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/job"
)

// dockerKeys maps the types of Secrets with registry accounts to their keys
// (B-154).
var dockerKeys = map[corev1.SecretType]string{
	corev1.SecretTypeDockerConfigJson: corev1.DockerConfigJsonKey,
	corev1.SecretTypeDockercfg:        corev1.DockerConfigKey,
}

// registryAuth returns the agent's account for the registry of the host's image;
// nil for none. Its errors are for the user to fix; the texts are Metal3's
// (B-154).
func (r *Reconciler) registryAuth(ctx context.Context, h *metal3.BareMetalHost) (*job.RegistryAuth, error) {
	img := h.Spec.Image
	if img == nil || !img.IsOCI() || img.OCIAuthSecretName == nil || *img.OCIAuthSecretName == "" {
		return nil, nil
	}
	name := *img.OCIAuthSecretName
	var s corev1.Secret
	if err := r.read.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: name}, &s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("auth secret %q not found in namespace %q", name, h.Namespace)
		}
		return nil, &configDataError{err}
	}
	if err := r.labelSecret(ctx, &s); err != nil {
		return nil, &configDataError{err}
	}
	key, ok := dockerKeys[s.Type]
	if !ok {
		r.publish(ctx, h, eventList{{"ImageAuthFormatUnsupported", fmt.Sprintf("Secret %q has unsupported type %q", name, s.Type)}})
		return nil, fmt.Errorf("secret %q has unsupported type %q; expected %q or %q",
			name, s.Type, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg)
	}
	auth, err := registryAccount(s.Data[key], s.Type == corev1.SecretTypeDockerConfigJson, img.URL)
	if err != nil {
		r.publish(ctx, h, eventList{{"ImageAuthParseError", fmt.Sprintf("Failed to extract credentials from secret %q: %v", name, err)}})
		return nil, fmt.Errorf("failed to extract credentials from secret %q: %w", name, err)
	}
	return auth, nil
}

// dockerAccount is an entry of a Docker configuration. Auth is USER:PASSWORD in
// base64 and takes precedence over the other two.
type dockerAccount struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"`
}

// registryAccount finds the account for an image's registry. The keys of entries
// are hosts or URLs.
func registryAccount(config []byte, nested bool, image string) (*job.RegistryAuth, error) {
	u, err := url.Parse(image)
	if err != nil || u.Host == "" {
		return nil, errors.New("the image URL names no registry")
	}
	var doc struct {
		Auths map[string]dockerAccount `json:"auths"`
	}
	if nested {
		err = json.Unmarshal(config, &doc)
	} else {
		err = json.Unmarshal(config, &doc.Auths)
	}
	if err != nil {
		return nil, errors.New("it is no Docker configuration") // the parser's error would quote it
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Auths)) {
		a := doc.Auths[name]
		host := strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
		host, _, _ = strings.Cut(host, "/")
		if !strings.EqualFold(host, u.Host) {
			continue
		}
		if a.Auth != "" {
			raw, err := base64.StdEncoding.DecodeString(a.Auth)
			user, password, ok := strings.Cut(string(raw), ":")
			if err != nil || !ok {
				return nil, fmt.Errorf("auth of %s is not USER:PASSWORD in base64", host)
			}
			a.Username, a.Password = user, strings.TrimRight(password, "\x00")
		}
		if a.Username == "" || a.Password == "" {
			return nil, fmt.Errorf("the entry of %s has no user and password", host)
		}
		return &job.RegistryAuth{Username: a.Username, Password: a.Password}, nil
	}
	return nil, fmt.Errorf("registry %q not found in auth config", u.Host)
}
