package steps

import (
	"fmt"
	"strings"

	"github.com/cucumber/godog"
)

// A vendor's servers, by what people call them.
var models = map[string]string{
	"ThinkSystem SR650 V2": "lenovo-sr650-v2", "ThinkSystem SR650 V3": "lenovo-sr650-v3", "ThinkSystem SR655": "lenovo-sr655",
	"PowerEdge R650": "dell-r650", "PowerEdge R640": "dell-r640", "PowerEdge R730": "dell-r730", "PowerEdge R770": "dell-r770",
	"SYS-1029U-TR4": "supermicro-1029u", "SYS-621C-TN12R": "supermicro-621c", "R282-Z93": "gigabyte-r282",
}

const (
	selfURI    = root + "/Systems/Self"
	selfMedia  = root + "/Managers/Self/VirtualMedia/CD1"
	toLegacyCD = managerURI + "/VM1/CD1"
)

// vendorRequests are what clients send to the BMCs of some vendors, by what an
// operator calls them. IMAGE and ETAG are as in requests; SERVER is where images
// come from.
var vendorRequests = map[string]map[string]request{
	"iDRAC": idracRequests,
	"XCC": {
		"inserts an image by the action":               {"POST", managerURI + "/VirtualMedia/EXT1/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE"}, nil},
		"sets the image of EXT1":                       {"PATCH", managerURI + "/VirtualMedia/EXT1", object{"Image": "IMAGE"}, nil},
		"sets the image of EXT1, saying that it does":  {"PATCH", managerURI + "/VirtualMedia/EXT1", object{"Image": "IMAGE", "Inserted": true}, nil},
		"sets the image of RDOC1, saying that it does": {"PATCH", managerURI + "/VirtualMedia/RDOC1", object{"Image": "IMAGE", "Inserted": true}, nil},
		"boots the network for good":                   {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}}, nil},
		"boots the network once":                       {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}, nil},
		"changes the settings of the BIOS":             {"PATCH", systemURI + "/Bios/Settings", object{"Attributes": object{"Processors_HyperThreading": "Disabled"}}, nil},
		"changes what is pending of the BIOS":          {"PATCH", systemURI + "/Bios/Pending", object{"Attributes": object{"Processors_HyperThreading": "Disabled"}}, nil},
		"limits the power with the ETag":               {"PATCH", root + "/Chassis/1/Power", object{"PowerControl": []any{object{"PowerLimit": object{"LimitInWatts": 600}}}}, []string{"If-Match", "ETAG"}},
		"limits the power":                             {"PATCH", root + "/Chassis/1/Power", object{"PowerControl": []any{object{"PowerLimit": object{"LimitInWatts": 600}}}}, nil},
	},
	"Supermicro": {
		"inserts an image, saying that it does":  {"POST", toLegacyCD + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE", "Inserted": true, "WriteProtected": true}, nil},
		"inserts an image":                       {"POST", toLegacyCD + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE"}, nil},
		"mounts what is configured":              {"POST", managerURI + "/VM1/CfgCD/Actions/IsoConfig.Mount", nil, nil},
		"configures the image":                   {"PATCH", managerURI + "/VM1/CfgCD", object{"Host": "SERVER", "Path": "/live.iso"}, nil},
		"boots the virtual CD":                   {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "UsbCd"}}, nil},
		"boots the virtual CD once":              {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once"}}, nil},
		"boots the virtual CD once, with UEFI":   {"PATCH", systemURI, object{"Boot": object{"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}}, nil},
		"gives up the licence":                   {"POST", managerURI + "/LicenseManager/Actions/LicenseManager.ClearLicense", nil, nil},
		"activates a licence":                    {"POST", managerURI + "/LicenseManager/Actions/LicenseManager.ActivateLicense", object{"LicenseKey": "a key"}, nil},
		"changes the settings of the BIOS":       {"PATCH", systemURI + "/Bios/Settings", object{"Attributes": object{"QuietBoot#002D": false}}, nil},
		"changes the settings of the BIOS at SD": {"PATCH", systemURI + "/Bios/SD", object{"Attributes": object{"QuietBoot#002D": false}}, nil},
	},
	"MegaRAC": {
		"sets the asset tag":                                   {"PATCH", selfURI, object{"AssetTag": "a"}, nil},
		"sets the asset tag with the ETag":                     {"PATCH", selfURI, object{"AssetTag": "a"}, []string{"If-Match", "ETAG"}},
		"boots the network once, with the ETag":                {"PATCH", selfURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}, []string{"If-Match", "ETAG"}},
		"boots the network once, with UEFI and the ETag":       {"PATCH", selfURI, object{"Boot": object{"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}}, []string{"If-Match", "ETAG"}},
		"inserts an image":                                     {"POST", selfMedia + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE"}, nil},
		"inserts an image, saying by which protocol":           {"POST", selfMedia + "/Actions/VirtualMedia.InsertMedia", object{"Image": "IMAGE", "TransferProtocolType": "HTTP"}, nil},
		"changes the settings of the BIOS at SD":               {"PATCH", selfURI + "/Bios/SD", object{"Attributes": object{"SETUP008": "Disabled"}}, nil},
		"changes the settings of the BIOS at SD with the ETag": {"PATCH", selfURI + "/Bios/SD", object{"Attributes": object{"SETUP008": "Disabled"}}, []string{"If-Match", "ETAG"}},
	},
}

func (s *scenario) registerVendors(sc *godog.ScenarioContext) {
	sc.Step(`^a rack of (\d+) servers? of the model (.*)$`, func(n int, model string) error {
		profile, ok := models[model]
		if !ok {
			return fmt.Errorf("no model %q", model)
		}
		return s.start(profile, n)
	})
	sc.Step(`^a client of an? (XCC|Supermicro|MegaRAC|iDRAC) ((?:inserts|sets|boots|changes|limits|mounts|configures|gives|activates|makes|clears|imports|ejects|opens|resets|switches)(?: .*)?)$`, s.asksVendor)
	sc.Step(`^a client of an? (XCC|Supermicro|MegaRAC|iDRAC) has done this before: (.*)$`, func(vendor, whats string) error {
		for what := range strings.SplitSeq(whats, "; ") {
			if what == "nothing" {
				continue
			}
			if err := s.asksVendor(vendor, what); err != nil {
				return err
			}
			if s.response.status >= 300 {
				return fmt.Errorf("%s: it is answered %s", what, s.response)
			}
		}
		return nil
	})
	sc.Step(`^the system boots "([^"]*)", in the mode "([^"]*)"$`, func(target, mode string) error {
		a, err := s.get(systemURI)
		if err != nil {
			return err
		}
		if err := equal("the target", fmt.Sprint(a.at("Boot/BootSourceOverrideTarget")), target); err != nil {
			return err
		}
		return equal("the mode", fmt.Sprint(a.at("Boot/BootSourceOverrideMode")), mode)
	})
}

// asksVendor sends one of a vendor's requests to the first server's BMC.
func (s *scenario) asksVendor(vendor, what string) error {
	r, ok := vendorRequests[vendor][what]
	if !ok {
		return fmt.Errorf("no client of %s %q", vendor, what)
	}
	image := s.images.url("live.iso", []byte(bootable))
	body := r.body
	if o, ok := body.(object); ok {
		with := object{}
		for name, v := range o {
			switch v {
			case "IMAGE":
				v = image
			case "SERVER":
				v = strings.TrimSuffix(image, "/live.iso")
			}
			with[name] = v
		}
		body = with
	}
	var header []string
	for _, h := range r.header {
		if h == "ETAG" {
			if err := s.sendTo(1, "GET", r.path, nil); err != nil {
				return err
			}
			h = s.response.header.Get("Etag")
		}
		header = append(header, h)
	}
	err := s.sendTo(1, r.method, r.path, body, header...)
	s.lab.Settle()
	return err
}
