package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newHostFirmware(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "firmware",
		Short: "List and update the firmware of a server",
		Example: `  labctl host firmware ls node-0
  labctl host firmware update node-0 bios http://192.0.2.1/bios.img --wait
  labctl host firmware update node-0 nic:1 ./nic.img`,
	}
	c.AddCommand(newFirmwareList(o), newFirmwareUpdate(o))
	return c
}

func newFirmwareList(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "ls HOST", Short: "List components and their versions", Example: "  labctl host firmware ls node-0 -o json",
		Args: usage.Arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			return forHosts(c, o, args[0], func(_ *control.Client, host string) ([]bmc.Component, error) {
				return components(c.Context(), o, host)
			}, componentRows)
		},
	}
}

// components reads the firmware components of a host.
func components(ctx context.Context, o *options, host string) ([]bmc.Component, error) {
	client, err := dial(ctx, o, host)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found, err := client.Components(ctx)
	if err != nil {
		return nil, err
	}
	all := []bmc.Component{}
	for _, one := range found {
		if one, err = client.Component(ctx, one.Name); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func componentRows(all []bmc.Component) [][]string {
	rows := [][]string{{"COMPONENT", "VERSION", "HEALTH", "UPDATE"}}
	for _, one := range all {
		under := ""
		if one.Updating {
			under = "under way"
		}
		rows = append(rows, []string{one.Name, one.Version, one.Health, under})
	}
	return rows
}

// updated is a firmware update for output.
type updated struct {
	Task    string `json:"task,omitempty"`
	State   string `json:"state"`
	Percent int    `json:"percent"`
	Text    string `json:"text,omitempty"`
}

func newFirmwareUpdate(o *options) *cobra.Command {
	wait := false
	c := &cobra.Command{
		Use:   "update HOST COMPONENT IMAGE",
		Short: "Install firmware",
		Long: `Install firmware. IMAGE is a URL that the BMC fetches, or a file that is sent to it.
labctl host firmware ls lists the components. An update that waits for a restart of
the server continues after one: labctl host power HOST ForceRestart.`,
		Example: "  labctl host firmware update node-0 bios http://192.0.2.1/bios.img --wait",
		Args:    usage.Arguments("HOST", "COMPONENT", "IMAGE"), ValidArgsFunction: o.completeUpdate,
		RunE: func(c *cobra.Command, args []string) error {
			failed := false
			err := forHosts(c, o, args[0], func(_ *control.Client, host string) (updated, error) {
				client, err := dial(c.Context(), o, host)
				if err != nil {
					return updated{}, err
				}
				defer client.Close()
				task, err := install(c.Context(), client, args[1], args[2])
				if err != nil {
					return updated{}, err
				}
				return followTask(c.Context(), client, task, wait)
			}, func(out updated) [][]string {
				failed = failed || out.State == string(bmc.TaskFailed)
				return [][]string{{"TASK", "STATE", "PERCENT", "TEXT"}, {out.Task, out.State, strconv.Itoa(out.Percent), out.Text}}
			})
			if failed {
				err = errors.Join(err, errors.New("the update has failed"))
			}
			return err
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until the update has completed, has failed or waits for a restart of the server")
	return c
}

// completeUpdate completes the host, its firmware components, and a file.
func (o *options) completeUpdate(c *cobra.Command, args []string, part string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeHosts(o)(c, args, part)
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if o.resolve(c) == nil {
		names = o.componentsOf(c.Context(), args[0])
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// componentsOf returns the firmware components of a host, or none when it cannot be
// asked: a completion has no errors to show.
func (o *options) componentsOf(ctx context.Context, host string) (names []string) {
	client, err := dial(ctx, o, host)
	if err != nil {
		return nil
	}
	defer client.Close()
	all, err := client.Components(ctx)
	if err != nil {
		return nil
	}
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names
}

func install(ctx context.Context, client redfishClient, component, image string) (string, error) {
	if strings.Contains(image, "://") {
		return client.Update(ctx, component, image)
	}
	f, err := os.Open(image)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	return client.Push(ctx, component, filepath.Base(image), f, info.Size())
}

// followEvery is the interval at which a task is polled.
const followEvery = time.Second

// followTask reads a task, once or until it ends or waits for the user. It waits for
// a BMC that restarts with its new firmware.
func followTask(ctx context.Context, client redfishClient, task string, wait bool) (updated, error) {
	if task == "" {
		return updated{State: string(bmc.TaskRunning), Text: "the BMC gives no task for it"}, nil
	}
	for {
		t, err := client.Task(ctx, task)
		away := errors.Is(err, bmc.ErrUnreachable) && wait
		if err != nil && !away {
			return updated{}, fmt.Errorf("%s: %w", task, err)
		}
		if !wait || !away && t.State != bmc.TaskRunning {
			return updated{Task: task, State: string(t.State), Percent: t.Percent, Text: t.Text}, nil
		}
		select {
		case <-ctx.Done():
			return updated{}, context.Cause(ctx)
		case <-time.After(followEvery):
		}
	}
}
