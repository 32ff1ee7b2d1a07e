package kube

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tolerant are the resources whose unknown fields get a warning, and are pruned, though the client
// asks for a refusal, as kubectl does by default: manifests for the real product have fields that
// nothing here acts on.
//
// Not among them are those where a misspelt field would do harm, since what it leaves out is a
// limit: a Machine's hostSelector (any server is claimed, and its disks are written) and
// deletionPolicy, a BareMetalHostProfile's disks (another is written), a HostOSConfiguration's
// secretValues and order (another play runs), a HostOSConfigurationModules' url, the machines of a
// GracefulRebootRequest (all are rebooted), the concurrentUpdates of an UpdateGroup, the steps of a
// ClusterUpdatePlan, and the scope of requests and bindings.
var tolerant = map[string][]string{
	"kaas.mirantis.com": {"kaasreleases", "clusterreleases", "proxies", "publickeys", "baremetalhostinventories", "baremetalhostcredentials"},
	"lcm.mirantis.com":  {"lcmclusters", "lcmmachines", "helmbundles"},
	"ipam.mirantis.com": {"subnets", "subnetpools", "l2templates", "ipamhosts", "ipaddrs"},
}

// tolerateUnknown returns a handler that turns a client's demand to refuse unknown fields into one
// for warnings, for the tolerant resources.
func tolerateUnknown(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const parameter = "fieldValidation"
		if !strings.Contains(r.URL.RawQuery, parameter) || !slices.Contains(tolerant[groupOf(r.URL.Path)], resourceOf(r.URL.Path)) {
			next.ServeHTTP(w, r)
			return
		}
		q := r.URL.Query()
		if q.Get(parameter) == metav1.FieldValidationStrict {
			q.Set(parameter, metav1.FieldValidationWarn)
			r = r.Clone(r.Context())
			r.URL.RawQuery = q.Encode()
		}
		next.ServeHTTP(w, r)
	})
}

// groupOf returns the group of /apis/GROUP/VERSION/…, "" for other paths.
func groupOf(path string) string {
	rest, ok := strings.CutPrefix(path, "/apis/")
	if !ok {
		return ""
	}
	group, _, _ := strings.Cut(rest, "/")
	return group
}

// resourceOf returns the resource of /apis/GROUP/VERSION/[namespaces/NAMESPACE/]RESOURCE[/…], ""
// when there is none.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 5 && parts[3] == "namespaces" {
		return parts[5]
	}
	if len(parts) > 3 {
		return parts[3]
	}
	return ""
}
