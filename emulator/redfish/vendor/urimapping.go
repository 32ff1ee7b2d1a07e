package vendor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// uriMapping rewrites the URIs that match one pattern, and all URIs below them, to
// another pattern: a dialect.URIMapping with parsed patterns.
//
// gorilla/mux cannot do it: mux finds the handler of a request, and a mapping also
// rewrites each URI in each body. A mapping keeps what is behind the pattern, pads
// numbers with zeros (JID_{task:12}), and needs a variable to have one value in two
// places (Storage/{storage}/Drives/Disk.Bay.{drive}:Enclosure.Internal.0-1:{storage}).
type uriMapping struct {
	from, to pattern
	slash    bool // rewritten URIs end with a slash
}

// sortByLength puts the longest patterns first, because the first mapping that
// matches counts.
func sortByLength(all []uriMapping) {
	slices.SortStableFunc(all, func(a, b uriMapping) int { return cmp.Compare(len(b.from), len(a.from)) })
}

// mapURI rewrites a URI by the first mapping that matches it, and reports whether
// one does.
func mapURI(all []uriMapping, path string) (string, bool) {
	return mapURIWith(all, path, nil, exactCase)
}

// mapURIWith is mapURI with values for variables that only the target pattern has.
func mapURIWith(all []uriMapping, path string, known map[string]string, c letterCase) (string, bool) {
	var segments []string
	for i := range all {
		m := &all[i]
		if c == exactCase && !m.from.hasPrefixOf(path) {
			continue
		}
		if segments == nil {
			segments = splitPath(path)
		}
		vars, rest, ok := m.from.matchPrefix(segments, c)
		if !ok {
			continue
		}
		for name, value := range known {
			if _, matched := vars[name]; !matched {
				vars[name] = value
			}
		}
		uri := m.to.fill(vars)
		for _, s := range rest {
			uri += "/" + s
		}
		if m.slash && !strings.HasSuffix(uri, "/") {
			uri += "/"
		}
		return uri, true
	}
	return path, false
}

// toStandardURI returns the standard URI of a URI that a client uses, or "" when the
// vendor's service has nothing there. The client's URI may end with a slash.
func (f *presentation) toStandardURI(path string) string {
	path = strings.TrimRight(path, "/")
	if uri, ok := f.standardURIs.Get(path); ok {
		return uri
	}
	uri, mapped := mapURI(f.toStandard, path)
	if !mapped && f.d.Presentation.IgnoreURICase {
		uri, mapped = mapURI(f.toStandard, f.mappingCase(path))
		if !mapped {
			uri = f.treeCase(path)
		}
	}
	// A resource that has been moved away is not found at its standard URI.
	if _, moved := mapURI(f.toClient, uri); moved && !mapped || f.isHidden(uri) {
		uri = ""
	}
	f.standardURIs.Put(path, uri)
	return uri
}

// mappingCase returns a path with the letter case of the vendor's URIs, when it is
// the URI of a mapped resource but for the case of its letters, or a URI below one.
func (f *presentation) mappingCase(path string) string {
	segments := splitPath(path)
	for _, m := range f.toStandard {
		if setCase(segments, m.from) {
			break
		}
	}
	return "/" + strings.Join(segments, "/")
}

// treeCase is mappingCase for the URIs of the tree.
func (f *presentation) treeCase(path string) string {
	segments := splitPath(path)
	for _, p := range f.treePatterns {
		if len(p) == len(segments) && setCase(segments, p) {
			break
		}
	}
	return "/" + strings.Join(segments, "/")
}

// setCase changes the first segments of a path to the letter case of a pattern when
// they match it but for the case. Segments with variables are not compared.
func setCase(segments []string, p pattern) bool {
	if len(p) > len(segments) {
		return false
	}
	for i, s := range p {
		if len(s.vars) == 0 && !strings.EqualFold(s.lead, segments[i]) {
			return false
		}
	}
	for i, s := range p {
		if len(s.vars) == 0 {
			segments[i] = s.lead
		}
	}
	return true
}

// clientURI returns a text of a body as clients see it: a standard URI becomes the
// vendor's, with its query and fragment; other texts stay.
func (f *presentation) clientURI(text string) string {
	if !strings.HasPrefix(text, "/redfish/v1") {
		return text
	}
	path, tail := cutTail(text)
	path, _ = mapURI(f.toClient, path)
	if f.d.Presentation.TrailingSlash {
		path = withTrailingSlash(path)
	}
	return path + tail
}

// withTrailingSlash returns a path with a slash at its end, unless it names a file.
func withTrailingSlash(path string) string {
	if strings.HasSuffix(path, "/") || strings.Contains(path[strings.LastIndexByte(path, '/'):], ".json") {
		return path
	}
	return path + "/"
}

// EchoesTrailingSlash reports whether the URIs in the response to a GET end with a
// slash when the URI of the request does.
func (v *Vendor) EchoesTrailingSlash() bool { return v.d.Presentation.TrailingSlashAsRequested }

// WithTrailingSlashes ends all URIs in a body with a slash, and returns the body.
func WithTrailingSlashes(o resource.Object) resource.Object {
	MapTexts(o, func(text string) string {
		if !strings.HasPrefix(text, "/redfish/v1") {
			return text
		}
		path, tail := cutTail(text)
		return withTrailingSlash(path) + tail
	})
	return o
}

// cutTail cuts a URI before its query or fragment.
func cutTail(uri string) (path, tail string) {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		return uri[:i], uri[i:]
	}
	return uri, ""
}
