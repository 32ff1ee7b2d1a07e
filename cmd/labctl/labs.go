package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
)

// A lab lives in any directory. So that labctl ls finds all of a user's labs, each
// has a file in one directory, beside the default state directory. The file contains
// the path of the lab's directory, and its name is made of that path.

// labsDir returns the directory that has a file for each lab of this user.
func labsDir() (string, error) {
	dir, err := defaultState()
	return dir + "-labs", err
}

func labEntry(state string) (string, error) {
	dir, err := labsDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(state))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])), nil
}

// rememberLab adds a lab to those that labctl ls lists.
func rememberLab(state string) error {
	name, err := labEntry(state)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("list of labs: %w", err)
	}
	if err := os.WriteFile(name, []byte(state+"\n"), 0o600); err != nil {
		return fmt.Errorf("list of labs: %w", err)
	}
	return nil
}

// forgetLab removes a lab from those that labctl ls lists.
func forgetLab(state string) error {
	name, err := labEntry(state)
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list of labs: %w", err)
	}
	return nil
}

// knownLabs returns the state directories of this user's labs, and forgets those
// that are gone.
func knownLabs() (states []string, err error) {
	dir, err := labsDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list of labs: %w", err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("list of labs: %w", err)
		}
		state := strings.TrimSuffix(string(b), "\n")
		if lab.HoldsLab(state) {
			states = append(states, state)
		} else if err := forgetLab(state); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// labLine is a lab in the list.
type labLine struct {
	State  string `json:"state"`  // directory
	Status string `json:"status"` // running, stopped, or why it cannot be read
	Hosts  int    `json:"hosts"`
	Speed  string `json:"speed"`
	PID    int    `json:"pid,omitempty"`
	// Ended says how the last process ended, and what to do, unless that needs no
	// explanation.
	Ended string `json:"ended,omitempty"`
}

func newList(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the labs of this user",
		Long: `List the labs of this user, running or not: those that labctl up has started in any
directory and whose directory still exists.`,
		Example: "  labctl ls\n  labctl ls -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			states, err := knownLabs()
			if err != nil {
				return err
			}
			all, rows := []labLine{}, [][]string{{"STATE", "STATUS", "HOSTS", "SPEED", "PID"}}
			for _, state := range states {
				l := labLine{State: state, Status: "stopped"}
				if st, err := control.NewClient(state).Status(c.Context()); err == nil {
					l.Status, l.Hosts, l.Speed, l.PID = "running", st.Hosts, st.Speed, st.PID
				} else if s, _, err := lab.LoadSettings(state); err == nil {
					l.Hosts, l.Speed = s.Hosts, s.Speed
				} else {
					l.Status = err.Error()
				}
				if e := (&options{state: state}).ending(); e != nil && l.PID == 0 {
					l.Ended = fmt.Sprintf("%s: %s", e, e.Fix)
				}
				pid := ""
				if l.PID != 0 {
					pid = strconv.Itoa(l.PID)
				}
				all, rows = append(all, l), append(rows, []string{l.State, l.Status, strconv.Itoa(l.Hosts), l.Speed, pid})
			}
			if err := o.output.print(c.OutOrStdout(), all, rows); err != nil || !o.output.text() {
				return err
			}
			for _, l := range all {
				if l.Ended != "" {
					fmt.Fprintf(c.ErrOrStderr(), "The lab in %s has stopped: %s.\n", l.State, l.Ended)
				}
			}
			return nil
		},
	}
}
