package manager

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
)

// needed are kinds of an API group that a controller watches, and what makes a cluster serve them.
type needed struct {
	version schema.GroupVersion
	kinds   []string
	fix     string
}

// elementalNeeds are the kinds that the controllers of elemental watch.
var elementalNeeds = []needed{
	{capi.GroupVersion, []string{"Cluster", "Machine"}, "install Cluster API with clusterctl init, or its definitions with the component cluster-api of controller/config"},
	{elementalv1.GroupVersion, []string{"ElementalRegistration", "ElementalHost", "ElementalMachine", "ElementalCluster"}, "install them with the component elemental of controller/config"},
}

// checkKinds returns an error that names the kinds that a cluster does not serve, and the fix. The
// cache would wait for them for minutes, and name one.
func checkKinds(m meta.RESTMapper, needs []needed) error {
	var errs []error
	for _, n := range needs {
		for _, kind := range n.kinds {
			_, err := m.RESTMapping(schema.GroupKind{Group: n.version.Group, Kind: kind}, n.version.Version)
			if meta.IsNoMatchError(err) {
				err = fmt.Errorf("the cluster has no kind %s of %s: %s", kind, n.version, n.fix)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
