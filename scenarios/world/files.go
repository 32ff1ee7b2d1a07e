package world

import (
	"os"
	"path/filepath"

	"github.com/metalab-dev/metalab/emulator/lab/integrity"
	"github.com/metalab-dev/metalab/emulator/lab/space"
	"github.com/metalab-dev/metalab/emulator/lab/store"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// The log of a detached lab and the socket of its control API, in the state directory.
const (
	LogFile     = "lab.log"
	socketFile  = "control.sock"
	settingsFix = "move it away and give labctl up the flags that the lab was made with"
	objectsFix  = "move the directory " + KubeDir + "/etcd away: the Kubernetes API then begins without objects," +
		" and labctl kubectl apply -f " + HostsFile + " registers the servers again"
	identityFix = "remove " + controllerDir + ": the controllers then make a new identity, and servers that run the agent boot it again"
	registryFix = "remove the directory " + registryDir + ": the registry then begins with the base image alone, and images are built again"
	keysFix     = "remove the directory " + KubeDir + "/pki: the Kubernetes API then makes new keys and a new kubeconfig"
)

// stateFiles are the files in the state directory that must be as they were when the world
// stopped, in addition to the lab's.
var stateFiles = []integrity.Rule{
	{Pattern: settingsFile, Running: true, Fix: settingsFix},
	{Pattern: portsFile, Running: true, Fix: "remove it: the servers of images and of the agent then listen on other ports"},
	{Pattern: controllerDir + "/*", Running: true, Fix: identityFix},
	{Pattern: networkBootDir + "/*", Fix: "restore a snapshot (labctl snapshot restore FILE), or reset the server (labctl snapshot reset HOST)"},
	{Pattern: KubeDir + "/port", Running: true, Fix: "remove it: the Kubernetes API then listens on another port"},
	{Pattern: KubeDir + "/pki/*", Running: true, Fix: keysFix},
	{Pattern: KubeDir + "/etcd/member/snap/*", Fix: objectsFix},
	{Pattern: KubeDir + "/etcd/member/wal/*", Fix: objectsFix},
	{Pattern: registryDir + "/*.json", Running: true, Fix: registryFix},
	{Pattern: registryDir + "/manifests/*", Fix: registryFix},
	{Pattern: registryDir + "/blobs/*/*", Fix: registryFix},
	{Pattern: HostsFile, Unlisted: true},
	{Pattern: restoreFile, Unlisted: true},
	{Pattern: LogFile, Unlisted: true},
	{Pattern: socketFile, Unlisted: true},
	{Pattern: view.TokenFile, Unlisted: true},
	{Pattern: space.BallastFile, Unlisted: true},
	{Pattern: KubeDir + "/kubeconfig", Unlisted: true},
	{Pattern: KubeDir + "/lock", Unlisted: true},
}

// HoldsLab reports whether a directory is the state directory of a lab, damaged or not.
func HoldsLab(dir string) bool {
	for _, name := range []string{settingsFile, store.DatabaseFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// CheckSettings returns an error when the settings in a state directory are not those
// that the lab there was stopped with.
func CheckSettings(dir string) error { return integrity.Check(dir, stateFiles[:1], nil) }

// damagedSettings returns the error for settings that cannot be read.
func damagedSettings(dir string, err error) error {
	name := filepath.Join(dir, settingsFile)
	return &integrity.DamageError{Path: name, Detail: "is damaged: " + err.Error(), Fix: settingsFix}
}
