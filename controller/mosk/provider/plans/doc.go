// Package plans makes the ClusterUpdatePlans of Clusters, and takes their steps
// (docs/statements/mosk.md, H44): one plan for each release that can follow, with a step for
// the control plane, one for each UpdateGroup of workers, and one for the charts. The first
// step that is commenced gives the Cluster the release; a step begins when it is commenced
// and those before it are completed. A release that is written to the Cluster itself
// commences all steps.
//
// The package changes no machine. Once a step has begun, controller/mosk/provider/machines gives
// its machines the release, and controller/mosk/provider/clusters updates the charts.
package plans
