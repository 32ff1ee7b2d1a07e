package fault

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// pattern is a parsed path pattern: segments, of which "**" matches any number.
type pattern []string

const anySegments = "**"

// parsePattern parses a pattern; "" matches every path.
func parsePattern(s string) (pattern, error) {
	if s == "" {
		return pattern{anySegments}, nil
	}
	if s[0] != '/' {
		return nil, fmt.Errorf("%q: must begin with /, such as /redfish/v1/Systems/**", s)
	}
	if strings.HasSuffix(s, "/") {
		s += anySegments
	}
	p := pattern(segments(s))
	for _, seg := range p {
		if _, err := path.Match(seg, ""); err != nil {
			return nil, fmt.Errorf("%q: is no pattern: close each [", s)
		}
		if seg != anySegments && strings.Contains(seg, anySegments) {
			return nil, fmt.Errorf("%q: ** must stand for whole segments, as in /redfish/**/Actions", s)
		}
	}
	return p, nil
}

// segments splits a path. A trailing slash makes no difference.
func segments(s string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(s, "/"), "/"), "/")
}

// matches reports whether a path matches.
func (p pattern) matches(s string) bool {
	if len(p) == 1 && p[0] == anySegments {
		return true
	}
	segs := segments(s)
	// When the rest does not match, the last ** takes one more segment.
	i, star, took := 0, -1, 0
	for j := 0; j < len(segs); {
		switch {
		case i < len(p) && p[i] == anySegments:
			star, took = i, j
			i++
		case i < len(p) && fits(p[i], segs[j]):
			i, j = i+1, j+1
		case star >= 0:
			took++
			i, j = star+1, took
		default:
			return false
		}
	}
	for i < len(p) && p[i] == anySegments {
		i++
	}
	return i == len(p)
}

func fits(glob, s string) bool {
	ok, err := path.Match(glob, s)
	return ok && err == nil
}

// Matches reports whether a path matches a pattern in a rule's notation.
func Matches(glob, path string) (bool, error) {
	p, err := parsePattern(glob)
	if err != nil {
		return false, fmt.Errorf("path %w", err)
	}
	return p.matches(path), nil
}

// meant reports whether the rule applies to a subject.
func (a *armed) meant(s Subject) bool {
	return a.site == s.Site && a.ofBMC(s.BMC) &&
		(len(a.Method) == 0 || slices.Contains(a.Method, s.Method)) && a.path.matches(s.Path) && a.sent(s.Body)
}

// sent reports whether the body of a request has the values that the rule asks for.
func (a *armed) sent(body []byte) bool {
	if len(a.sends) == 0 {
		return true
	}
	doc, err := decode(body)
	return err == nil && !slices.ContainsFunc(a.sends, func(s pointed) bool { return !s.holds(doc) })
}

func (a *armed) ofBMC(name string) bool { return a.BMC == "" || fits(a.BMC, name) }
