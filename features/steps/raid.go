package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/images"
)

func (s *scenario) registerRAID(sc *stepRegistry) {
	sc.Step(`^the operator sets (hardware|software) RAID:$`, "sets spec.raid to these volumes, in YAML",
		func(ctx context.Context, kind string, doc *godog.DocString) error {
			return s.requestRAID(ctx, kind, doc.Content)
		})
	sc.Step(`^the operator removes the (hardware|software) RAID$`, "sets spec.raid to no volumes of this kind",
		func(ctx context.Context, kind string) error { return s.requestRAID(ctx, kind, "[]") })
	sc.Step(`^the operator disables cleaning$`, "sets spec.automatedCleaningMode", func(ctx context.Context) error {
		return s.change(ctx, func(h *metal3.BareMetalHost) { h.Spec.AutomatedCleaningMode = metal3.CleaningModeDisabled })
	})
	sc.Step(`^preparing has begun$`, "waits until the host has come to the state preparing since the last Given or When", func(ctx context.Context) error {
		return eventually(ctx, "preparing has begun", func(context.Context) (bool, string, error) {
			return s.recorder.hasBegun(metal3.StatePreparing), s.recorder.String(), nil
		})
	})
	sc.Step(`^the host is prepared with the RAID$`, "waits until the host is available and status.provisioning.raid equals spec.raid", s.isPrepared)
	sc.NegativeStep(`^the host has no root device hints$`, "asserts, once each controller has reconciled every object, that status.provisioning.rootDeviceHints is empty", s.hasNoHints)
	sc.Step(`^the host's error message contains "([^"]*)"$`, "waits until errorMessage contains this text", s.errorMessageContains)
	sc.Step(`^the server has the volumes "([^"]*)"$`, "asserts the levels of the volumes of the server's RAID controllers, in order", s.hasVolumes)
	sc.NegativeStep(`^the server has no volumes$`, "asserts, once each controller has reconciled every object, that the server's RAID controllers have no volumes", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		return s.hasVolumes("")
	})
	sc.Step(`^volume (\d+) has the drives "([^"]*)"$`, "asserts the bays of the volume's drives", s.volumeHasDrives)
	sc.Step(`^volume (\d+) begins with the image$`, "compares the first bytes of the volume with the image, and its partition table with the image's and a config drive's partition", s.volumeHoldsImage)
	sc.Step(`^the server runs from volume (\d+)$`, "waits until the server has booted from the volume", func(ctx context.Context, n int) error {
		v, err := s.volume(n)
		if err != nil {
			return err
		}
		return s.runsFromDevice(ctx, v.Device())
	})
	sc.Step(`^"([^"]*)" is written to volume (\d+)$`, "writes a text to the middle of the volume", s.writeVolume)
	sc.Step(`^volume (\d+) holds "([^"]*)"$`, "asserts the text in the middle of the volume", s.volumeHolds)
	sc.NegativeStep(`^volume (\d+) cannot be read$`, "asserts, once each controller has reconciled every object, that reading the volume fails and returns no bytes", s.volumeFails)
	sc.Step(`^volume (\d+) is (healthy|degraded)$`, "waits until the volume is healthy or degraded", s.volumeHasHealth)
	sc.Step(`^(\d+) of the (?:other )?drives of volume (\d+) fail$`, "lets so many healthy drives of the volume fail", s.failDrives)
	sc.Step(`^the failed drives are replaced$`, "pulls each failed drive, and inserts a new one into its bay", s.replaceDrives)
	sc.Step(`^100 hours pass$`, "lets a hundred hours of the lab's time pass, likewise", func(ctx context.Context) error { return s.pass(ctx, 100*time.Hour) })
	sc.Step(`^all disks hold the image at the data offset of md$`, "compares each disk's bytes at the data offset of the first array with the image, as above", s.disksHoldMirror)
	sc.Step(`^the server's disks hold software RAID$`, "looks for the superblock of the first array of md on each disk", func() error { return s.disksHoldArray(true) })
	sc.NegativeStep(`^the server's disks hold no software RAID$`, "asserts, once each controller has reconciled every object, that no disk has that superblock", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		return s.disksHoldArray(false)
	})
	sc.Step(`^the first disk is pulled$`, "takes the first disk out of its bay", func(ctx context.Context) error {
		return s.host().PullDrive(ctx, s.machine().Identity.Storage[0].Drives[0].ID)
	})
	sc.Step(`^the other disks are pulled$`, "takes every disk that is left out of its bay", s.pullDisks)
	sc.Step(`^every disk is reinserted$`, "inserts the same disks into their bays", s.reinsertDisks)
	sc.Step(`^the first disk is reinserted$`, "inserts the same disk into its bay", func(ctx context.Context) error {
		return s.host().InsertDrive(ctx, storage.InsertDrive{Drive: s.machine().Identity.Storage[0].Drives[0].ID, What: storage.InsertSame})
	})
	sc.Step(`^the server is power-cycled$`, "resets the server with PowerCycle", func(ctx context.Context) error {
		_, err := s.lab.Control().Power(ctx, s.server.Name, string(machine.PowerCycle))
		return err
	})
	sc.Step(`^the server runs from its second disk$`, "waits until the server has booted from its second disk", func(ctx context.Context) error {
		return s.runsFromDevice(ctx, s.machine().Identity.Storage[0].Drives[1].ID)
	})
}

func (s *scenario) requestRAID(ctx context.Context, kind, text string) error {
	raid := &metal3.RAIDConfig{}
	into := any(&raid.HardwareRAIDVolumes)
	if kind == "software" {
		into = &raid.SoftwareRAIDVolumes
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		return err
	}
	// A host that cannot be prepared is written often: an update would conflict.
	var h metal3.BareMetalHost
	if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: s.server.Name}, &h); err != nil {
		return err
	}
	before := h.DeepCopy()
	h.Spec.RAID = raid
	return s.kube.Patch(ctx, &h, client.MergeFrom(before))
}

func (s *scenario) isPrepared(ctx context.Context) error {
	return eventually(ctx, "the host is prepared", func(ctx context.Context) (bool, string, error) {
		var h metal3.BareMetalHost // as stored: the watch may still bring the RAID of before
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: s.server.Name}, &h); err != nil {
			return false, "", err
		}
		want, have := h.Spec.RAID, h.Status.Provisioning.RAID
		if want == nil || have == nil || h.Status.Provisioning.State != metal3.StateAvailable {
			return false, fmt.Sprintf("%s, %+v", h.Status.Provisioning.State, have), nil
		}
		return reflect.DeepEqual(want.HardwareRAIDVolumes, have.HardwareRAIDVolumes) &&
			equality.Semantic.DeepEqual(want.SoftwareRAIDVolumes, have.SoftwareRAIDVolumes), fmt.Sprintf("%+v", have), nil
	})
}

func (s *scenario) hasNoHints(ctx context.Context) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	h, err := s.read(ctx)
	if err == nil && h.Status.Provisioning.RootDeviceHints != nil {
		err = fmt.Errorf("the host has %+v", h.Status.Provisioning.RootDeviceHints)
	}
	return err
}

func (s *scenario) errorMessageContains(ctx context.Context, text string) error {
	return eventually(ctx, "the error says "+text, func(context.Context) (bool, string, error) {
		h := s.recorder.host()
		if h == nil {
			return false, "no host", nil
		}
		return strings.Contains(h.Status.ErrorMessage, text), h.Status.ErrorMessage, nil
	})
}

// raidLevels are the levels of spec.raid, by the emulator's types.
var raidLevels = map[storage.RAIDType]string{
	storage.RAID0: "0", storage.RAID1: "1", storage.RAID5: "5", storage.RAID6: "6", storage.RAID10: "1+0", storage.RAID50: "5+0", storage.RAID60: "6+0",
}

func (s *scenario) hasVolumes(want string) error {
	var got []string
	for _, v := range s.host().Volumes() {
		got = append(got, raidLevels[v.Type])
	}
	if have := strings.Join(got, ", "); have != want {
		return fmt.Errorf("the server has the volumes %q", have)
	}
	return nil
}

// volume returns the n-th volume of the server, counted from 1.
func (s *scenario) volume(n int) (storage.VolumeView, error) {
	all := s.host().Volumes()
	if n < 1 || n > len(all) {
		return storage.VolumeView{}, fmt.Errorf("the server has %d volumes", len(all))
	}
	return all[n-1], nil
}

func (s *scenario) volumeHasDrives(n int, want string) error {
	v, err := s.volume(n)
	if err != nil {
		return err
	}
	var got []string
	for _, m := range v.Members {
		got = append(got, m.Bay)
	}
	if have := strings.Join(got, ", "); have != want {
		return fmt.Errorf("it is made of %s", have)
	}
	return nil
}

func (s *scenario) volumeHoldsImage(n int) error {
	v, err := s.volume(n)
	if err != nil {
		return err
	}
	want, err := s.imageBytes()
	if err != nil {
		return err
	}
	return s.deviceHoldsImage(v.Device(), 0, want)
}

func (s *scenario) deviceHoldsImage(device string, off int64, want []byte) error {
	m, err := s.host().Medium(device)
	if err != nil {
		return err
	}
	if err := images.Written(io.NewSectionReader(m, off, int64(len(want))), want); err != nil {
		return fmt.Errorf("%s, from byte %d on: %w", device, off, err)
	}
	return nil
}

func (s *scenario) runsFromDevice(ctx context.Context, device string) error {
	return eventually(ctx, "the server runs "+device, func(context.Context) (bool, string, error) {
		v := s.machine()
		return v.Phase == machine.Running && v.OS.Source == machine.Source{Kind: machine.Hdd, Device: device}, fmt.Sprintf("%s, %+v", v.Phase, v.OS), nil
	})
}

func (s *scenario) writeVolume(text string, n int) error {
	v, err := s.volume(n)
	if err != nil {
		return err
	}
	m, err := s.host().Medium(v.Device())
	if err != nil {
		return err
	}
	_, err = m.WriteAt([]byte(text), m.Size()/2)
	return err
}

func (s *scenario) volumeHolds(n int, text string) error {
	v, err := s.volume(n)
	if err != nil {
		return err
	}
	return s.deviceHoldsImage(v.Device(), v.Size()/2, []byte(text))
}

func (s *scenario) volumeFails(ctx context.Context, n int) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	v, err := s.volume(n)
	if err != nil {
		return err
	}
	m, err := s.host().Medium(v.Device())
	if err != nil {
		return nil //nolint:nilerr // it cannot even be opened
	}
	got := make([]byte, 64)
	if n, err := m.ReadAt(got, v.Size()/2); err == nil || n > 0 {
		return fmt.Errorf("reading gave %d bytes and the error %w", n, err)
	}
	return nil
}

func (s *scenario) volumeHasHealth(ctx context.Context, n int, how string) error {
	return eventually(ctx, fmt.Sprintf("volume %d is %s", n, how), func(context.Context) (bool, string, error) {
		v, err := s.volume(n)
		return err == nil && !v.Failed && v.Degraded() == (how == "degraded"), fmt.Sprintf("%+v", v.Members), err
	})
}

func (s *scenario) failDrives(ctx context.Context, count, n int) error {
	v, err := s.volume(n)
	if err != nil {
		return err
	}
	if count < 1 {
		return errors.New("no drive would fail")
	}
	for _, m := range v.Members {
		if d, ok := s.machine().Storage.Drive(m.Bay); count > 0 && ok && d.State != storage.DriveFailed && !s.testLab.replaced[m.Bay] {
			if err := s.host().FailDrive(ctx, m.Bay); err != nil {
				return err
			}
			count--
		}
	}
	if count > 0 {
		return fmt.Errorf("%d drives too few", count)
	}
	return nil
}

func (s *scenario) replaceDrives(ctx context.Context) error {
	s.testLab.replaced = map[string]bool{}
	for _, d := range s.host().Drives() {
		if d.State != storage.DriveFailed {
			continue
		}
		if err := s.host().PullDrive(ctx, d.ID); err != nil {
			return err
		}
		if err := s.host().InsertDrive(ctx, storage.InsertDrive{Drive: d.ID, What: storage.InsertNew}); err != nil {
			return err
		}
		s.testLab.replaced[d.ID] = true
	}
	return nil
}

func (s *scenario) pullDisks(ctx context.Context) error {
	for _, d := range s.host().Drives() {
		if err := s.host().PullDrive(ctx, d.ID); err != nil {
			return err
		}
	}
	if left := s.machine().Storage.Devices(); len(left) > 0 {
		return fmt.Errorf("%d devices are left", len(left))
	}
	return nil
}

func (s *scenario) reinsertDisks(ctx context.Context) error {
	for _, c := range s.machine().Identity.Storage {
		for _, d := range c.Drives {
			if err := s.host().InsertDrive(ctx, storage.InsertDrive{Drive: d.ID, What: storage.InsertSame}); err != nil {
				return err
			}
		}
	}
	return nil
}

// mirrorOffset is the offset of the data of the first array on its disks: 1 MiB for
// the partition table, the boot partition, and 1 MiB for superblocks.
const mirrorOffset = (1 + 550 + 1) << 20

// superblock is the magic number of md's metadata, version 1.2, which is 4 KiB behind
// the beginning of a member.
var superblock = []byte{0xfc, 0x4e, 0x2b, 0xa9}

const superblockOffset = (1+550)<<20 + 4096

func (s *scenario) disksHoldArray(want bool) error {
	for _, d := range s.machine().Identity.Storage[0].Drives {
		if err := s.deviceHoldsImage(d.ID, superblockOffset, superblock); (err == nil) != want {
			return fmt.Errorf("%s: it holds a superblock of md: %t", d.ID, !want)
		}
	}
	return nil
}

func (s *scenario) disksHoldMirror() error {
	want, err := s.imageBytes()
	if err != nil {
		return err
	}
	drives := s.machine().Identity.Storage[0].Drives
	if len(drives) == 0 {
		return errors.New("the server has no disk")
	}
	for _, d := range drives {
		if err := s.deviceHoldsImage(d.ID, mirrorOffset, want); err != nil {
			return err
		}
	}
	return nil
}
