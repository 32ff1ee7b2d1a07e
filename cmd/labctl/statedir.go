package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/cmd/labctl/crash"
	"github.com/metalab-dev/metalab/controller/hostos/module"
	"github.com/metalab-dev/metalab/emulator/lab/statedir"
	"github.com/metalab-dev/metalab/scenarios/shards"
	"github.com/metalab-dev/metalab/scenarios/world"
)

// owned returns the names that labctl makes in the state directory of a lab: all others are
// the user's, and labctl down --delete leaves them.
func owned() (statedir.Owned, error) {
	one := slices.Concat(world.Owned(), crash.Owned(), statedir.Owned{
		"snapshot-*.part", // of a recording, while labctl up --from reads it
		day2Dir + "/" + day2ClusterFile, day2Dir + "/" + day2ConfigurationFile,
		world.ImagesDir + "/" + seedPrefix + "*",
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
		at := world.ImagesDir + "/" + m.FileName()
		one = append(one, at, at+".*.part")
	}
	shard := append(one.Below(shards.Dir+"/"+shards.Pattern), shards.Dir+"/"+shards.Pattern+"/"+shards.AddressFile)
	return slices.Concat(one, shard, statedir.Owned{shards.Dir + "/" + shards.TokenFile, shards.AddressFile}), nil
}

// removeLab removes the lab from the state directory, and says what is still there.
func (o *options) removeLab(how string, out io.Writer) error {
	names, err := owned()
	if err != nil {
		return err
	}
	left, err := world.Remove(o.state, names)
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
