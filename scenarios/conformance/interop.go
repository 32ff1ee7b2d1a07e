package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/conformance/interop"
)

// FindInterop returns the interoperability profile of a name in DMTF's archive: a
// file's name with or without version, of which the newest counts.
func FindInterop(archive fs.FS, name string) (*interop.Profile, error) {
	find := func(name string) ([]byte, error) {
		all, err := fs.Glob(archive, profileFolder+"/*.json")
		if err != nil {
			return nil, err
		}
		exact, newest := "", ""
		for _, file := range all {
			short := strings.TrimSuffix(path.Base(file), ".json")
			plain, _, versioned := strings.Cut(short, ".v")
			switch {
			case short == strings.TrimSuffix(name, ".json"):
				exact = file
			case plain == name && versioned:
				newest = max(newest, file)
			}
		}
		if newest == "" { // the name has a version, or no file has one
			newest = exact
		}
		if newest == "" {
			return nil, fmt.Errorf("the archive has no profile %q", name)
		}
		return readArchive(archive, newest)
	}
	data, err := find(name)
	if err != nil {
		return nil, err
	}
	return interop.Parse(data, find)
}

// The profiles of SCH-002 and, without --interop-profile, SCH-003.
const (
	ironicProfile = "OpenStackIronicProfile"
	ocpProfile    = "OCPServerHardwareManagement"
)

// ironicHolds evaluates the profile of OpenStack Ironic.
func ironicHolds(ctx context.Context, r *Run) Outcome {
	p, err := FindInterop(r.Config().Schemas, ironicProfile)
	if err != nil {
		return Judge(err)
	}
	return r.evaluate(ctx, p)
}

// profileHolds evaluates the profile of --interop-profile, or OCP's.
func profileHolds(ctx context.Context, r *Run) Outcome {
	conf := r.Config()
	p := conf.Interop
	if p == nil {
		found, err := FindInterop(conf.Schemas, ocpProfile)
		if err != nil {
			return Judge(err)
		}
		o := r.evaluate(ctx, found)
		if o.Verdict == Fail {
			o.Verdict = Warn // for procurement: provisioning does not need it
		}
		return o
	}
	return r.evaluate(ctx, p)
}

// maxShown bounds the items that a reason lists.
const maxShown = 8

// evaluate reads the resources that a profile names, and evaluates it. Recommendations that
// are not followed are no violation.
func (r *Run) evaluate(ctx context.Context, p *interop.Profile) Outcome {
	documents, err := r.crawl(ctx)
	if err != nil {
		return Judge(err)
	}
	service := &interop.Service{Documents: documents}
	if service.Registries, err = r.registries(ctx, p.RegistryNames()); err != nil {
		return Judge(err)
	}
	e := p.Evaluate(service)
	var must, should []string
	for _, v := range e.Violations {
		if v.Severity == interop.Mandatory {
			must = append(must, v.String())
		} else {
			should = append(should, v.String())
		}
	}
	show := func(all []string) string {
		text := strings.Join(all[:min(len(all), maxShown)], "; ")
		if n := len(all) - maxShown; n > 0 {
			text += fmt.Sprintf("; and %d more", n)
		}
		return text
	}
	o := Passed("")
	switch {
	case len(must) > 0:
		o = Failed("%s: %d mandatory requirements do not hold: %s", p.Name(), len(must), show(must))
	case len(should) > 0:
		o = Passed("%d recommendations are not followed: %s", len(should), show(should))
	}
	if len(e.NotEvaluated) > 0 {
		o = o.With("not evaluated", "%s", strings.Join(e.NotEvaluated, "; "))
	}
	return o.With("profile", "%s", p.Name()).With("requirements", "%d", e.Checked).With("violations", "%d", len(must)).With("recommendations not followed", "%d", len(should))
}

// registries reads the message registries of some prefixes, as the service names them. The
// text of one that the service does not serve comes from DMTF's archive, if there is one.
func (r *Run) registries(ctx context.Context, prefixes map[string]bool) (all []interop.MessageRegistry, err error) {
	if len(prefixes) == 0 {
		return nil, nil
	}
	place, err := r.Place(ctx)
	if err != nil {
		return nil, err
	}
	uri, err := place.Root.At("Registries").Link()
	if err != nil {
		return nil, nil //nolint:nilerr // a service without registries names none
	}
	files, err := r.Members(ctx, uri)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		v, err := r.Page(ctx, file)
		if o := Judge(err); o.Verdict == Broken {
			return nil, err
		} else if err != nil {
			continue // ROOT-008 reports it
		}
		text := v.At("Registry").TextOr("")
		prefix, version := interop.ParseRegistry(text)
		if !prefixes[prefix] {
			continue
		}
		m := interop.MessageRegistry{Prefix: prefix, Version: version}
		if m.Messages, err = r.messages(ctx, v.At("Location", "0", "Uri").TextOr("")); err != nil {
			return nil, err
		}
		if m.Messages == nil {
			m.Messages = r.archivedMessages(text)
		}
		all = append(all, m)
	}
	return all, nil
}

// messages reads the names of a registry's messages, or returns nil when the service does
// not serve it.
func (r *Run) messages(ctx context.Context, uri string) (map[string]bool, error) {
	if !strings.HasPrefix(uri, "/") {
		return nil, nil
	}
	v, err := r.Page(ctx, uri)
	if o := Judge(err); o.Verdict == Broken {
		return nil, err
	} else if err != nil {
		return nil, nil //nolint:nilerr // NET-009 and ROOT-008 report it
	}
	names, err := v.At("Messages").Names()
	if err != nil {
		return nil, nil //nolint:nilerr // it is no registry of messages
	}
	all := map[string]bool{}
	for _, n := range names {
		all[n] = true
	}
	return all, nil
}

// archivedMessages returns the names of the messages of a registry of DMTF's, of the newest
// errata of its version, or nil.
func (r *Run) archivedMessages(registry string) map[string]bool {
	archive := r.Config().Schemas
	if archive == nil || strings.ContainsAny(registry, `*?[\/`) {
		return nil
	}
	b, err := readArchive(archive, registryFolder+"/"+registry+".json")
	if err != nil { // the name has no errata version, of which the newest counts
		files, _ := fs.Glob(archive, registryFolder+"/"+registry+".*.json") // the name has no pattern
		if len(files) == 0 {
			return nil
		}
		if b, err = readArchive(archive, slices.Max(files)); err != nil {
			return nil
		}
	}
	var of struct{ Messages map[string]struct{} }
	if json.Unmarshal(b, &of) != nil {
		return nil
	}
	all := map[string]bool{}
	for n := range of.Messages {
		all[n] = true
	}
	return all
}

// crawlSkips are parts of a service that no profile of a server is about, and that
// can have thousands of resources.
var crawlSkips = []string{"/JsonSchemas", "/Registries", "/Sessions/", "/SchemaStore", "/MetricDefinitions", "/MetricReports", "/Certificates/"}

// maxCrawl bounds the resources of a crawl.
const maxCrawl = 600

// crawl reads the resources of the service breadth first, with the types on the way
// to each.
func (r *Run) crawl(ctx context.Context) ([]interop.Document, error) {
	type step struct {
		uri     string
		parents []string
	}
	queue, seen := []step{{uri: "/redfish/v1/"}}, map[string]bool{"/redfish/v1": true}
	var all []interop.Document
	for ; len(queue) > 0 && len(all) < maxCrawl; queue = queue[1:] {
		at := queue[0]
		v, resp, err := r.PageResponse(ctx, at.uri)
		if err != nil {
			if errors.As(err, new(*Finding)) && at.uri != "/redfish/v1/" {
				continue // ROOT-008 reports it
			}
			return nil, err
		}
		body, ok := v.Raw().(map[string]any)
		if !ok {
			continue
		}
		d := interop.Document{URI: at.uri, Body: body, Parents: at.parents}
		if allow := resp.Header.Get("Allow"); allow != "" {
			d.Allow = strings.FieldsFunc(allow, func(c rune) bool { return c == ',' || c == ' ' })
		}
		all = append(all, d)
		parents := append(slices.Clone(at.parents), d.Type())
		further := links(v)
		if d.Type() == "LogEntryCollection" {
			further = further[:min(len(further), 2)] // one entry is like the others
		}
		for _, link := range further {
			link, _, _ = strings.Cut(link, "#")
			key := strings.TrimSuffix(link, "/")
			if seen[key] || !strings.HasPrefix(link, "/redfish/v1") || slices.ContainsFunc(crawlSkips, func(s string) bool { return strings.Contains(link, s) }) {
				continue
			}
			seen[key] = true
			// What is not below the resource is another branch: its way is not this one.
			way := parents
			if !strings.HasPrefix(key, strings.TrimSuffix(at.uri, "/")+"/") {
				way = nil
			}
			queue = append(queue, step{link, way})
		}
	}
	return all, nil
}
