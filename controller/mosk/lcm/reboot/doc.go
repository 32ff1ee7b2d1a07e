// Package reboot reboots the nodes of clusters: one whose LCMMachine has the annotation
// lcm.mirantis.com/graceful-reboot is cordoned and drained, then spec.rebootRequired makes
// its agent reboot the server, and when the agent has reported the reboot the node is
// uncordoned and the annotation removed. When the annotation is removed before the agent has
// begun, the node is uncordoned without a reboot. A GracefulRebootRequest sets the annotation on one
// machine of its cluster after the other.
//
// The package talks to no server, and knows no pod: a Drainer does.
package reboot
