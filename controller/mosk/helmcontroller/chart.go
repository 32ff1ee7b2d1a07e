package helmcontroller

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// The chart of a Cluster's Helm controller. A change of its files is a new version: clusters have
// the one of before.
const (
	Chart   = "helm-controller"
	Version = "1.2.0"
)

// Archive is the name of the chart's archive in a repository.
const Archive = Chart + "-" + Version + ".tgz"

// Values are the values of the chart.
type Values struct {
	// Image and Tag name lab-controller's image: what make image makes.
	Image string `json:"image,omitempty"`
	Tag   string `json:"tag,omitempty"`
	// Replicas is the number of pods, of which one acts.
	Replicas int `json:"replicas,omitempty"`
	// ClusterRole is a ClusterRole of the cluster that the controller is bound to. "" means roles of
	// the chart's own, for Secrets and ConfigMaps of Namespaces and what Rules has. Where all these
	// are that of the chart, it has no object of the cluster.
	ClusterRole string `json:"clusterRole,omitempty"`
	// Namespaces are those of the releases; empty means that of the chart.
	Namespaces []string `json:"namespaces,omitempty"`
	// Rules are rules of a Role (rbac.authorization.k8s.io/v1) for the kinds of the releases' charts.
	Rules []any `json:"rules,omitempty"`
}

// Defaults are the values that the chart has where nobody gives others.
var Defaults = Values{Image: "metalab", Tag: "devel", Replicas: 1}

// The keys of the Secret NAME-management of a release NAME: the controller's account in the
// management cluster. The chart has the Secret without them.
const (
	KubeconfigKey = "kubeconfig" // it names the file TokenKey beside it, which is read again
	TokenKey      = "token"
	BundleKey     = "bundle" // NAMESPACE/NAME of the HelmBundle
)

// SecretName returns the name of that Secret, which is in the namespace of the release.
func SecretName(release string) string { return release + "-management" }

// Labels are those of the objects of every release of the chart. The label InstanceLabel has the
// name of the release, which is that of its Deployment.
var Labels = map[string]string{"app.kubernetes.io/name": Chart, "app.kubernetes.io/part-of": "metalab"}

// InstanceLabel has the name of the release.
const InstanceLabel = "app.kubernetes.io/instance"

// The annotations by which Helm knows the objects of a release.
const (
	ReleaseAnnotation   = "meta.helm.sh/release-name"
	NamespaceAnnotation = "meta.helm.sh/release-namespace"
)

//go:embed templates
var templates embed.FS

// Files returns the files of the chart by their paths, which begin with its name.
func Files() (map[string][]byte, error) {
	values, err := yaml.Marshal(Defaults)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{
		Chart + "/Chart.yaml":  []byte("apiVersion: v2\nname: " + Chart + "\ndescription: The Helm controller of a cluster, which installs the charts of its HelmBundle\nversion: " + Version + "\n"),
		Chart + "/values.yaml": values,
	}
	return out, fs.WalkDir(templates, "templates", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[Chart+"/"+name], err = templates.ReadFile(name)
		return err
	})
}

// Is reports whether a chart is this one: its name, as NAME or REPOSITORY/NAME, or the URL of its
// archive.
func Is(chart, url string) bool {
	if url != "" {
		file := path.Base(url)
		return strings.HasPrefix(file, Chart+"-") && strings.HasSuffix(file, ".tgz")
	}
	return path.Base(chart) == Chart
}
