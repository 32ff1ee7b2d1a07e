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

	"github.com/metalab-dev/metalab/controller/bmc"
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
		Args: arguments("HOST"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := dial(c.Context(), o, args[0])
			if err != nil {
				return err
			}
			defer client.Close()
			found, err := client.Components(c.Context())
			if err != nil {
				return err
			}
			all, rows := []bmc.Component{}, [][]string{{"COMPONENT", "VERSION", "HEALTH", "UPDATE"}}
			for _, one := range found {
				if one, err = client.Component(c.Context(), one.Name); err != nil {
					return err
				}
				under := ""
				if one.Updating {
					under = "under way"
				}
				all, rows = append(all, one), append(rows, []string{one.Name, one.Version, one.Health, under})
			}
			return o.output.print(c.OutOrStdout(), all, rows)
		},
	}
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
		Args:    arguments("HOST", "COMPONENT", "IMAGE"), ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := dial(c.Context(), o, args[0])
			if err != nil {
				return err
			}
			defer client.Close()
			task, err := install(c.Context(), client, args[1], args[2])
			if err != nil {
				return err
			}
			out, err := followTask(c.Context(), client, task, wait)
			if err != nil {
				return err
			}
			rows := [][]string{{"TASK", "STATE", "PERCENT", "TEXT"}, {out.Task, out.State, strconv.Itoa(out.Percent), out.Text}}
			if err := o.output.print(c.OutOrStdout(), out, rows); err != nil {
				return err
			}
			if out.State == string(bmc.TaskFailed) {
				return errors.New("the update has failed")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until the update has completed, has failed or waits for a restart of the server")
	return c
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
