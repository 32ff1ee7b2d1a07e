package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/guest/rootfs"
	"github.com/metalab-dev/metalab/lab"
)

// cachedRoot is a root file system of an image, for output.
type cachedRoot struct {
	Key          string    `json:"key"`
	Name         string    `json:"name"`
	Architecture string    `json:"architecture"`
	Bytes        int64     `json:"bytes"`
	LastUse      time.Time `json:"lastUse"`
	InUse        bool      `json:"inUse"`
}

func newImageCache(o *options) *cobra.Command {
	var prune bool
	c := &cobra.Command{
		Use:   "cache",
		Short: "List the root file systems of images that this machine keeps unpacked",
		Long: `List the root file systems of users' images that the labs of this user have booted. Each
is unpacked once, into the directory metalab/roots of XDG_CACHE_HOME or ~/.cache, and servers
share it, below their own files. Those that were used last stay, up to 20 GiB.`,
		Example: `  labctl image cache
  # remove all that no lab uses
  labctl image cache --prune`,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := lab.RootCache()
			if err != nil {
				return err
			}
			cache := rootfs.Cache{Dir: dir}
			list := cache.List
			if prune {
				list = func() ([]rootfs.Cached, error) { return cache.Prune(true) }
			}
			found, err := list()
			if err != nil {
				return err
			}
			out, rows := []cachedRoot{}, [][]string{{"KEY", "NAME", "ARCHITECTURE", "MiB", "LAST USE", "IN USE"}}
			for _, x := range found {
				r := cachedRoot(x)
				out = append(out, r)
				rows = append(rows, []string{r.Key[:12], r.Name, r.Architecture, strconv.FormatInt(r.Bytes>>20, 10), r.LastUse.Format(time.DateTime), map[bool]string{true: "yes", false: "no"}[r.InUse]})
			}
			return o.output.print(c.OutOrStdout(), out, rows)
		},
	}
	c.Flags().BoolVar(&prune, "prune", false, "remove those that no lab uses, and list them")
	return c
}
