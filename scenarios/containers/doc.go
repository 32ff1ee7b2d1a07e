// Package containers holds the lab in containers: the rack, the Kubernetes API
// and lab-controller as three processes on a private network, out of one image
// (make image), paused, killed and cut off by the engine that runs them. It
// sees what an operator sees: commands in containers, and kubectl.
//
// Its tests need a container engine and that image, and are skipped without
// them; with METALAB_NEED_PROGRAMS set they fail instead.
package containers
