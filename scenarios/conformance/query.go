package conformance

import (
	"context"
	"slices"
	"strings"
)

// queriesWork compares answers to query parameters with those without.
func queriesWork(ctx context.Context, r *Run) Outcome {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return Judge(err)
	}
	features := root.At("ProtocolFeaturesSupported")
	offered := func(names ...string) bool {
		on, err := features.At(names...).Bool()
		return err == nil && on
	}
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	var used []string
	if offered("ExpandQuery", "NoLinks") {
		used = append(used, "$expand")
		if o := r.expandComplete(ctx, place); o.Verdict != Pass {
			return o
		}
	}
	if offered("SelectQuery") {
		used = append(used, "$select")
		v, _, err := r.Get(ctx, place.SystemURI+"?$select=Id,PowerState")
		if err != nil {
			return Judge(err)
		}
		names, err := v.Names()
		if err != nil {
			return Judge(err)
		}
		if !v.At("Id").Exists() {
			return Failed("$select=Id,PowerState answers without Id")
		}
		for _, n := range names {
			if n != "Id" && n != "PowerState" && !strings.Contains(n, "@") && n != "Name" {
				return Failed("$select=Id,PowerState answers with %s", n)
			}
		}
	}
	if offered("OnlyMemberQuery") && len(place.Systems) == 1 {
		used = append(used, "only")
		v, _, err := r.Get(ctx, root.At("Systems").LinkOr("")+"?only")
		if err != nil {
			return Judge(err)
		}
		if v.At("Id").TextOr("") != place.System.At("Id").TextOr("") {
			return Failed("Systems?only does not answer with the system")
		}
	}
	if len(used) == 0 {
		return Skipped("the BMC advertises no query parameter")
	}
	return Passed("").With("query parameters", "%s", strings.Join(used, " "))
}

// expandComplete compares expanded members with single GETs: each has the
// properties that every resource of its type must have.
func (r *Run) expandComplete(ctx context.Context, place *Place) Outcome {
	collections := []string{place.Root.At("Chassis").LinkOr(""), place.System.At("Memory").LinkOr(""), place.System.At("EthernetInterfaces").LinkOr("")}
	for _, uri := range collections {
		if uri == "" {
			continue
		}
		v, _, err := r.Get(ctx, uri+"?$expand=.")
		if err != nil {
			return Judge(err)
		}
		members, err := v.At("Members").List()
		if err != nil {
			return Judge(err)
		}
		members = members[:min(len(members), 4)]
		var links []string
		for _, m := range members {
			link, err := m.Link()
			if err != nil {
				return Judge(err)
			}
			links = append(links, link)
		}
		r.readAhead(ctx, links)
		for i, link := range links {
			m := members[i]
			single, err := r.Page(ctx, link)
			if err != nil {
				return Judge(err)
			}
			names, err := single.Names()
			if err != nil {
				return Judge(err)
			}
			slices.Sort(names)
			for _, n := range names {
				if !m.At(n).Exists() && !strings.HasPrefix(n, "@") {
					return Warned("%s?$expand=. leaves out %s of %s", uri, n, link).Quirky("expand-broken")
				}
			}
		}
	}
	return Passed("")
}

// collectionsSound reads the collections that clients enumerate.
func collectionsSound(ctx context.Context, r *Run) Outcome {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return Judge(err)
	}
	uris := []string{root.At("Systems").LinkOr(""), root.At("Managers").LinkOr(""), root.At("Chassis").LinkOr("")}
	place, err := r.Place(ctx)
	if err == nil {
		for _, name := range []string{"EthernetInterfaces", "Storage", "Processors", "Memory", "VirtualMedia", "LogServices"} {
			uris = append(uris, place.System.At(name).LinkOr(""))
		}
		uris = append(uris, place.System.At("Boot", "BootOptions").LinkOr(""), place.System.At("Boot", "Certificates").LinkOr(""))
		for _, name := range []string{"EthernetInterfaces", "VirtualMedia", "LogServices"} {
			uris = append(uris, place.Manager.At(name).LinkOr(""))
		}
	}
	for _, service := range []struct{ service, collection string }{
		{"UpdateService", "FirmwareInventory"}, {"AccountService", "Accounts"}, {"Tasks", "Tasks"}, {"EventService", "Subscriptions"}, {"JobService", "Jobs"},
	} {
		uri, err := root.At(service.service).Link()
		if err != nil {
			continue
		}
		v, err := r.Page(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		uris = append(uris, v.At(service.collection).LinkOr(""))
	}
	o := Passed("")
	paged := false
	slices.Sort(uris)
	uris = slices.Compact(uris)
	r.readAhead(ctx, uris)
	for _, uri := range uris {
		if uri == "" {
			continue
		}
		v, err := r.Page(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		if v.At("Members").Exists() && v.At("Members").Null() {
			return Failed("Members of %s is null", uri).Quirky("members-null")
		}
		members, err := r.Members(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		count, err := v.At("Members@odata.count").Number()
		if err != nil {
			return Judge(err)
		}
		if int(count) != len(members) {
			return Failed("%s has Members@odata.count %v and %d members", uri, count, len(members))
		}
		paged = paged || v.At("Members@odata.nextLink").Exists()
	}
	if paged {
		o = Warned("collections come in pages: clients must follow Members@odata.nextLink").Quirky("collections-paged")
	}
	return o
}
