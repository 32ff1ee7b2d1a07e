// Package registry reads OS images from OCI registries, as a node's container runtime would: by
// digest, with the node's credentials, certificates and mirrors. It verifies every blob and
// unpacks none.
package registry

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// digested matches a reference by digest without a tag.
var digested = regexp.MustCompile(`^[^@]+@sha256:[0-9a-f]{64}$`)

// CheckReference returns an error unless a text is REPOSITORY@sha256:DIGEST. A tag is refused: it
// can name another image tomorrow.
func CheckReference(image string) error {
	if !digested.MatchString(image) {
		return fmt.Errorf("image %q: give REPOSITORY@sha256:DIGEST, a tag is refused", image)
	}
	d, err := name.NewDigest(image)
	if err != nil {
		return fmt.Errorf("image %q: %w", image, err)
	}
	if repository, _, _ := strings.Cut(image, "@"); strings.Contains(path.Base(repository), ":") {
		return fmt.Errorf("image %q has a tag and a digest: give REPOSITORY@%s", image, d.DigestStr())
	}
	return nil
}

// Credentials are the logins of a pull secret, by registry, or by registry and path
// (containers-auth.json(5)).
type Credentials map[string]Login

// Login identifies a node to a registry.
type Login struct{ Username, Password string }

// ParseCredentials reads a pull secret: the content of .dockerconfigjson, or the older form
// without "auths". Nothing is no credentials. Errors quote nothing of it.
func ParseCredentials(secret []byte) (Credentials, error) {
	out := Credentials{}
	if len(secret) == 0 {
		return out, nil
	}
	type entry struct {
		Auth, Username, Password string
	}
	var doc struct {
		Auths map[string]entry `json:"auths"`
	}
	if err := json.Unmarshal(secret, &doc); err != nil {
		return nil, errors.New("the pull secret is no JSON document of the form {\"auths\": {…}}")
	}
	if doc.Auths == nil {
		if err := json.Unmarshal(secret, &doc.Auths); err != nil {
			return nil, errors.New("the pull secret is no JSON document of the form {\"auths\": {…}}")
		}
	}
	for host, e := range doc.Auths {
		l := Login{e.Username, e.Password}
		if e.Auth != "" {
			b, err := base64.StdEncoding.DecodeString(e.Auth)
			user, password, ok := strings.Cut(string(b), ":")
			if err != nil || !ok {
				return nil, fmt.Errorf("the pull secret's auth of %s is not base64 of USER:PASSWORD", host)
			}
			l = Login{user, password}
		}
		out[strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://"), "/")] = l
	}
	return out, nil
}

// of returns the login for a repository: that of the longest path.
func (c Credentials) of(repository string) (Login, bool) {
	for at := repository; at != "." && at != "/"; at = path.Dir(at) {
		if l, ok := c[at]; ok {
			return l, true
		}
	}
	return Login{}, false
}

// Files are the files of the node, by absolute paths.
type Files interface {
	ReadFile(name string) ([]byte, error)
}

// Client reads registries.
type Client struct {
	// Files has the node's certificates of registries (/etc/docker/certs.d/HOST/ca.crt) and
	// mirrors (/etc/containers/registries.conf).
	Files     Files
	Transport http.RoundTripper // with certificates of its own; nil: Go's defaults
}

const (
	mirrorsFile = "/etc/containers/registries.conf"
	certsDir    = "/etc/docker/certs.d"
	maxLayers   = 128
	maxBytes    = 256 << 20 // sum over all compressed layers
)

// CertificateFile is the path of the certificates that sign those of a registry. In names of
// ImageRegistryBundles ".." stands for ":".
func CertificateFile(host string) string {
	return path.Join(certsDir, strings.ReplaceAll(host, "..", ":"), "ca.crt")
}

// A RefusedError says that a registry refuses the credentials of a node, or demands some.
type RefusedError struct {
	Registry string
	Known    bool // the pull secret has a login for it
}

// Error implements error.
func (e *RefusedError) Error() string {
	if !e.Known {
		return fmt.Sprintf("registry %s demands a login, and the pull secret has none for it: add one", e.Registry)
	}
	return fmt.Sprintf("registry %s refuses the login of the pull secret: correct it", e.Registry)
}

// Check asks a registry for the manifest of an image, without reading it. It returns a
// *RefusedError when the registry refuses the credentials.
func (c Client) Check(ctx context.Context, image string, auth Credentials) error {
	return c.each(image, auth, func(d name.Digest, options []remote.Option) error {
		_, err := remote.Head(d, append(options, remote.WithContext(ctx))...)
		return err
	})
}

// A DigestError says that a registry has sent other bytes than those of a blob's digest.
type DigestError struct{ Want, Got v1.Hash }

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("digest mismatch: the registry sends a blob of the digest %s for %s", e.Got, e.Want)
}

// A SizeError says that an image is larger than a node takes.
type SizeError struct{ Reason string }

// Error implements error.
func (e *SizeError) Error() string { return e.Reason }

// Layers returns the layers of an image as the registry stores them, the lowest first. The
// manifest has the digest of the reference; of an index it is the one of an architecture
// ("amd64"). Every layer has the digest that the manifest names, else it returns a *DigestError.
// An image of more than 128 layers or 256 MiB is a *SizeError.
func (c Client) Layers(ctx context.Context, image string, auth Credentials, arch string) (out [][]byte, err error) {
	err = c.each(image, auth, func(d name.Digest, options []remote.Option) error {
		found, err := remote.Image(d, append(options, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))...)
		if err != nil {
			return err
		}
		layers, err := found.Layers()
		if err != nil {
			return err
		}
		if len(layers) == 0 || len(layers) > maxLayers {
			return &SizeError{fmt.Sprintf("the image has %d layers: 1 to %d are allowed", len(layers), maxLayers)}
		}
		out = nil
		left := int64(maxBytes)
		for _, l := range layers {
			b, err := fetch(l, left)
			if err != nil {
				return err
			}
			out, left = append(out, b), left-int64(len(b))
		}
		return nil
	})
	return out, err
}

// fetch returns the bytes of a layer, verified, of which there are at most so many.
func fetch(l v1.Layer, most int64) ([]byte, error) {
	size, err := l.Size()
	if err != nil {
		return nil, err
	}
	if size < 0 || size > most {
		return nil, &SizeError{fmt.Sprintf("the image has more than %d MiB of compressed layers", maxBytes>>20)}
	}
	want, err := l.Digest()
	if err != nil {
		return nil, err
	}
	r, err := l.Compressed()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, size)
	n, err := io.ReadFull(r, b)
	if int64(n) < size { // the connection has ended: the digest says nothing
		return nil, fmt.Errorf("blob %s: %d of %d bytes: %w", want, n, size, err)
	}
	sum := sha256.Sum256(b)
	if got := (v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}); got != want {
		return nil, &DigestError{want, got}
	}
	return b, nil
}

// each tries the mirrors of an image and then its registry, until one succeeds.
func (c Client) each(image string, auth Credentials, try func(name.Digest, []remote.Option) error) error {
	if err := CheckReference(image); err != nil {
		return err
	}
	sources, err := c.sources(image)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range sources {
		d, err := name.NewDigest(s)
		if err != nil {
			return fmt.Errorf("image %q: %w", s, err)
		}
		t, err := c.transport(d.RegistryStr())
		if err != nil {
			return err
		}
		options := []remote.Option{remote.WithTransport(t), remote.WithRetryBackoff(remote.Backoff{Steps: 1})}
		login, known := auth.of(d.Context().Name())
		if known {
			options = append(options, remote.WithAuth(&authn.Basic{Username: login.Username, Password: login.Password}))
		}
		err = try(d, options)
		if t, ok := t.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
		if err == nil {
			return nil
		}
		if answer := new(transport.Error); errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
			err = &RefusedError{d.RegistryStr(), known}
		}
		errs = append(errs, fmt.Errorf("image %s: %w", s, err))
	}
	return errors.Join(errs...)
}

func (c Client) transport(host string) (http.RoundTripper, error) {
	if c.Transport != nil {
		return c.Transport, nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	ca, err := c.Files.ReadFile(CertificateFile(host))
	if err != nil {
		return t, nil // without a certificate of its own
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate in PEM", CertificateFile(host))
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

// sources returns the places of an image in the order in which a runtime tries them
// (containers-registries.conf(5), "Remapping and mirroring registries").
func (c Client) sources(image string) ([]string, error) {
	text, err := c.Files.ReadFile(mirrorsFile)
	if err != nil {
		return []string{image}, nil // no file: no mirrors
	}
	var conf struct {
		Registry []struct {
			Prefix   string `toml:"prefix"`
			Location string `toml:"location"`
			Blocked  bool   `toml:"blocked"`
			Mirror   []struct {
				Location string `toml:"location"`
				Pull     string `toml:"pull-from-mirror"`
			} `toml:"mirror"`
		} `toml:"registry"`
	}
	if err := toml.Unmarshal(text, &conf); err != nil {
		return nil, fmt.Errorf("%s: %w", mirrorsFile, err)
	}
	best, length := -1, -1
	for i, r := range conf.Registry {
		prefix := r.Prefix
		if prefix == "" {
			prefix = r.Location
		}
		if rest, ok := strings.CutPrefix(image, prefix); ok && (rest == "" || strings.ContainsRune("/@:", rune(rest[0]))) && len(prefix) > length {
			best, length = i, len(prefix)
		}
	}
	if best < 0 {
		return []string{image}, nil
	}
	r, rest := conf.Registry[best], image[length:]
	var out []string
	for _, m := range r.Mirror {
		if m.Pull != "tag-only" && m.Location != "" {
			out = append(out, m.Location+rest)
		}
	}
	if r.Blocked {
		if len(out) == 0 {
			return nil, fmt.Errorf("image %s: %s blocks the registry", image, mirrorsFile)
		}
		return out, nil
	}
	if r.Location != "" {
		image = r.Location + rest
	}
	return append(slices.Clip(out), image), nil
}
