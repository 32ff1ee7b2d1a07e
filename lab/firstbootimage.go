package lab

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// This file boots servers by the cloud-init of their image, where the rack file asks for it.

// firstBoots returns Group.FirstBoot of the hosts.
func firstBoots(hosts []rackfile.Host) map[int]string {
	out := map[int]string{}
	for _, h := range hosts {
		if h.FirstBoot != "" {
			out[h.Index] = h.FirstBoot
		}
	}
	return out
}

// imageCloudInit is the program of an image that boots it.
const imageCloudInit = "usr/bin/cloud-init"

// bootsByImage reports whether the cloud-init of its image boots a system. The console says why not
// where the rack file asks for it.
func (y *systems) bootsByImage(x *system, console io.Writer) bool {
	if y.firstBoots[x.host.Index()] != rackfile.FirstBootImage || x.os.Name != DiskOS {
		return false
	}
	n, err := x.Stat(imageCloudInit) // which finds the root
	why := ""
	switch {
	case x.files.find == nil || x.files.find() == nil:
		why = "the server's files are the lab's"
	case err != nil || !n.Mode.IsRegular():
		why = "the image has no /" + imageCloudInit
	default:
		return true
	}
	_, _ = fmt.Fprintf(console, "cloud-init: firstBoot is image, but %s: the lab reads the data source\n", why) // the console drops what comes late
	return false
}

// Names of the data sources in the directory of seeds (cloud-init, "Instance metadata", "Seeding").
var seedDirs = map[string]string{cloudinit.ConfigDrive: "config_drive", cloudinit.NoCloud: "nocloud"}

const seedsDir = "var/lib/cloud/seed"

// seedOf returns the files by which cloud-init finds a data source: those of the volume as a seed, as
// there are no devices to mount, and the list of data sources that ds-identify(8) would have found.
func seedOf(i cloudinit.Instance) sandbox.Tree {
	sources, out := "None", sandbox.Tree{}
	if i.Source != "" {
		sources = i.Source + ", None"
		for name, b := range i.Files {
			out[path.Join(seedsDir, seedDirs[i.Source], name)] = sandbox.Node{Mode: 0o600, Content: b}
		}
	}
	out["run/cloud-init/cloud.cfg"] = sandbox.File(0o644, "datasource_list: [ "+sources+" ]\n")
	return out
}

// Stages of a boot by cloud-init (cloud-init, "Boot stages"): before the units, and behind them.
var (
	earlyStages = [][]string{{"cloud-init", "init", "--local"}, {"cloud-init", "init"}}
	lateStages  = [][]string{{"cloud-init", "modules", "--mode=config"}, {"cloud-init", "modules", "--mode=final"}}
)

// bootByImage runs the boots of the image's cloud-init, and the units between them. once is called
// when the data source was applied.
func (y *systems) bootByImage(x *system, i cloudinit.Instance, console io.Writer, once func(), fail func(string, error)) {
	b, err := x.ReadFile(instanceFile)
	files := seedOf(i)
	if i.Source != "" && err != nil { // a new installation
		files[machineIDFile] = machineID(x.host, x.os, fmt.Sprint(x.os.Boot))
	}
	if err == nil && strings.TrimSpace(string(b)) != i.ID || err != nil { // what an older data source had goes
		err = x.Remove(seedsDir)
	}
	if err == nil {
		err = y.putWhenThereIsRoom(x, files, fail)
	}
	if err != nil {
		fail("cloud-init", err)
		return
	}
	out := &outputLog{console: console}
	ran := cloudinit.Result{Run: []string{"cloud-init of the image"}}
	if !y.runCommands(x, ran, earlyStages, out) {
		return
	}
	once()
	if err := x.Boot(); err != nil {
		fail("systemd", err)
	}
	y.runCommands(x, ran, lateStages, out)
}
