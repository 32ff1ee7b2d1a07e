// Package registry reads and writes images of OCI registries with the credentials of a
// dockerconfigjson Secret. It starts no credential helper: a Secret is data.
//
// A registry on loopback may speak HTTP; others speak HTTPS.
package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Access is how a registry is reached.
type Access struct {
	// Config is the value of a Secret of the type kubernetes.io/dockerconfigjson; nil means
	// no credentials.
	Config []byte
	// CAs are PEM certificates to trust beside the system's.
	CAs []byte
}

// Pull returns an image. Its layers are read when they are used.
func (a Access) Pull(ctx context.Context, ref string) (v1.Image, error) {
	r, options, err := a.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	img, err := remote.Image(r, options...)
	if err != nil {
		return nil, explain(ref, err)
	}
	return img, nil
}

// Push writes an image under a tag.
func (a Access) Push(ctx context.Context, ref string, img v1.Image) error {
	r, options, err := a.open(ctx, ref)
	if err != nil {
		return err
	}
	if err := remote.Write(r, img, options...); err != nil {
		return explain(ref, err)
	}
	return nil
}

// Exists reports whether the registry has an image.
func (a Access) Exists(ctx context.Context, ref string) (bool, error) {
	r, options, err := a.open(ctx, ref)
	if err != nil {
		return false, err
	}
	_, err = remote.Head(r, options...)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, explain(ref, err)
	}
	return true, nil
}

// Delete deletes an image. One that does not exist is deleted.
func (a Access) Delete(ctx context.Context, ref string) error {
	r, options, err := a.open(ctx, ref)
	if err != nil {
		return err
	}
	if err := remote.Delete(r, options...); err != nil && !missing(err) {
		return explain(ref, err)
	}
	return nil
}

func missing(err error) bool {
	t := new(transport.Error)
	return errors.As(err, &t) && t.StatusCode == http.StatusNotFound
}

// Refused reports whether a registry has refused the credentials.
func Refused(err error) bool {
	t := new(transport.Error)
	return errors.As(err, &t) && (t.StatusCode == http.StatusUnauthorized || t.StatusCode == http.StatusForbidden)
}

func explain(ref string, err error) error {
	if Refused(err) {
		return fmt.Errorf("registry: %s: the registry refuses the credentials: %w", ref, err)
	}
	return fmt.Errorf("registry: %s: %w", ref, err)
}

func (a Access) open(ctx context.Context, ref string) (name.Reference, []remote.Option, error) {
	r, err := name.ParseReference(ref)
	if err != nil {
		return nil, nil, fmt.Errorf("registry: %q: %w", ref, err)
	}
	credentials, err := ParseCredentials(a.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("registry: %w", err)
	}
	t := remote.DefaultTransport
	if d, ok := t.(*http.Transport); ok && len(a.CAs) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(a.CAs) {
			return nil, nil, errors.New("registry: the trust bundle has no certificate in PEM")
		}
		d = d.Clone()
		d.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		d.DisableKeepAlives = true // the transport is used once
		t = d
	}
	return r, []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(credentials), remote.WithTransport(t),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), // whoever calls tries again, by its own clock
	}, nil
}

// Credentials are those of registries, by their hosts or by host and repository.
type Credentials map[string]authn.AuthConfig

// ParseCredentials reads the value of a dockerconfigjson. No error shows its content.
func ParseCredentials(config []byte) (Credentials, error) {
	if len(config) == 0 {
		return nil, nil
	}
	var file struct {
		Auths map[string]struct {
			Username string `json:"username"`
			Password string `json:"password"`
			Auth     string `json:"auth"`
		} `json:"auths"`
	}
	if json.Unmarshal(config, &file) != nil {
		return nil, errors.New("the Secret's .dockerconfigjson is no JSON object with auths")
	}
	out := Credentials{}
	for host, a := range file.Auths {
		c := authn.AuthConfig{Username: a.Username, Password: a.Password}
		if a.Auth != "" {
			b, err := base64.StdEncoding.DecodeString(a.Auth)
			user, password, found := strings.Cut(string(b), ":")
			if err != nil || !found {
				return nil, fmt.Errorf("auth of %s in the Secret's .dockerconfigjson is not USER:PASSWORD in base64", host)
			}
			c.Username, c.Password = user, password
		}
		host = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://"), "/")
		out[strings.TrimSuffix(host, "/v1")] = c
	}
	return out, nil
}

// Resolve implements authn.Keychain. The longest entry that names the repository, a
// parent path of it or its registry counts.
func (c Credentials) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	for scope := resource.String(); scope != ""; {
		if a, has := c[scope]; has {
			return authn.FromConfig(a), nil
		}
		i := strings.LastIndexByte(scope, '/')
		if i < 0 {
			break
		}
		scope = scope[:i]
	}
	if a, has := c[resource.RegistryStr()]; has {
		return authn.FromConfig(a), nil
	}
	return authn.Anonymous, nil
}
