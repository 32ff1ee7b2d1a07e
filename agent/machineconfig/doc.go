// Package machineconfig is the machine-config daemon: it brings the operating system of a node
// to the rendered MachineConfig and the OS image that the annotations of its Node name, and
// reports on the Node and its MachineConfigNode.
//
// An update has phases, which the file update.json on the node records before each side effect:
// the node is drained, the image is pulled and files and units are written, the image is staged,
// and the node boots it. A daemon that is killed goes on at the recorded phase. With
// LayeredFileWrites Skip (MCO-564) an image is the only carrier of files and units, and the
// daemon writes neither.
//
// The package knows the API, and not how a system boots an image: an OS does (RPMOSTree on a
// real host, the roots of guest/sandbox in a lab). It is a part of a boot image: it links no
// client-go.
package machineconfig
