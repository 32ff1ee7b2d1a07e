package disk

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
)

// reference identifies an image in a registry: oci://HOST[:PORT]/REPOSITORY, then
// a tag, a digest, or both; the digest takes precedence.
type reference struct {
	host, repository string
	tag              string // latest if there is neither
	digest           string // sha256:…
}

// Names of the OCI distribution specification 1.1, and digests of the image
// specification 1.1.
var (
	isRepository = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	isTag        = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
)

const ociScheme = "oci"

func parseReference(text string) (reference, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != ociScheme || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return reference{}, errors.New("disk: image URL is no oci://REGISTRY/REPOSITORY[:TAG][@DIGEST]")
	}
	r := reference{host: u.Host}
	rest, digest, pinned := strings.Cut(strings.TrimPrefix(u.Path, "/"), "@")
	if pinned {
		if _, err := parseOCIDigest(digest); err != nil {
			return reference{}, fmt.Errorf("disk: image URL: %w", err)
		}
		r.digest = digest
	}
	name, tag, tagged := strings.Cut(rest, ":")
	switch {
	case !isRepository.MatchString(name):
		return reference{}, fmt.Errorf("disk: image URL: %q is no repository", shortened(name))
	case tagged && !isTag.MatchString(tag):
		return reference{}, fmt.Errorf("disk: image URL: %q is no tag", shortened(tag))
	case !tagged && !pinned:
		tag = "latest"
	}
	r.repository, r.tag = name, tag
	return r, nil
}

// parseOCIDigest parses ALGORITHM:HEX.
func parseOCIDigest(text string) (digest, error) {
	kind, hex, ok := strings.Cut(text, ":")
	if !ok || kind != "sha256" && kind != "sha512" || hex != strings.ToLower(hex) {
		return digest{}, fmt.Errorf("%q is no sha256 or sha512 digest", shortened(text))
	}
	return parseDigest(hex, kind)
}

// registry requests documents of one reference. It is anonymous until the registry
// asks for authentication.
type registry struct {
	http  *http.Client
	ref   reference
	auth  *job.RegistryAuth
	plain bool   // http instead of https
	token string // Authorization header; "" before the registry has asked
}

// maxManifest is the maximum size of a manifest in bytes (OCI distribution
// specification 1.1, "Pushing Manifests"), and maxToken that of a token response.
const (
	maxManifest = 4 << 20
	maxToken    = 64 << 10
)

// oneRequest bounds a request for anything but a blob, in wall time.
const oneRequest = time.Minute

func (g *registry) url(kind, what string) *url.URL {
	scheme := "https"
	if g.plain {
		scheme = "http"
	}
	return &url.URL{Scheme: scheme, Host: g.ref.host, Path: "/v2/" + g.ref.repository + "/" + kind + "/" + what}
}

// authorize adds the token to a request. net/http removes it on redirects to
// another host.
func (g *registry) authorize(r *http.Request) {
	if g.token != "" {
		r.Header.Set("Authorization", g.token)
	}
}

// fetchDocument fetches a document of at most limit bytes. A registry on this
// machine may use http, as in container engines.
func (g *registry) fetchDocument(ctx context.Context, kind, what, accept string, limit int64) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, oneRequest)
	defer cancel()
	for tries := 0; ; tries++ {
		u := g.url(kind, what)
		resp, err := g.sendRequest(ctx, u, func(r *http.Request) {
			r.Header.Set("Accept", accept)
			g.authorize(r)
		})
		switch {
		case errors.Is(err, http.ErrSchemeMismatch) && !g.plain && loopback(g.ref.host):
			g.plain = true
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("disk: registry: %s: %w", redactURL(u), err)
		case resp.StatusCode == http.StatusUnauthorized && tries < 3:
			challenge := resp.Header.Get("WWW-Authenticate")
			resp.Body.Close()
			if err := g.authenticate(ctx, challenge); err != nil {
				return nil, nil, err
			}
			continue
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, nil, fmt.Errorf("disk: registry: %s: the server answers %s", redactURL(u), shortened(resp.Status))
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("disk: registry: %s: %w", redactURL(u), err)
		case int64(len(body)) > limit:
			return nil, nil, fmt.Errorf("disk: registry: %s: more than %d bytes", redactURL(u), limit)
		}
		return body, resp.Header, nil
	}
}

func (g *registry) sendRequest(ctx context.Context, u *url.URL, addHeaders func(*http.Request)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, permanentError("the request cannot be made")
	}
	addHeaders(r)
	resp, err := g.http.Do(r)
	var quoting *url.Error // it quotes the URL, which redactURL shows without secrets
	if errors.As(err, &quoting) {
		err = quoting.Err
	}
	return resp, err
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var parameter = regexp.MustCompile(`([a-zA-Z_]+)="([^"]*)"`)

// authenticate follows the registry's challenge: a password, or a token for it
// (CNCF distribution, token authentication).
func (g *registry) authenticate(ctx context.Context, challenge string) error {
	kind, rest, _ := strings.Cut(strings.TrimSpace(challenge), " ")
	fields := map[string]string{}
	for _, m := range parameter.FindAllStringSubmatch(rest, 16) {
		fields[strings.ToLower(m[1])] = m[2]
	}
	switch {
	case strings.EqualFold(kind, "Basic") && g.auth == nil, g.token != "" && strings.EqualFold(kind, "Basic"):
		return fmt.Errorf("disk: registry %s wants a user and a password that it knows", g.ref.host)
	case strings.EqualFold(kind, "Basic"):
		g.token = g.basic()
		return nil
	case !strings.EqualFold(kind, "Bearer"):
		return fmt.Errorf("disk: registry %s asks for authentication of kind %q, want Basic or Bearer", g.ref.host, shortened(kind))
	}
	realm, err := url.Parse(fields["realm"])
	if err != nil || realm.Host == "" || realm.Scheme != "https" && !(realm.Scheme == "http" && g.plain && loopback(realm.Host)) {
		return fmt.Errorf("disk: registry %s hands out tokens at no https URL", g.ref.host)
	}
	query := realm.Query()
	for _, name := range []string{"service", "scope"} {
		if fields[name] != "" {
			query.Set(name, fields[name])
		}
	}
	if fields["scope"] == "" {
		query.Set("scope", "repository:"+g.ref.repository+":pull")
	}
	realm.RawQuery = query.Encode()
	resp, err := g.sendRequest(ctx, realm, func(r *http.Request) {
		if g.auth != nil {
			r.Header.Set("Authorization", g.basic())
		}
	})
	if err != nil {
		return fmt.Errorf("disk: registry token: %s: %w", redactURL(realm), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("disk: registry token: %s: the server answers %s", redactURL(realm), shortened(resp.Status))
	}
	var doc struct {
		Token  string `json:"token"`
		Access string `json:"access_token"` //nolint:gosec // a field's name
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxToken)).Decode(&doc); err != nil {
		return fmt.Errorf("disk: registry token: %s: no JSON document of at most %d bytes", redactURL(realm), maxToken)
	}
	if doc.Token == "" {
		doc.Token = doc.Access
	}
	if doc.Token == "" {
		return fmt.Errorf("disk: registry token: %s: the answer holds none", redactURL(realm))
	}
	g.token = "Bearer " + doc.Token
	return nil
}

func (g *registry) basic() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(g.auth.Username+":"+g.auth.Password))
}
