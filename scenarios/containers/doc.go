// Package containers tests the lab in containers: the rack, the Kubernetes API and
// lab-controller run from one image (make image) on a private network. The container
// engine pauses, kills and disconnects them. The tests use what an operator uses:
// commands in containers, and kubectl.
//
// Its tests need a container engine and that image: see scenarios/prerequisites.
package containers
