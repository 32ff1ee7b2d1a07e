package conformance

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// rootChecks are the checks of the protocol of DSP0266.
var rootChecks = []Check{
	{
		ID: "ROOT-001", Title: `/redfish is {"v1":"/redfish/v1/"}`, Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "discovery of the service fails", Remedy: "give clients the path /redfish/v1/ and report the defect to the vendor",
		After: []string{"NET-001"}, Run: versionsListed,
	},
	{
		ID: "ROOT-002", Title: "the service root needs no authentication, all else does", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "data leaks, or probes without credentials fail", Remedy: "update the firmware",
		After: []string{"NET-001"}, Run: rootOpen,
	},
	{
		ID: "ROOT-003", Title: "Vendor, Product, UUID and RedfishVersion 1.6 or later", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "clients do not detect the driver", Remedy: "name the driver in the client's configuration",
		After: []string{"ROOT-001", "AUTH-001"}, Run: rootIdentifies,
	},
	{
		ID: "ROOT-004", Title: "/redfish/v1 equals /redfish/v1/", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "301 and 404 loops", Remedy: "use the spelling of the BMC's links",
		After: []string{"AUTH-001"}, Run: slashTolerated,
	},
	{
		ID: "ROOT-005", Title: "an unknown URI is answered 404 with an extended error", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "clients misread errors", Remedy: "update the firmware",
		After: []string{"AUTH-001"}, Run: unknownURI,
	},
	{
		ID: "ROOT-006", Title: "$expand, $select and only work as advertised", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "fields are missing in expanded collections", Remedy: "disable $expand in the client",
		After: []string{"ROOT-001", "AUTH-001"}, Run: queriesWork,
	},
	{
		ID: "ROOT-007", Title: "collections: Members@odata.count, nextLink, Members is an array", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "the inventory is empty or incomplete", Remedy: "update the firmware, or use a client that follows nextLink",
		After: []string{"ROOT-001", "AUTH-001"}, Run: collectionsSound,
	},
	{
		ID: "ROOT-008", Title: "every link from System, Manager and Chassis resolves", Level: ReadOnly, Protocol: Redfish, Step: Inspect,
		Predicts: "walking clients fail", Remedy: "update the firmware",
		After: []string{"SYS-001"}, Run: linksResolve,
	},
	{
		ID: "ROOT-009", Title: "headers Link, Allow, OData-Version and Cache-Control", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "clients do not detect what is writable", Remedy: "none is needed for metal3",
		After: []string{"AUTH-001"}, Run: headersSent,
	},
	{
		ID: "ROOT-010", Title: "ETag on GET; If-None-Match is answered 304", Level: ReadOnly, Protocol: Redfish, Step: Prepare,
		Predicts: "If-Match fails on writes", Remedy: "disable ETags in the client",
		After: []string{"SYS-001"}, Run: etagsWork,
	},
	{
		ID: "ROOT-011", Title: "the extended error is a list with MessageId", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "clients retry wrongly", Remedy: "use a client that tolerates an object",
		After: []string{"AUTH-001"}, Run: errorsExtended,
	},
}

// versionsListed reads the list of versions (DSP0266, "Protocol version").
func versionsListed(ctx context.Context, r *Run) Outcome {
	resp, err := r.Do(ctx, Request{URI: "/redfish", Auth: Anonymous})
	if err != nil {
		return Judge(err)
	}
	if resp.Status != http.StatusOK {
		return Failed("GET /redfish: %s", resp.Problem())
	}
	v, err := resp.JSON()
	if err != nil {
		return Judge(err)
	}
	v1, err := v.At("v1").Text()
	if err != nil {
		return Judge(err)
	}
	if v1 != "/redfish/v1/" {
		return Failed(`v1 of /redfish is %q, not "/redfish/v1/"`, v1)
	}
	return Passed("")
}

// rootOpen reads the service root and other resources without credentials.
func rootOpen(ctx context.Context, r *Run) Outcome {
	resp, err := r.Do(ctx, Request{URI: "/redfish/v1/", Auth: Anonymous})
	if err != nil {
		return Judge(err)
	}
	if resp.Status != http.StatusOK {
		return Failed("the service root without credentials: %s", resp.Problem())
	}
	root, err := resp.JSON()
	if err != nil {
		return Judge(err)
	}
	asked, odd := 0, ""
	for _, name := range []string{"Systems", "Managers", "Chassis", "AccountService", "SessionService", "UpdateService", "EventService", "TaskService", "Tasks"} {
		uri, err := root.At(name).Link()
		if err != nil {
			continue
		}
		asked++
		resp, err := r.Do(ctx, Request{URI: uri, Auth: Anonymous})
		if err != nil {
			return Judge(err)
		}
		switch {
		case resp.Status/100 == 2:
			return Failed("%s is readable without credentials", uri)
		case resp.Status != http.StatusUnauthorized:
			odd = fmt.Sprintf("%s without credentials is answered %d, not 401", uri, resp.Status)
		}
	}
	switch {
	case asked == 0:
		return Failed("the service root has no link to Systems, Managers or Chassis")
	case odd != "":
		return Warned("%s", odd)
	}
	return Passed("")
}

// leastVersion is the least version that the profile of OpenStack Ironic requires of
// RedfishVersion.
var leastVersion = []int{1, 6, 0}

// rootIdentifies reads what clients choose a driver by.
func rootIdentifies(ctx context.Context, r *Run) Outcome {
	root, err := r.Page(ctx, "/redfish/v1/")
	if err != nil {
		return Judge(err)
	}
	version, err := root.At("RedfishVersion").Text()
	if err != nil {
		return Judge(err)
	}
	var parts []int
	for p := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(p)
		if err != nil {
			return Failed("RedfishVersion is %q, not like 1.6.0", version)
		}
		parts = append(parts, n)
	}
	o := Passed("").With("RedfishVersion", "%s", version)
	if slices.Compare(parts, leastVersion) < 0 {
		o.Verdict, o.Reason = Fail, fmt.Sprintf("RedfishVersion is %s, earlier than 1.6.0", version)
		return o
	}
	var missing []string
	for _, name := range []string{"Vendor", "Product", "UUID"} {
		text := root.At(name).TextOr("")
		if text == "" {
			missing = append(missing, name)
			continue
		}
		o = o.With(name, "%s", text)
	}
	if len(missing) > 0 {
		o.Verdict, o.Reason = Warn, "the service root has no "+strings.Join(missing, ", ")
	}
	return o
}

// slashTolerated reads resources with and without a slash at the end.
func slashTolerated(ctx context.Context, r *Run) Outcome {
	with, _, err := r.Get(ctx, "/redfish/v1/")
	if err != nil {
		return Judge(err)
	}
	resp, err := r.Do(ctx, Request{URI: "/redfish/v1"})
	if err != nil {
		return Judge(err)
	}
	redirected := resp.Status/100 == 3 && strings.HasSuffix(resp.Header.Get("Location"), "/redfish/v1/")
	if !redirected {
		if resp.Status != http.StatusOK {
			return Failed("GET /redfish/v1: %s", resp.Problem())
		}
		without, err := resp.JSON()
		if err != nil {
			return Judge(err)
		}
		for _, name := range []string{"Id", "UUID", "RedfishVersion"} {
			if !reflect.DeepEqual(with.At(name).Raw(), without.At(name).Raw()) {
				return Failed("%s of /redfish/v1 and of /redfish/v1/ differ", name)
			}
		}
	}
	systems := strings.TrimSuffix(with.At("Systems").LinkOr("/redfish/v1/Systems"), "/")
	for _, uri := range []string{systems, systems + "/"} {
		resp, err := r.Do(ctx, Request{URI: uri})
		if err != nil {
			return Judge(err)
		}
		if resp.Status != http.StatusOK && resp.Status/100 != 3 {
			return Warned("GET %s: %s", uri, resp.Problem())
		}
	}
	if redirected {
		return Warned("/redfish/v1 redirects to /redfish/v1/")
	}
	return Passed("")
}

// noSuchResource is a URI that no BMC has.
const noSuchResource = "/redfish/v1/Systems/labctl-conformance-no-such-system"

// unknownURI asks for a resource that does not exist.
func unknownURI(ctx context.Context, r *Run) Outcome {
	for _, uri := range []string{"/redfish/v1/NoSuchResource", noSuchResource} {
		resp, err := r.Do(ctx, Request{URI: uri})
		if err != nil {
			return Judge(err)
		}
		if resp.Status != http.StatusNotFound {
			return Failed("GET %s is answered %s, not 404", uri, resp.Problem())
		}
		if v, err := resp.JSON(); err != nil || !v.At("error", "@Message.ExtendedInfo").Exists() {
			return Warned("the 404 of %s has no extended error", uri)
		}
	}
	return Passed("")
}

// headersSent looks at the headers that DSP0266 requires of a GET's response.
func headersSent(ctx context.Context, r *Run) Outcome {
	uris := []string{"/redfish/v1/"}
	if place, err := r.Place(ctx); err == nil {
		uris = append(uris, place.SystemURI)
	}
	var missing []string
	for _, uri := range uris {
		_, resp, err := r.Get(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
			return Failed("the Content-Type of %s is %q, not application/json", uri, kind)
		}
		if v := resp.Header.Get("OData-Version"); v != "4.0" {
			missing = append(missing, fmt.Sprintf("OData-Version is %q in %s", v, uri))
		}
		if !strings.Contains(strings.Join(resp.Header.Values("Link"), ","), "describedby") {
			missing = append(missing, "no Link to the schema of "+uri)
		}
		for _, name := range []string{"Allow", "Cache-Control"} {
			if resp.Header.Get(name) == "" {
				missing = append(missing, "no "+name+" in "+uri)
			}
		}
	}
	if len(missing) > 0 {
		return Warned("%s", strings.Join(missing, "; "))
	}
	return Passed("")
}

// etagsWork reads the system's ETag, and again with If-None-Match.
func etagsWork(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	_, resp, err := r.Get(ctx, place.SystemURI)
	if err != nil {
		return Judge(err)
	}
	values, sent := resp.Header["Etag"]
	tag := strings.Join(values, "")
	switch {
	case !sent:
		return Warned("%s has no ETag", place.SystemURI)
	case tag == "":
		return Failed("the ETag of %s is empty", place.SystemURI).Quirky("etag-empty")
	case strings.HasPrefix(tag, `""`):
		return Failed("the ETag of %s has two pairs of quotes: %s", place.SystemURI, tag).Quirky("etag-double-quoted")
	case !strings.HasPrefix(strings.TrimPrefix(tag, "W/"), `"`):
		return Failed("the ETag of %s has no quotes: %s", place.SystemURI, tag)
	}
	o := Passed("").With("ETag", "%s", etagKind(tag))
	again, err := r.Do(ctx, Request{URI: place.SystemURI, Header: http.Header{"If-None-Match": {tag}}})
	if err != nil {
		return Judge(err)
	}
	switch {
	case again.Status == http.StatusNotModified:
		return o
	case again.Status == http.StatusOK && again.Header.Get("ETag") != tag:
		o.Verdict, o.Reason = Warn, "the ETag of "+place.SystemURI+" changes between two reads"
	case again.Status == http.StatusOK:
		o.Verdict, o.Reason = Warn, "If-None-Match with the present ETag is answered 200, not 304"
	default:
		return Failed("GET %s with If-None-Match: %s", place.SystemURI, again.Problem())
	}
	return o
}

func etagKind(tag string) string {
	if strings.HasPrefix(tag, "W/") {
		return "weak"
	}
	return "strong"
}

// errorsExtended looks at the extended information of an error (DSP0266, "Error
// responses").
func errorsExtended(ctx context.Context, r *Run) Outcome {
	resp, err := r.Do(ctx, Request{URI: noSuchResource})
	if err != nil {
		return Judge(err)
	}
	if resp.Status < 400 {
		return Failed("GET %s is answered %d", resp.URI, resp.Status)
	}
	v, err := resp.JSON()
	if err != nil {
		return Judge(err)
	}
	info := v.At("error", "@Message.ExtendedInfo")
	list, err := info.List()
	if err != nil {
		o := Judge(err)
		switch info.Raw().(type) {
		case string:
			o.Quirks = []Quirk{{Name: "extendedinfo-object", Values: map[string]string{"as": "text"}}}
		case map[string]any:
			o.Quirks = []Quirk{{Name: "extendedinfo-object"}}
		}
		return o
	}
	if len(list) == 0 {
		return Failed("%s is empty", info.Path())
	}
	for _, m := range list {
		id, err := m.At("MessageId").Text()
		if err != nil {
			return Judge(err)
		}
		if strings.Count(id, ".") < 2 {
			return Warned("MessageId %q is not like Base.1.0.ResourceMissingAtURI", id)
		}
	}
	if one := list[0]; one.At("Severity").Null() && one.At("MessageSeverity").Null() {
		return Warned("the extended error has no severity")
	}
	return Passed("")
}
