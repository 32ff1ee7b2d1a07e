// Package reboot reboots the nodes of clusters. One whose LCMMachine has the annotation
// lcm.mirantis.com/graceful-reboot is taken out of service as for an update (package
// maintenance), then spec.rebootRequired makes its agent reboot the server, and when the agent
// has reported the reboot the node is given back and the annotation removed. When the
// annotation is removed before the agent has begun, the node is given back without a reboot. A
// GracefulRebootRequest sets the annotation on one machine of its cluster after the other, while
// the Cluster is Ready.
package reboot
