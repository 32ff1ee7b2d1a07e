package capture

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// unreadCollections are the collections whose members are not read: their members
// record what happened to this server, name its users, or are the same on all
// servers.
var unreadCollections = map[string]bool{
	"LogEntryCollection": true, "SessionCollection": true, "TaskCollection": true, "JobCollection": true,
	"EventDestinationCollection": true, "ManagerAccountCollection": true, "JsonSchemaFileCollection": true,
	"MessageRegistryFileCollection": true, "MetricReportCollection": true, "LicenseCollection": true,
}

// unreadLinks are the names of links that are not followed.
var unreadLinks = map[string]bool{"JsonSchemas": true, "DataSourceUri": true, "OriginOfCondition": true}

// walk reads the resources that are reachable by links from the service root.
func (s *source) walk(ctx context.Context, out *Capture) error {
	seen := map[string]bool{Root: true}
	wave := []string{Root}
	var waiting []string
	for waves := 0; len(wave) > 0; waves++ {
		// The root needs no password. The first resource that needs it is read
		// alone: some BMCs lock an account after a few wrong passwords.
		if waves == 1 {
			wave, waiting = wave[:1], wave[1:]
		}
		type answer struct {
			at     string
			body   map[string]any
			status int
			err    error
		}
		answers := make([]answer, len(wave))
		next := make(chan int)
		var readers sync.WaitGroup
		for range min(s.parallel, len(wave)) {
			readers.Go(func() {
				for i := range next {
					a := &answers[i]
					a.at = wave[i]
					a.body, a.status, a.err = s.read(ctx, wave[i])
				}
			})
		}
		for i := range wave {
			next <- i
		}
		close(next)
		readers.Wait()
		var more []string
		for _, a := range answers {
			switch {
			case a.at == Root && a.err != nil:
				return a.err
			case errors.Is(a.err, ErrLogin):
				return a.err
			case errors.Is(a.err, errRequestLimit):
				out.Incomplete = a.err.Error()
			case a.err != nil && ctx.Err() == nil:
				out.Refused[a.at] = 0
			case a.body == nil:
				out.Refused[a.at] = a.status
			default:
				out.Resources[a.at] = a.body
				for _, to := range links(a.at, a.body) {
					if !seen[to] {
						seen[to] = true
						more = append(more, to)
					}
				}
			}
		}
		slices.Sort(more)
		if s.progress(len(out.Resources)+len(out.Refused), len(seen)); out.Incomplete != "" || ctx.Err() != nil {
			return nil
		}
		wave, waiting = append(waiting, more...), nil
	}
	return s.registries(ctx, out)
}

// registries reads the attribute registries that Bios resources name, whatever a vendor calls
// their type. No link leads to them.
func (s *source) registries(ctx context.Context, out *Capture) error {
	wanted := map[string]bool{}
	for _, body := range out.Resources {
		if name, ok := body["AttributeRegistry"].(string); ok && strings.HasSuffix(Type(body), "Bios") {
			wanted[name] = true
		}
	}
	var files []string
	for _, at := range slices.Sorted(maps.Keys(out.Resources)) {
		if Type(out.Resources[at]) != "MessageRegistryFileCollection" {
			continue
		}
		for _, m := range list(out.Resources[at]["Members"]) {
			to := trimURI(text(m, "@odata.id"))
			for name := range wanted {
				// The file's name may lack the version that AttributeRegistry has.
				prefix, _, _ := strings.Cut(name, ".")
				if strings.HasPrefix(to[strings.LastIndexByte(to, '/')+1:], prefix) {
					files = append(files, to)
				}
			}
		}
	}
	slices.Sort(files)
	for _, at := range slices.Compact(files) {
		file, status, err := s.read(ctx, at)
		if err != nil || file == nil {
			out.Refused[at] = status
			continue
		}
		out.Resources[at] = file
		locations := list(file["Location"])
		slices.SortStableFunc(locations, func(a, b any) int { return english(a) - english(b) })
		for _, l := range locations {
			uri := text(l, "Uri")
			if !strings.HasPrefix(uri, "/") {
				continue // it is not on this BMC
			}
			body, status, err := s.read(ctx, uri)
			if err != nil || body == nil {
				out.Refused[trimURI(uri)] = status
				continue
			}
			out.Resources[trimURI(uri)] = body
			break
		}
	}
	return nil
}

func english(location any) int {
	if strings.HasPrefix(text(location, "Language"), "en") {
		return 0
	}
	return 1
}

// links returns the URIs that a body links to and that are to be read.
func links(at string, body map[string]any) []string {
	kind := Type(body)
	if unreadCollections[kind] {
		return nil
	}
	var out []string
	add := func(to string) {
		to = trimURI(to)
		if !strings.HasPrefix(to, Root+"/") || path.Clean(to) != to || strings.Contains(to, "/Actions/") {
			return
		}
		// Certificates of the BMC or of its users identify the server.
		if kind == "CertificateCollection" && !strings.Contains(at, "/SecureBoot") {
			return
		}
		out = append(out, to)
	}
	var follow func(v any)
	follow = func(v any) {
		switch x := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(x)) {
				to, is := x[name].(string)
				switch {
				case unreadLinks[name]:
				case is && (name == "@odata.id" || name == "@Redfish.ActionInfo"):
					add(to)
				default:
					follow(x[name])
				}
			}
		case []any:
			for _, e := range x {
				follow(e)
			}
		}
	}
	follow(body)
	return out
}

var errRequestLimit = errors.New("the limit of requests is reached")

// read reads a resource, and a collection with the members of all its pages
// (Members@odata.nextLink). When the BMC refuses, the body is nil and the status
// tells why.
func (s *source) read(ctx context.Context, at string) (map[string]any, int, error) {
	body, status, err := s.readBody(ctx, at)
	if err != nil || body == nil {
		return nil, status, err
	}
	// Some services link their last page to one before it.
	read := map[string]bool{at: true}
	for next := text(body, "Members@odata.nextLink"); next != "" && !read[next]; {
		read[next] = true
		more, _, err := s.readBody(ctx, next)
		if err != nil || more == nil {
			return nil, status, err
		}
		body["Members"] = append(list(body["Members"]), list(more["Members"])...)
		next = text(more, "Members@odata.nextLink")
	}
	delete(body, "Members@odata.nextLink")
	return body, status, nil
}

func (s *source) readBody(ctx context.Context, at string) (map[string]any, int, error) {
	r, err := s.get(ctx, at, nil)
	if err == nil && r.status == http.StatusNotAcceptable { // some BMCs have long documents only compressed
		r, err = s.get(ctx, at, map[string]string{"Accept-Encoding": "gzip"})
	}
	if err != nil || r.status != http.StatusOK {
		return nil, r.status, err
	}
	var v map[string]any
	if err := json.Unmarshal(r.raw, &v); err != nil {
		return nil, r.status, fmt.Errorf("GET %s: %w", at, err)
	}
	return v, r.status, nil
}

// response is an HTTP response with its body.
type response struct {
	status int
	header http.Header
	raw    []byte
	close  bool // the BMC ended the connection
}

// maxAttempts and maxWait bound the requests to a busy BMC and the pause between
// two of them.
const (
	maxAttempts = 4
	maxWait     = 20 * time.Second
)

// get sends a request, and repeats it while the BMC answers 503 or 429.
func (s *source) get(ctx context.Context, at string, header map[string]string) (response, error) {
	for try := 1; ; try++ {
		select {
		case <-s.remaining:
		default:
			return response{}, errRequestLimit
		}
		r, err := s.once(ctx, at, header)
		if err != nil {
			return r, fmt.Errorf("GET %s: %w", at, WithRemedy(err))
		}
		if r.status == http.StatusUnauthorized {
			return r, ErrLogin
		}
		busy := r.status == http.StatusServiceUnavailable || r.status == http.StatusTooManyRequests
		if !busy || try == maxAttempts {
			return r, nil
		}
		wait := time.Duration(try) * time.Second
		if n, err := strconv.Atoi(r.header.Get("Retry-After")); err == nil && n >= 0 {
			wait = time.Duration(n) * time.Second
		}
		t := time.NewTimer(min(wait, maxWait))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return r, ctx.Err()
		}
	}
}

func (s *source) once(ctx context.Context, at string, header map[string]string) (response, error) {
	ref, err := s.base.Parse(at)
	if err != nil {
		return response{}, err
	}
	if ref.Host != s.base.Host || ref.Scheme != s.base.Scheme {
		return response{}, fmt.Errorf("%s: not a URI of this BMC", at)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, ref.String(), nil)
	if err != nil {
		return response{}, err
	}
	if s.user != "" {
		q.SetBasicAuth(s.user, s.password)
	}
	q.Header.Set("Accept", "application/json")
	q.Header.Set("OData-Version", "4.0")
	for name, value := range header {
		q.Header.Set(name, value)
	}
	p, err := s.client.Do(q)
	if err != nil {
		return response{}, err
	}
	defer p.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(p.Body, maxBody+1))
	if err == nil && p.Header.Get("Content-Encoding") == "gzip" {
		var plain *gzip.Reader
		if plain, err = gzip.NewReader(bytes.NewReader(raw)); err == nil {
			raw, err = io.ReadAll(io.LimitReader(plain, maxBody+1))
		}
	}
	if err == nil && len(raw) > maxBody {
		err = fmt.Errorf("the body is longer than %d bytes", maxBody)
	}
	return response{p.StatusCode, p.Header, raw, p.Close}, err
}

func list(v any) []any { l, _ := v.([]any); return l }

func text(v any, name string) string {
	m, _ := v.(map[string]any)
	s, _ := m[name].(string)
	return s
}
