// Package sandbox is an operating system under a root directory of its own, as a booted
// server of a lab has one. Its files are a layer over a base: what differs is stored as an
// OCI image layer (OCI Image Format Specification, "Image Layer Filesystem Changeset"), a
// tar with whiteouts, wherever the caller puts it. Files can be read and written without
// any mount or process.
//
// Commands run on Linux in mount, PID, UTS, IPC, network and user namespaces over that
// root. They see this machine's /usr, or the root file system of an image, read-only below the
// layer, and nothing else of this machine.
// They have the capabilities that containers have by default, no way to gain others, no
// network but loopback, and limits of memory and processes: the kernel's, by control
// groups, and a watcher's, which gives the reason. Where the kernel refuses
// namespaces a command ends with code 126 and the reason.
//
// The program that uses the package runs, started again, as the first process of the
// namespaces, and as systemctl, hostnamectl, reboot, poweroff and the programs of package
// hostprograms in them.
//
// The manager of services is here, and does what systemd's man pages say: a loader reads
// units with their drop-ins, a transaction orders those that start together, and a
// service, timer or path unit runs in a goroutine. No process is needed for it: a unit
// whose program is the caller's (Config.Run) costs none either.
package sandbox
