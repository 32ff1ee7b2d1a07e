package steps

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

const (
	raidURI    = systemURI + "/Storage/1"
	volumesURI = raidURI + "/Volumes"
)

// registerStorage binds the steps about drives and volumes. Steps that fail, pull or
// insert a drive, or access the bytes of a volume, use the lab: Redfish has no
// request for that.
func (s *scenario) registerStorage(sc *stepRegistry) {
	sc.Step(`^the client creates a volume of RAIDType (\w+) on drives ([\d, ]+)$`, func(kind, drives string) error {
		if err := s.unchecked(); err != nil {
			return err
		}
		links := []object{}
		for n := range strings.SplitSeq(drives, ", ") {
			links = append(links, object{"@odata.id": driveURI(number(n))})
		}
		err := s.send("POST", volumesURI, object{"RAIDType": kind, "Links": object{"Drives": links}})
		s.lab.Settle()
		s.sent = request{method: "POST", path: volumesURI}
		s.response.checked = s.response.status < 400
		return err
	})
	sc.Step(`^drive (\d+) fails$`, func(n int) error { return s.server(1).FailDrive(s.t.Context(), bay(n)) })
	sc.Step(`^drive (\d+) is pulled$`, func(n int) error { return s.server(1).PullDrive(s.t.Context(), bay(n)) })
	sc.Step(`^a new drive is inserted into bay (\d+)$`, func(n int) error {
		return s.server(1).InsertDrive(s.t.Context(), storage.InsertDrive{Drive: bay(n), What: storage.InsertNew})
	})
	sc.Step(`^there are the volumes ([\d, ]+), with different Identifiers$`, s.volumesAre)
	sc.Step(`^every drive has Manufacturer, CapacityBytes and the Health OK$`, s.drivesAreDescribed)
	sc.Step(`^"([^"]*)" is written to volume (\d+)$`, func(text string, n int) error {
		m, err := s.server(1).Medium("Volume.1." + strconv.Itoa(n))
		if err != nil {
			return err
		}
		_, err = m.WriteAt([]byte(text), m.Size()/2)
		return err
	})
	sc.Step(`^volume (\d+) holds "([^"]*)"$`, func(n int, text string) error {
		m, err := s.server(1).Medium("Volume.1." + strconv.Itoa(n))
		if err != nil {
			return err
		}
		got := make([]byte, len(text))
		if _, err := m.ReadAt(got, m.Size()/2); err != nil {
			return err
		}
		return equal("the text on the volume", string(got), text)
	})
}

func (s *scenario) volumesAre(ids string) error {
	r, err := s.get(volumesURI)
	if err != nil {
		return err
	}
	var got, identifiers []string
	for _, uri := range links(r.body["Members"]) {
		got = append(got, uri[strings.LastIndexByte(uri, '/')+1:])
		v, err := s.get(uri)
		if err != nil {
			return err
		}
		id := fmt.Sprint(v.body["Identifiers"])
		if v.body["Identifiers"] == nil || slices.Contains(identifiers, id) {
			return fmt.Errorf("the Identifiers of %s are %s: it has none, or shares them", uri, id)
		}
		identifiers = append(identifiers, id)
	}
	return equal("the list of volumes", strings.Join(got, ", "), ids)
}

func (s *scenario) drivesAreDescribed() error {
	r, err := s.get(systemURI + "/Storage")
	if err != nil {
		return err
	}
	if r, err = s.get(fmt.Sprint(r.at("Members/0/@odata.id"))); err != nil {
		return err
	}
	drives := links(r.body["Drives"])
	if len(drives) == 0 {
		return fmt.Errorf("there are no drives: %s", r)
	}
	for _, uri := range drives {
		d, err := s.get(uri)
		if err != nil {
			return err
		}
		if d.body["Manufacturer"] == nil || d.body["CapacityBytes"] == nil || d.at("Status/Health") != "OK" {
			return fmt.Errorf("%s is %s", uri, d)
		}
	}
	return nil
}

func bay(n int) string      { return "Disk." + strconv.Itoa(n) }
func driveURI(n int) string { return raidURI + "/Drives/" + bay(n) }
