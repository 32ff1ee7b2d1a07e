package steps

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

//go:embed cloudinit.py
var cloudInitReader string

// registerCloudInit binds the steps that run Debian's cloud-init.
func (s *scenario) registerCloudInit(sc *stepRegistry) {
	sc.Step(`^Debian's cloud-init finds a "([^"]*)" on the first disk of "([^"]*)", with the host name "([^"]*)" and the address "([^"]*)"$`, "reads the partitions of the disk by sfdisk, probes each by blkid, lets cloud-init's ds-identify name the data source, checks its user data by cloud-init schema, and converts its network data to netplan, which contains the address", s.cloudInitFinds)
}

// dsIdentify is the program of cloud-init that finds data sources before anything else runs.
const dsIdentify = "/usr/lib/cloud-init/ds-identify"

// cloudInit runs the programs of cloud-init in a directory of their own.
type cloudInit struct {
	dir   string
	paths map[string]string // paths of prerequisites, by name
}

func (s *scenario) cloudInitFinds(ctx context.Context, source, name, hostname, address string) error {
	server, err := s.serverOf(name)
	if err != nil {
		return err
	}
	c := cloudInit{paths: map[string]string{}}
	if c.dir, err = os.MkdirTemp(s.dir, "cloud-init-"); err != nil {
		return err
	}
	for _, p := range []string{"cloud-init", "bsdtar", "blkid", "sfdisk", "cloudinit"} {
		if c.paths[p], err = prerequisites.Find(p); err != nil {
			return err
		}
	}
	if err := s.copyDisk(server, c.path("disk.img")); err != nil {
		return err
	}
	drive, err := c.findDrive(ctx)
	if err != nil {
		return err
	}
	if got, err := c.identify(ctx, drive); err != nil || got != source {
		return errors.Join(err, fmt.Errorf("ds-identify finds the data source %q, want %q", got, source))
	}
	return c.read(ctx, drive, hostname, address)
}

// copyBlock is how many bytes of a disk are copied at a time.
const copyBlock = 64 << 10

// copyDisk writes the first disk of a server to a sparse file.
func (s *scenario) copyDisk(server control.Host, name string) error {
	h, ok := s.lab.Rack().Host(server.Name)
	if !ok {
		return fmt.Errorf("the lab has no host %q", server.Name)
	}
	m, err := h.Medium(h.Drives()[0].ID)
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for at := int64(0); at < m.Size(); {
		if at, err = m.NextData(at); errors.Is(err, io.EOF) || at >= m.Size() {
			break
		}
		if err != nil {
			return err
		}
		p := make([]byte, min(copyBlock, m.Size()-at))
		if _, err := m.ReadAt(p, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := f.WriteAt(p, at); err != nil {
			return err
		}
		at += int64(len(p))
	}
	return errors.Join(f.Truncate(m.Size()), f.Close())
}

func (c cloudInit) path(name string) string { return filepath.Join(c.dir, name) }

// run runs a program and returns its standard output.
func (c cloudInit) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if x := new(exec.ExitError); errors.As(err, &x) {
		err = fmt.Errorf("%s %s: %w: %s%s", filepath.Base(program), strings.Join(args, " "), err, out, x.Stderr)
	}
	return out, err
}

// findDrive returns a file with the volume that blkid recognizes as a config drive.
func (c cloudInit) findDrive(ctx context.Context) (string, error) {
	out, err := c.run(ctx, c.paths["sfdisk"], "--json", c.path("disk.img"))
	if err != nil {
		return "", err
	}
	var disk struct {
		Table struct {
			Sector     int64 `json:"sectorsize"`
			Partitions []struct{ Start, Size int64 }
		} `json:"partitiontable"`
	}
	if err := json.Unmarshal(out, &disk); err != nil {
		return "", err
	}
	f, err := os.Open(c.path("disk.img"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	var labels []string
	for i, p := range disk.Table.Partitions {
		name := c.path(fmt.Sprintf("partition-%d", i+1))
		to, err := os.Create(name)
		if err != nil {
			return "", err
		}
		sector := disk.Table.Sector
		_, err = io.Copy(to, io.NewSectionReader(f, p.Start*sector, p.Size*sector))
		if err := errors.Join(err, to.Close()); err != nil {
			return "", err
		}
		label, _ := c.run(ctx, c.paths["blkid"], "-p", "-o", "value", "-s", "LABEL", name) // it ends with 2 where it recognizes nothing
		if labels = append(labels, strings.TrimSpace(string(label))); labels[i] == "config-2" {
			return name, nil
		}
	}
	return "", fmt.Errorf("the disk has partitions with the labels %q, want config-2", labels)
}

// identify runs ds-identify in an empty root whose only block device is the drive. Its own
// check for a container, in which it looks at no device, sees none.
func (c cloudInit) identify(ctx context.Context, drive string) (string, error) {
	programs := map[string]string{"blkid": fmt.Sprintf("exec %s -p -o export '%s'", c.paths["blkid"], drive), "systemd-detect-virt": "echo none"}
	for name, script := range programs {
		file := c.path("bin/" + name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, dsIdentify)
	cmd.Env = []string{"PATH=" + c.path("bin") + ":" + os.Getenv("PATH"), "PATH_ROOT=" + c.path("root")}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("ds-identify: %w: %s", err, out)
	}
	list, err := os.ReadFile(c.path("root/run/cloud-init/cloud.cfg"))
	if err != nil {
		return "", err
	}
	sources, _ := strings.CutPrefix(strings.TrimSpace(string(list)), "datasource_list:")
	first, _, _ := strings.Cut(strings.Trim(sources, " []"), ",")
	return strings.TrimSpace(first), nil
}

// read unpacks the drive, and lets cloud-init read, check and convert it.
func (c cloudInit) read(ctx context.Context, drive, hostname, address string) error {
	files := c.path("files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return err
	}
	if _, err := c.run(ctx, c.paths["bsdtar"], "-xf", drive, "-C", files); err != nil {
		return err
	}
	out, err := c.run(ctx, c.paths["cloudinit"], "-c", cloudInitReader, files)
	if err != nil {
		return err
	}
	var found struct {
		Hostname, Instance string
		Links              []string
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return err
	}
	if found.Hostname != hostname || found.Instance == "" {
		return fmt.Errorf("cloud-init reads the host name %q and the instance %q, want the host name %q", found.Hostname, found.Instance, hostname)
	}
	latest := filepath.Join(files, "openstack", "latest")
	if _, err := c.run(ctx, c.paths["cloud-init"], "schema", "--config-file", filepath.Join(latest, "user_data")); err != nil {
		return err
	}
	args := []string{"devel", "net-convert", "--kind", "network_data.json", "--network-data", filepath.Join(latest, "network_data.json"), "--distro", "ubuntu", "--output-kind", "netplan", "--directory", c.path("network")}
	for i, mac := range found.Links {
		args = append(args, "--mac", fmt.Sprintf("eth%d,%s", i, mac))
	}
	if _, err := c.run(ctx, c.paths["cloud-init"], args...); err != nil {
		return err
	}
	text, err := os.ReadFile(c.path("network/etc/netplan/50-cloud-init.yaml"))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(text)), address) {
		return fmt.Errorf("cloud-init's netplan lacks %s:\n%s", address, text)
	}
	return nil
}
