package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/cmd/labctl/crash"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/emulator/rack/statedir"
	"github.com/metalab-dev/metalab/emulator/rack/store"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/shards"
)

// owned returns the names that labctl makes in the state directory of a lab: all others are
// the user's, and labctl down --delete leaves them.
func owned() (statedir.Owned, error) {
	one := slices.Concat(lab.Owned(), crash.Owned(), statedir.Owned{
		"snapshot-*.part", // the snapshot of a recording, while labctl up --from reads it
		day2Dir + "/" + day2ClusterFile, day2Dir + "/" + day2ConfigurationFile,
		lab.ImagesDir + "/" + seedPrefix + "*",
	})
	for _, name := range day2Modules {
		files, err := moduleFiles(builtin + name)
		if err != nil {
			return nil, err
		}
		_, m, err := module.Build(files)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		at := lab.ImagesDir + "/" + m.FileName()
		one = append(one, at, at+".*.part")
	}
	shard := append(one.Below(shards.Dir+"/"+shards.Pattern), shards.Dir+"/"+shards.Pattern+"/"+shards.AddressFile)
	return slices.Concat(one, shard, statedir.Owned{shards.Dir + "/" + shards.TokenFile, shards.AddressFile}), nil
}

// inVacant are the names that may be in a directory without a lab that a lab is about to take:
// what one that has never come up leaves, images and charts that are to be in the lab, and what
// a new file system has.
var inVacant = slices.Concat(crash.Owned(), statedir.Owned{
	lab.LogFile, rack.LockFile, space.BallastFile, store.DatabaseFile + ".part", "models/profiles/*", "models/registries/*", "models/dialects/*", "snapshot-*.part",
	lab.ImagesDir + "/...", lab.ChartsDir + "/...", "lost+found/...",
})

// authority are the names in the directory of a shard that got its authority, and did not
// come up.
var authority = statedir.Owned{network.CACertFile, network.CAKeyFile, shards.AddressFile}

// claim returns an error when the state directory has something else than a lab in it, before
// anything is written there. Names in also may be there.
func (o *options) claim(also ...string) error {
	if lab.HoldsLab(o.state) || lab.HoldsPart(o.state) {
		return nil
	}
	names, err := append(slices.Clone(inVacant), also...).Foreign(o.state)
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s holds no lab, and is not empty: it has %s: give --state a directory that is new, empty or a lab's, such as %s",
		o.state, some(names), filepath.Join(o.state, "lab"))
}

// some lists up to two names.
func some(names []string) string {
	switch n := len(names); n {
	case 1:
		return names[0]
	case 2:
		return names[0] + " and " + names[1]
	default:
		return fmt.Sprintf("%s, %s and %d more", names[0], names[1], n-2)
	}
}

// removeLab removes the lab from the state directory, and names the files that are still there.
func (o *options) removeLab(how string, out io.Writer) error {
	names, err := owned()
	if err != nil {
		return err
	}
	left, err := lab.Remove(o.state, names)
	if err != nil {
		return fmt.Errorf("remove the lab: %w", err)
	}
	fmt.Fprintf(out, "The lab in %s is %s.\n", o.state, how)
	if n := len(left.Foreign); n > 0 {
		fmt.Fprintln(out, "Not the lab's, and still there:")
		const most = 10
		for _, name := range left.Foreign[:min(n, most)] {
			fmt.Fprintln(out, "  "+name)
		}
		if n > most {
			fmt.Fprintf(out, "  and %d more\n", n-most)
		}
	}
	for _, to := range left.Targets {
		fmt.Fprintf(out, "A link from the lab to %s is removed; what is there is still there.\n", to)
	}
	if errors.Is(left.Dir, statedir.ErrLink) {
		to, err := os.Readlink(o.state)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s is a link to %s: both are still there, because labctl has made neither.\n", o.state, to)
	} else if left.Dir != nil {
		fmt.Fprintf(out, "The directory is empty and still there: %s.\n", strings.TrimPrefix(left.Dir.Error(), "remove "))
	}
	return nil
}
