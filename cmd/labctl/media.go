package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newMedia(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:     "media",
		Short:   "List, insert and eject virtual media",
		Example: "  labctl media ls node-0\n  labctl media insert node-0 http://192.0.2.1/boot.iso",
	}
	rows := func(m []control.Media) [][]string {
		rows := [][]string{{"SLOT", "INSERTED", "SIZE", "IMAGE"}}
		for _, x := range m {
			rows = append(rows, []string{x.Slot, fmt.Sprint(x.Inserted), size(x.Size), x.Image})
		}
		return rows
	}
	// first returns the slot to use when none is named.
	first := func(c *cobra.Command, lab *control.Client, host, slot string) (string, error) {
		if slot != "" {
			return slot, nil
		}
		m, err := lab.Media(c.Context(), host)
		if err == nil && len(m) == 0 {
			err = fmt.Errorf("%s has no virtual media", host)
		}
		if err != nil {
			return "", err
		}
		return m[0].Slot, nil
	}
	slot, image, stdin := "", control.Image{}, false

	ls := &cobra.Command{
		Use: "ls HOST", Short: "List the slots of virtual media of a server", Example: "  labctl media ls node-0",
		Args: usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(lab *control.Client, host string) ([]control.Media, error) {
				return lab.Media(c.Context(), host)
			}, rows)
		},
	}
	insert := &cobra.Command{
		Use: "insert HOST URL", Short: "Insert an image that the BMC fetches",
		Long: `Insert an image that the BMC fetches. The command returns when the BMC has fetched
the image, or with the error of the BMC.`,
		Example: `  labctl media insert node-0 http://192.0.2.1/boot.iso
  labctl media insert node-0 https://192.0.2.1/boot.iso --user me --password-stdin < secret`,
		Args: usage.Arguments("HOST", "URL"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			if stdin {
				line, err := bufio.NewReader(c.InOrStdin()).ReadString('\n')
				if line == "" && err != nil {
					return usage.New(errors.New("--password-stdin: standard input has no password"))
				}
				image.Password = strings.TrimRight(line, "\r\n")
			}
			image.URL = args[1]
			return forHosts(c, o, args[0], func(lab *control.Client, host string) ([]control.Media, error) {
				slot, err := first(c, lab, host, slot)
				if err != nil {
					return nil, err
				}
				return lab.InsertMedia(c.Context(), host, slot, image)
			}, rows)
		},
	}
	insert.Flags().BoolVar(&image.WriteProtected, "write-protected", true, "the server can only read the media")
	insert.Flags().StringVar(&image.User, "user", "", "user name for the image's server")
	insert.Flags().BoolVar(&stdin, "password-stdin", false, "read the password for the image's server from standard input")
	eject := &cobra.Command{
		Use: "eject HOST", Short: "Eject an image", Example: "  labctl media eject node-0\n  labctl media eject node-0 --slot Usb",
		Args: usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(lab *control.Client, host string) ([]control.Media, error) {
				slot, err := first(c, lab, host, slot)
				if err != nil {
					return nil, err
				}
				return lab.EjectMedia(c.Context(), host, slot)
			}, rows)
		},
	}
	for _, x := range []*cobra.Command{insert, eject} {
		x.Flags().StringVar(&slot, "slot", "", "slot of the virtual media (default: the first)")
		must(x.RegisterFlagCompletionFunc("slot", o.completeSlot))
	}
	c.AddCommand(ls, insert, eject)
	return c
}

// completeSlot completes the slots of virtual media of the host that is named before.
func (o *options) completeSlot(c *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 && o.resolve(c) == nil {
		slots, _ := control.NewClient(o.state).Media(c.Context(), args[0]) // a completion has no errors to show
		for _, s := range slots {
			ids = append(ids, s.Slot)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
