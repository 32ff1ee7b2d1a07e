package steps

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

const updateURI = root + "/UpdateService"

func (s *scenario) registerUpdates(sc *godog.ScenarioContext) {
	update := func(image []byte, header ...string) error {
		err := s.send("POST", updateURI+"/Actions/UpdateService.SimpleUpdate", object{"ImageURI": s.images.url("firmware.img", image)}, header...)
		s.saved["monitor"], s.saved["task"] = s.response.header.Get("Location"), fmt.Sprint(s.response.body["@odata.id"])
		s.lab.Settle()
		return err
	}
	sc.Step(`^the operator updates the BIOS$`, func() error {
		image, err := biosImage()
		if err != nil {
			return err
		}
		return update(image)
	})
	sc.Step(`^the operator updates the BIOS, whatever has become of the update service$`, func() error {
		image, err := biosImage()
		if err != nil {
			return err
		}
		return update(image, "If-Match", "*")
	})
	sc.Step(`^the operator updates the BIOS as the update service was when he read it$`, func() error {
		image, err := biosImage()
		if err != nil {
			return err
		}
		a, err := s.get(updateURI)
		if err != nil {
			return err
		}
		return update(image, "If-Match", a.header.Get("ETag"))
	})
	sc.Step(`^the operator updates the BIOS with an image that was damaged$`, func() error {
		image, err := biosImage()
		if err != nil {
			return err
		}
		image[len(image)-5] ^= 1
		return update(image)
	})
	sc.Step(`^a task goes on, and its monitor says so$`, func() error {
		if s.response.status != 202 || s.saved["monitor"] == "" || s.response.header.Get("Retry-After") == "" {
			return fmt.Errorf("the answer is %s", s.response)
		}
		if err := s.send("GET", s.saved["monitor"], nil); err != nil {
			return err
		}
		return equal("the monitor", s.response.status, 202)
	})
	sc.Step(`^the task has (gone well|failed)$`, func(how string) error {
		a, err := s.get(s.saved["task"])
		if err != nil {
			return err
		}
		return equal("the task", a.body["TaskState"], map[string]string{"gone well": "Completed", "failed": "Exception"}[how])
	})
	sc.Step(`^the BIOS has version "([^"]*)"$`, func(version string) error {
		a, err := s.get(systemURI)
		if err != nil {
			return err
		}
		return equal("BiosVersion", a.body["BiosVersion"], version)
	})
	sc.Step(`^the inventory of firmware says "([^"]*)" of the BIOS$`, func(version string) error {
		a, err := s.get(updateURI + "/FirmwareInventory/BIOS")
		if err != nil {
			return err
		}
		return equal("Version", a.body["Version"], version)
	})
}

// biosImage is an update of the BIOS.
func biosImage() ([]byte, error) {
	var b bytes.Buffer
	h := firmware.Image{Kind: "bios", Vendor: "Metalab", Model: "Generic Server G1", Version: "2.4.0", Lowest: "2.1.0", Released: "2026-02-01"}
	_, err := firmware.BuildImage(&b, h, strings.NewReader(strings.Repeat("payload ", 1000)))
	return b.Bytes(), err
}
