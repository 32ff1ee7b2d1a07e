package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/shards"
)

// inspect returns the status and the hosts of a running lab.
func inspect(ctx context.Context, o *options) (control.Status, []control.Host, error) {
	c := control.NewClient(o.state)
	st, err := c.Status(ctx)
	if err != nil {
		return control.Status{}, nil, err
	}
	hosts, err := c.Hosts(ctx)
	return st, hosts, err
}

func newStatus(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the running lab",
		Example: "  labctl status -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := control.NewClient(o.state).Status(c.Context())
			if err != nil {
				return err
			}
			storage := st.Storage
			if storage == "" {
				storage = "OK"
			}
			rows := [][]string{
				{"pid", strconv.Itoa(st.PID)}, {"state", st.State}, {"kubeconfig", st.Kubeconfig},
				{"hosts", strconv.Itoa(st.Hosts)}, {"speed", st.Speed}, {"images", st.Images},
				{"images by HTTPS", st.SecureImages},
				{"name", st.Name}, {"seed", strconv.FormatUint(st.Seed, 10)}, {"time", st.Time.Format(time.RFC3339)},
				{"faults", strconv.Itoa(st.Faults)}, {"storage", storage}, {"version", st.Version},
			}
			for _, a := range st.ClusterAPIs {
				rows = append(rows, []string{"workload " + a.Cluster, a.Kubeconfig})
			}
			for _, s := range st.Shards {
				rows = append(rows, []string{s.Name, fmt.Sprintf("%d hosts, %s", s.Hosts, s.State)})
			}
			agent := ""
			if st.Agent != nil {
				agent = fmt.Sprintf("%s, SHA-256 %s", st.Agent.URL, st.Agent.SHA256)
			}
			for _, url := range [][]string{{"charts", st.Charts}, {"agent", agent}, {"view", st.View}, {"metrics", st.Metrics}} {
				if url[1] != "" {
					rows = append(rows, url)
				}
			}
			return o.output.print(c.OutOrStdout(), st, rows)
		},
	}
}

func newHosts(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "hosts",
		Short: "List the servers, their addresses and credentials",
		Long: `List the servers, the addresses of their BMCs (REDFISH is the URL of the service root, IPMI the
address and UDP port of IPMI over LAN, "off" where the BMC does not serve it) and the account's
name and password. -o wide adds the next boot source and the MAC address of the NIC that boots.`,
		Example: "  labctl hosts\n  labctl hosts -o wide\n  labctl hosts -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			hosts, err := control.NewClient(o.state).Hosts(c.Context())
			if err != nil {
				return err
			}
			return o.output.print(c.OutOrStdout(), hosts, hostRows(hosts))
		},
	}
}

// hostRows formats hosts as a table.
func hostRows(hosts []control.Host) [][]string {
	rows := [][]string{{"NAME", "PROFILE", "POWER", "+BOOT", "=REDFISH", "?IPMI", "+MAC", "USER", "PASSWORD"}}
	for _, h := range hosts {
		power := h.Power
		switch {
		case power == "": // nobody knows
			power = "BMC " + h.Reach
		case h.Reach != "reachable":
			power += ", BMC " + h.Reach
		}
		rows = append(rows, []string{h.Name, h.Profile, power, h.Boot, h.Redfish, ipmiAddress(h), h.BootMACAddress, h.Username, h.Password})
	}
	return rows
}

// ipmiAddress returns the address of a host's IPMI over LAN for a table.
func ipmiAddress(h control.Host) string {
	if h.IPMI == "" && h.Redfish != "" { // else nobody knows: its shard does not run
		return "off"
	}
	return h.IPMI
}

func newDown(o *options) *cobra.Command {
	remove := false
	c := &cobra.Command{
		Use:   "down",
		Short: "Stop the lab",
		Long: `Stop the lab. With --delete remove it, too: the files that labctl has made in the state
directory, and the directory when nothing else is in it. Files of yours stay, those in its
directories images and charts too, and labctl names them. Links are removed, and what they
lead to is not. A state directory that is a link itself stays, and the one it leads to.`,
		Example: "  labctl down\n  labctl down --delete   # and remove its state",
		RunE: func(c *cobra.Command, _ []string) error {
			err := control.NewClient(o.state).Down(c.Context())
			if running, failed := rack.Running(o.state); errors.Is(err, control.ErrNoLab) && !remove && failed == nil && !running && lab.HoldsLab(o.state) {
				o.say(c.ErrOrStderr(), "The lab in %s is stopped already: labctl up starts it again.\n", o.state)
				return nil
			}
			if err != nil && !(remove && errors.Is(err, control.ErrNoLab)) {
				return err
			}
			out := c.ErrOrStderr()
			if !remove {
				o.say(out, "The lab in %s is stopped: labctl up starts it again.\n", o.state)
				return nil
			}
			if !lab.HoldsLab(o.state) {
				if _, statErr := os.Stat(o.state); errors.Is(statErr, os.ErrNotExist) {
					fmt.Fprintf(out, "There is no lab in %s.\n", o.state)
					return forgetLab(o.state)
				}
				return fmt.Errorf("%s contains no lab and was not removed", o.state)
			}
			if err := shards.Released(c.Context(), o.state); err != nil { // those of a lab that was killed end by themselves
				return err
			}
			how := "stopped and removed"
			if errors.Is(err, control.ErrNoLab) {
				how = "removed"
			}
			if err := o.removeLab(how, out); err != nil {
				return err
			}
			return forgetLab(o.state)
		},
	}
	c.Flags().BoolVar(&remove, "delete", false, "remove the lab from the state directory, with all disks and objects")
	return c
}
