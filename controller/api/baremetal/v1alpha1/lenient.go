package v1alpha1

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The fields of this file have other types in other versions of the API. All are read, and the
// newer one is written.

// GiB is a size in GiB. It is read from a number, or from a quantity such as 100Gi, and is rounded
// down.
type GiB int64

// UnmarshalJSON implements json.Unmarshaler.
func (g *GiB) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("%s: give a size in GiB: %w", b, err)
		}
		*g = GiB(q.Value() >> 30)
		return nil
	}
	var n float64
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("%s: give a size in GiB: %w", b, err)
	}
	*g = GiB(n)
	return nil
}

// NotReadyObjects are the objects of a cluster that are not ready. The public types have those of
// Kubernetes, which nothing here writes; Machines are this project's.
type NotReadyObjects struct {
	// +optional
	Services []ObjectReference `json:"services,omitempty"`
	// +optional
	Deployments []ObjectReference `json:"deployments,omitempty"`
	// +optional
	StatefulSets []ObjectReference `json:"statefulSets,omitempty"`
	// +optional
	DaemonSets []ObjectReference `json:"daemonSets,omitempty"`
	// +optional
	Machines []ObjectReference `json:"machines,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler. A list, which statuses of before have, is that of the
// Machines.
func (o *NotReadyObjects) UnmarshalJSON(b []byte) error {
	var machines []ObjectReference
	if json.Unmarshal(b, &machines) == nil {
		*o = NotReadyObjects{Machines: machines}
		return nil
	}
	type plain NotReadyObjects
	return json.Unmarshal(b, (*plain)(o))
}
