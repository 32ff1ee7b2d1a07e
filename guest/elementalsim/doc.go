// Package elementalsim is the plugin elemental-sim of the Elemental agent. It writes the dummy plugin's
// files, and acts on them as an administrator's path units would: it writes the image that
// install.yaml names to a disk, applies the bootstrap configuration (cloud-config or Ignition)
// after the reboot, takes the image of another version of the operating system, prepares a reset
// and starts the agent again to perform it. So a server goes through all phases without a human.
//
// It emulates the partitions and the toolkit of Elemental's own plugin in no way: the installed
// system is the image with a config drive, and a reset erases its disk, so that the next boot
// comes from the medium with which the server has registered.
package elementalsim
