package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// maxWalk bounds the resources that linksResolve reads.
const maxWalk = 400

// linksResolve walks from the system, the manager and the chassis along their
// links.
func linksResolve(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	var queue []string
	seen := map[string]bool{}
	from := map[string]string{}
	add := func(uri, by string) {
		uri, _, _ = strings.Cut(uri, "#")
		if key := strings.TrimSuffix(uri, "/"); uri != "" && !seen[key] && len(seen) < 10*maxWalk {
			seen[key] = true
			from[uri] = by
			queue = append(queue, uri)
		}
	}
	for _, uri := range []string{place.SystemURI, place.ManagerURI, place.ChassisURI} {
		add(uri, "/redfish/v1/")
	}
	var broken []string
	read, ahead := 0, 0 // ahead: the URIs at the front of the queue that readAhead has had
	for len(queue) > 0 && read < maxWalk {
		if ahead == 0 {
			ahead = min(len(queue), maxWalk-read)
			r.readAhead(ctx, queue[:ahead])
		}
		uri := queue[0]
		queue = queue[1:]
		ahead--
		if strings.Contains(uri, "://") {
			continue // a resource of another service
		}
		read++
		if !strings.HasPrefix(uri, "/") {
			broken = append(broken, fmt.Sprintf("%q in %s is not a URI", uri, from[uri]))
			continue
		}
		v, err := r.Page(ctx, uri)
		if o := Judge(err); o.Verdict == Broken {
			return o
		} else if err != nil {
			broken = append(broken, fmt.Sprintf("%v (linked from %s)", err, from[uri]))
			continue
		}
		if !belongs(uri, place) {
			continue // the links of other services are theirs
		}
		for _, link := range links(v) {
			add(link, uri)
		}
	}
	switch {
	case len(broken) > 0:
		return Failed("%d of %d links do not resolve: %s", len(broken), read, strings.Join(broken[:min(len(broken), 5)], "; "))
	case len(queue) > 0:
		return Passed("the first %d resources of %d that are linked", read, len(seen)).With("resources", "%d", read)
	}
	return Passed("").With("resources", "%d", read)
}

// belongs reports whether a resource is of the system, its manager or its chassis.
func belongs(uri string, place *Place) bool {
	for _, root := range []string{place.SystemURI, place.ManagerURI, place.ChassisURI} {
		if root != "" && strings.HasPrefix(uri+"/", strings.TrimSuffix(root, "/")+"/") {
			return true
		}
	}
	return false
}

// maxEntries bounds the members of a collection that a walk reads: logs have
// thousands.
const maxEntries = 50

// links returns the references of a document, sorted.
func links(v Value) []string {
	var all []string
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		if depth > 40 {
			return
		}
		switch x := v.(type) {
		case map[string]any:
			if id, ok := x["@odata.id"].(string); ok && depth > 0 {
				all = append(all, id)
			}
			for name, y := range x {
				if name == "Oem" {
					continue
				}
				walk(y, depth+1)
			}
		case []any:
			for _, y := range x[:min(len(x), maxEntries)] {
				walk(y, depth+1)
			}
		}
	}
	walk(v.Raw(), 0)
	slices.Sort(all)
	return slices.Compact(all)
}
