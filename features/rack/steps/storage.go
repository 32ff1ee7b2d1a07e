package steps

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

const (
	raidURI    = systemURI + "/Storage/1"
	volumesURI = raidURI + "/Volumes"
)

// levels are how operators call RAID types.
var levels = map[string]string{"mirror": "RAID1", "stripe": "RAID0", "RAID 5": "RAID5", "RAID 6": "RAID6"}

func (s *scenario) registerStorage(sc *godog.ScenarioContext) {
	sc.Step(`^the operator makes a (mirror|stripe|RAID 5|RAID 6) of drives ([\d, ]+)$`, func(level, drives string) error {
		links := []object{}
		for n := range strings.SplitSeq(drives, ", ") {
			links = append(links, object{"@odata.id": raidURI + "/Drives/Disk." + n})
		}
		return s.send("POST", volumesURI, object{"RAIDType": levels[level], "Links": object{"Drives": links}})
	})
	sc.Step(`^the operator makes drive (\d+) a hot spare$`, func(n int) error {
		return s.sendOK("PATCH", driveURI(n), object{"HotspareType": "Global"})
	})
	sc.Step(`^drive (\d+) fails$`, func(n int) error { return s.server(1).FailDrive(s.t.Context(), bay(n)) })
	sc.Step(`^drive (\d+) is pulled$`, func(n int) error { return s.server(1).PullDrive(s.t.Context(), bay(n)) })
	sc.Step(`^a new drive is put into bay (\d+)$`, func(n int) error {
		return s.server(1).InsertDrive(s.t.Context(), storage.InsertDrive{Drive: bay(n), What: storage.InsertNew})
	})
	sc.Step(`^drive (\d+) is not there$`, func(n int) error {
		if err := s.send("GET", driveURI(n), nil); err != nil {
			return err
		}
		return equal("the drive", fmt.Sprint(s.response.status), "404")
	})
	sc.Step(`^volume (\d+) is (OK|degraded|failed)$`, func(n int, how string) error {
		a, err := s.get(volumeURI(n))
		if err != nil {
			return err
		}
		return equal("the volume", fmt.Sprint(a.at("Status/Health")), map[string]string{"OK": "OK", "degraded": "Warning", "failed": "Critical"}[how])
	})
	sc.Step(`^there are volumes ([\d, ]+), each with a name of its own in the world$`, func(ids string) error {
		a, err := s.get(volumesURI)
		if err != nil {
			return err
		}
		var got, names []string
		members, _ := a.body["Members"].([]any)
		for _, m := range members {
			link, _ := m.(map[string]any)
			uri, _ := link["@odata.id"].(string)
			got = append(got, uri[strings.LastIndexByte(uri, '/')+1:])
			v, err := s.get(uri)
			if err != nil {
				return err
			}
			name := fmt.Sprint(v.body["Identifiers"])
			if slices.Contains(names, name) {
				return fmt.Errorf("two volumes are called %s", name)
			}
			names = append(names, name)
		}
		return equal("the volumes", strings.Join(got, ", "), ids)
	})
	sc.Step(`^"([^"]*)" is written on volume (\d+)$`, func(text string, n int) error {
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
		return equal("the volume", string(got), text)
	})
}

func bay(n int) string       { return "Disk." + strconv.Itoa(n) }
func driveURI(n int) string  { return raidURI + "/Drives/" + bay(n) }
func volumeURI(n int) string { return volumesURI + "/" + strconv.Itoa(n) }
