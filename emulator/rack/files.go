package rack

import (
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/emulator/rack/statedir"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// fileRules are the files of a rack that checkFiles checks. The log of the store is not
// among them: the store checks it, and the database of a rack that was closed has all of it.
var fileRules = []integrity.Rule{
	{Pattern: store.DatabaseFile, Fix: "restore a snapshot (labctl snapshot restore FILE)"},
	{Pattern: network.CACertFile, Running: true, Fix: "restore a snapshot (labctl snapshot restore FILE), or remove " + network.CACertFile + " and " + network.CAKeyFile + ", and a new authority is made, which clients have to trust"},
	{Pattern: network.CAKeyFile, Running: true, Fix: "restore a snapshot (labctl snapshot restore FILE), or remove " + network.CACertFile + " and " + network.CAKeyFile + ", and a new authority is made, which clients have to trust"},
	{Pattern: network.RSAKeyFile, Running: true, Fix: "remove it, and a new one is made"},
	{Pattern: modelsDir + "/*/*", Running: true, Fix: "restore a snapshot (labctl snapshot restore FILE)"},
	{Pattern: store.DisksDir + "/*/*", SizeOnly: true, Fix: "restore a snapshot (labctl snapshot restore FILE), or reset the server (labctl snapshot reset HOST), which empties its disks"},
	{Pattern: store.MediaDir + "/*", Large: true, Fix: "restore a snapshot (labctl snapshot restore FILE), or reset the server (labctl snapshot reset HOST)"},
	{Pattern: store.UpdatesDir + "/*", Large: true, Fix: "restore a snapshot (labctl snapshot restore FILE), or reset the server (labctl snapshot reset HOST)"},
	{Pattern: LockFile, Unlisted: true},
}

// Owned are the names that a rack makes in the lab's directory.
func Owned() statedir.Owned {
	return statedir.Owned{
		LockFile, integrity.File, space.BallastFile,
		store.DatabaseFile, store.LogFile, store.MarkFile, store.DisksDir + "/*/*", store.MediaDir + "/*-*", store.UpdatesDir + "/*-*",
		network.CACertFile, network.CAKeyFile, network.RSAKeyFile,
		modelsDir + "/profiles/*", modelsDir + "/registries/*", modelsDir + "/dialects/*",
		RestoredDir + "/...", // files of a restore that was killed
	}
}

// checkFiles checks the files of a rack that is about to open: they are as they were when
// the rack was closed.
func (l *Rack) checkFiles(others []integrity.Rule) error {
	files := slices.Concat(fileRules, others)
	if err := integrity.Check(l.dir, files, nil); err != nil {
		return err
	}
	if err := integrity.Forget(l.dir, files); err != nil {
		return err
	}
	l.files, l.unsealed = files, true
	return nil
}

// SealFiles lists the files that do not change while the rack runs. Should it be killed,
// they are compared with the list when it opens again.
func (l *Rack) SealFiles() error { return integrity.Seal(l.dir, l.files, true) }

// Unlist makes Close list none of the files of Config.Files below a directory, with slashes:
// they are damaged, and a copy that takes their place must be accepted.
func (l *Rack) Unlist(dir string) {
	l.files = slices.DeleteFunc(slices.Clone(l.files), func(r integrity.Rule) bool { return strings.HasPrefix(r.Pattern, dir+"/") })
}

// fileOfHost reports whether a file in a lab's directory, with slashes, is a disk or an
// image of one of some hosts.
func fileOfHost(name string, meant func(host string) bool) bool {
	dir, rest, _ := strings.Cut(name, "/")
	host, _, _ := strings.Cut(rest, "/")
	if dir == store.MediaDir || dir == store.UpdatesDir { // HOST-ID: both may have dashes
		for i := range len(rest) {
			if rest[i] == '-' {
				if host, err := url.PathUnescape(rest[:i]); err == nil && meant(host) {
					return true
				}
			}
		}
		return false
	}
	host, err := url.PathUnescape(host)
	return dir == store.DisksDir && err == nil && meant(host)
}
