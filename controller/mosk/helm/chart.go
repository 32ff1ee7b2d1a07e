package helm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/repo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// Size limits of downloads from a repository, in bytes.
const (
	maxIndex = 16 << 20
	maxChart = 20 << 20
)

// secrets reads a Secret.
type secrets func(context.Context, client.ObjectKey) (*corev1.Secret, error)

// secretsOf returns what reads the passwords of a bundle's repositories: in the API that has the bundle,
// the account of the bundle.
func (p *pass) secretsOf(i *installer) secrets {
	if p.user == "" {
		return p.r.secret
	}
	return func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
		return i.client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}
}

func (r *Reconciler) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	s := new(corev1.Secret)
	return s, r.Reader.Get(ctx, key, s)
}

// load returns the chart of a release.
func (r *Reconciler) load(ctx context.Context, b *lcmv1.HelmBundle, rel lcmv1.HelmRelease, read secrets) (*chart.Chart, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if rel.ChartURL != "" {
		return r.archive(ctx, rel.ChartURL, nil, "")
	}
	_, name, named := strings.Cut(rel.Chart, "/")
	if !named {
		name = rel.Chart
	}
	candidates := repositories(b, rel.Chart)
	if len(candidates) == 0 {
		return nil, fmt.Errorf("chart %q: the bundle has no such repository: add it to repositories, or give REPOSITORY/CHART", rel.Chart)
	}
	var errs []error
	for _, c := range candidates {
		ch, err := r.fromRepository(ctx, b.Namespace, c, name, rel.Version, read)
		if err == nil {
			return ch, nil
		}
		errs = append(errs, fmt.Errorf("repository %s%s: %w", c.Name, shown(c.URL), err))
	}
	return nil, errors.Join(errs...)
}

func (r *Reconciler) fromRepository(ctx context.Context, namespace string, from lcmv1.HelmRepository, name, version string, read secrets) (*chart.Chart, error) {
	var auth *url.Userinfo
	if from.AuthSecret != "" {
		s, err := read(ctx, client.ObjectKey{Namespace: namespace, Name: from.AuthSecret})
		if err != nil {
			return nil, fmt.Errorf("authSecret: %w", err)
		}
		auth = url.UserPassword(string(s.Data["username"]), string(s.Data["password"]))
	}
	base := strings.TrimSuffix(from.URL, "/")
	text, err := r.get(ctx, base+"/index.yaml", auth, maxIndex)
	if err != nil {
		return nil, err
	}
	index := &repo.IndexFile{}
	if err := yaml.Unmarshal(text, index); err != nil {
		return nil, fmt.Errorf("%s/index.yaml: %w", base, err)
	}
	for _, versions := range index.Entries { // in any order: each chart is checked alone
		for _, v := range versions {
			if v == nil || v.Metadata == nil || len(v.URLs) == 0 {
				return nil, fmt.Errorf("%s/index.yaml has a chart without metadata or urls", base)
			}
		}
	}
	index.SortEntries()
	v, err := index.Get(name, version)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", strings.TrimSpace(name+" "+version), missing(index.Entries[name], err))
	}
	uri, err := repo.ResolveReferenceURL(base, v.URLs[0])
	if err != nil {
		return nil, err
	}
	if !sameHost(uri, base) { // a password is the repository's alone
		auth = nil
	}
	return r.archive(ctx, uri, auth, v.Digest)
}

// shown returns the URL of a repository for a message, without its password.
func shown(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	return " (" + u.Redacted() + ")"
}

// mostVersions is the number of versions that an error lists.
const mostVersions = 10

// missing returns an error that lists the available versions of a chart. versions are sorted,
// the newest first.
func missing(versions repo.ChartVersions, err error) error {
	if len(versions) == 0 {
		return fmt.Errorf("%w: correct the name, or add the chart", err)
	}
	var all []string
	for _, v := range versions[:min(len(versions), mostVersions)] {
		all = append(all, v.Version)
	}
	if n := len(versions) - len(all); n > 0 {
		all = append(all, fmt.Sprintf("and %d more", n))
	}
	return fmt.Errorf("%w: there are %s", err, strings.Join(all, ", "))
}

func sameHost(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Host == y.Host && x.Scheme == y.Scheme
}

// archive loads the archive at a URL. A digest that is not "" must be its SHA-256.
func (r *Reconciler) archive(ctx context.Context, uri string, auth *url.Userinfo, digest string) (*chart.Chart, error) {
	text, err := r.get(ctx, uri, auth, maxChart)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	if want := strings.TrimPrefix(digest, "sha256:"); want != "" && want != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%s: the SHA-256 is %x, and the repository's index says %s", uri, sum, want)
	}
	c, err := loader.LoadArchive(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", uri, err)
	}
	return c, nil
}

func (r *Reconciler) get(ctx context.Context, uri string, auth *url.Userinfo, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, err
	}
	if auth != nil {
		password, _ := auth.Password()
		req.SetBasicAuth(auth.Username(), password)
	}
	resp, err := r.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", uri, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("GET %s: more than %d MiB", uri, limit>>20)
	}
	return b, err
}
