package lab

import (
	"path/filepath"
	"slices"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/emulator/rack/statedir"
	"github.com/metalab-dev/metalab/emulator/rack/store"
	"github.com/metalab-dev/metalab/scenarios/images"
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

// stateFiles are the files in the state directory that must be as they were when the lab
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

// Owned are the names that a lab makes in its state directory. Of the files in ImagesDir only
// the demo image is the lab's, and none of those in ChartsDir: users put theirs there.
func Owned() statedir.Owned {
	return slices.Concat(rack.Owned(), statedir.Owned{
		settingsFile, portsFile, HostsFile, restoreFile, LogFile, socketFile, view.TokenFile,
		ChartsDir + "/", ImagesDir + "/" + images.DemoRaw, ImagesDir + "/" + images.DemoQCOW2, ImagesDir + "/.metalab-demo.*-*",
		KubeDir + "/kubeconfig", KubeDir + "/lock", KubeDir + "/port", KubeDir + "/pki/*.pem", KubeDir + "/pki/*.key", KubeDir + "/etcd/...",
		controllerDir + "/inband.key", controllerDir + "/inband.pem",
		networkBootDir + "/*.json", networkBootDir + "/*/*.key", systemsDir + "/...", WorkloadsDir + "/...",
		registryDir + "/passwords.json", registryDir + "/manifests/*.json", registryDir + "/blobs/...",
		otherAuthorityDir + "/" + network.CACertFile, otherAuthorityDir + "/" + network.CAKeyFile, otherAuthorityDir + "/" + network.RSAKeyFile,
	})
}

// marks are the files by which the state directory of a lab is known: it has two of them, even
// when one is lost. One alone is a name that other programs use, too.
var marks = []string{rack.LockFile, settingsFile, store.DatabaseFile}

// HoldsLab reports whether a directory is the state directory of a lab, damaged or not.
func HoldsLab(dir string) bool {
	found := 0
	for _, name := range marks {
		if fileExists(filepath.Join(dir, name)) {
			found++
		}
	}
	return found > 1
}

// HoldsPart reports whether a directory holds a part of a lab that only labctl makes: a
// Kubernetes API alone, or the files of a restore that was killed.
func HoldsPart(dir string) bool {
	return fileExists(filepath.Join(dir, KubeDir, "lock")) || fileExists(filepath.Join(dir, rack.RestoredDir))
}

// Remove removes a lab from its state directory, with owned as the names that are the lab's,
// and the directory when nothing else is in it. A lab that it could not remove completely is
// still one for HoldsLab.
func Remove(dir string, owned statedir.Owned) (statedir.Leftovers, error) {
	return owned.Remove(dir, marks...)
}

// CheckSettings returns an error when the settings in a state directory are not those
// that the lab there was stopped with.
func CheckSettings(dir string) error { return integrity.Check(dir, stateFiles[:1], nil) }

// damagedSettings returns the error for settings that cannot be read.
func damagedSettings(dir string, err error) error {
	name := filepath.Join(dir, settingsFile)
	return &integrity.DamageError{Path: name, Detail: "is damaged: " + err.Error(), Fix: settingsFix}
}
