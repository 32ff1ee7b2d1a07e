package clients

import "fmt"

// Workarounds: clients that send raw requests as the vendor's manual describes them.

// at returns the value at a path of a body.
func at(body any, path ...string) any {
	for _, name := range path {
		m, _ := body.(map[string]any)
		body = m[name]
	}
	return body
}

// link returns the @odata.id at a path of a body.
func link(body any, path ...string) string {
	uri, _ := at(body, append(path, "@odata.id")...).(string)
	return uri
}

// members returns the URIs of the members of a collection.
func members(c client, uri string) ([]string, error) {
	body, err := c.raw("GET", uri, nil)
	if err != nil {
		return nil, err
	}
	var out []string
	all, _ := body["Members"].([]any)
	for _, m := range all {
		out = append(out, link(m))
	}
	return out, nil
}

// system returns the only system.
func system(c client) (uri string, body map[string]any, err error) {
	all, err := members(c, "/redfish/v1/Systems")
	if err != nil || len(all) != 1 {
		return "", nil, fmt.Errorf("%d systems: %w", len(all), err)
	}
	body, err = c.raw("GET", all[0], nil)
	return all[0], body, err
}

// systemOnly reads the inventory from the system alone, for BMCs that lack resources
// that the client reads.
func systemOnly(_ *testServer, c client) client { return &systemInventory{c} }

type systemInventory struct{ client }

func (s *systemInventory) inventory() (inventory, error) {
	_, is, err := system(s)
	if err != nil {
		return inventory{}, err
	}
	text := func(name string) string { t, _ := is[name].(string); return t }
	return inventory{Serials: []string{text("SerialNumber"), text("SKU")}, Power: text("PowerState")}, nil
}

// smartDrives counts the drives of iLO's SmartStorage.
func smartDrives(_ *testServer, c client) client { return &smartStorage{systemInventory{c}} }

type smartStorage struct{ systemInventory }

func (s *smartStorage) inventory() (inventory, error) {
	is, err := s.systemInventory.inventory()
	if err != nil {
		return is, err
	}
	uri, _, err := system(s)
	if err != nil {
		return is, err
	}
	arrays, err := members(s, uri+"SmartStorage/ArrayControllers/")
	if err != nil {
		return is, err
	}
	drives := 0
	for _, a := range arrays {
		all, err := members(s, a+"DiskDrives/")
		if err != nil {
			return is, err
		}
		drives += len(all)
	}
	is.Drives = &drives
	return is, nil
}

// flatSettings reads and writes iLO 4's BIOS settings, which are properties of the
// resource and not in Attributes.
func flatSettings(_ *testServer, c client) client { return &flatBIOS{c} }

type flatBIOS struct{ client }

func (f *flatBIOS) settings() (map[string]any, error) {
	_, s, err := system(f)
	if err != nil {
		return nil, err
	}
	return f.raw("GET", link(s, "Bios"), nil)
}

func (f *flatBIOS) set(name, value, _ string) error {
	_, s, err := system(f)
	if err != nil {
		return err
	}
	_, err = f.raw("PATCH", link(s, "Bios")+"settings/", map[string]any{name: value})
	return err
}

// smartVolumes creates volumes by SmartStorageConfig of a Smart Array.
func smartVolumes(_ *testServer, c client) client { return &smartConfig{c} }

type smartConfig struct{ client }

const smartSettings = "/redfish/v1/systems/1/smartstorageconfig/settings"

func (s *smartConfig) createMirror(name string) error {
	is, err := s.raw("GET", smartSettings, nil)
	if err != nil {
		return err
	}
	drives, _ := is["PhysicalDrives"].([]any)
	if len(drives) < 2 {
		return fmt.Errorf("%d drives", len(drives))
	}
	var places []any
	for _, d := range drives[len(drives)-2:] {
		places = append(places, at(d, "Location"))
	}
	_, err = s.raw("PATCH", smartSettings, map[string]any{
		"DataGuard": "Strict", "LogicalDrives": []any{map[string]any{"LogicalDriveName": name, "Raid": "Raid1", "DataDrives": places}},
	})
	return err
}

func (s *smartConfig) deleteVolumes() error {
	_, err := s.raw("PATCH", smartSettings, map[string]any{"DataGuard": "Disabled", "LogicalDrives": []any{}})
	return err
}

// firstDevice boots virtual media by a manager attribute of iDRAC.
func firstDevice(_ *testServer, c client) client { return &firstBoot{c} }

type firstBoot struct{ client }

func (f *firstBoot) boot(string, string) error {
	_, err := f.raw("PATCH", "/redfish/v1/Managers/iDRAC.Embedded.1/Attributes", map[string]any{
		"Attributes": map[string]any{"ServerBoot.1.FirstBootDevice": "VCD-DVD", "ServerBoot.1.BootOnce": "Enabled"},
	})
	return err
}

// settingsJob creates the configuration job that applies BIOS settings.
func settingsJob(_ *testServer, c client) client { return &withSettingsJob{c} }

type withSettingsJob struct{ client }

func (w *withSettingsJob) set(name, value, when string) error {
	if err := w.client.set(name, value, when); err != nil {
		return err
	}
	_, err := w.raw("POST", "/redfish/v1/Managers/iDRAC.Embedded.1/Jobs", map[string]any{
		"TargetSettingsURI": "/redfish/v1/Systems/System.Embedded.1/Bios/Settings",
	})
	return err
}

// withIfMatch sends BIOS settings with If-Match.
func withIfMatch(_ *testServer, c client) client { return &ifMatchClient{c} }

type ifMatchClient struct{ client }

func (w *ifMatchClient) set(name, value, when string) error {
	_, s, err := system(w)
	if err != nil {
		return err
	}
	is, err := w.raw("GET", link(s, "Bios"), nil)
	if err != nil {
		return err
	}
	body := map[string]any{"Attributes": map[string]any{name: value}}
	if when != "" {
		body["@Redfish.SettingsApplyTime"] = map[string]any{"ApplyTime": when}
	}
	_, err = w.raw("PATCH", link(is, "@Redfish.Settings", "SettingsObject"), body)
	return err
}

// fullBootOverride sends a boot override with its mode, for any target.
func fullBootOverride(_ *testServer, c client) client { return &bootPatch{c} }

type bootPatch struct{ client }

func (p *bootPatch) boot(target, mode string) error {
	uri, _, err := system(p)
	if err != nil {
		return err
	}
	boot := map[string]any{"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once"}
	if mode != "" {
		boot["BootSourceOverrideMode"] = mode
	}
	_, err = p.raw("PATCH", uri, map[string]any{"Boot": boot})
	return err
}

// bootSettings sends a boot override to the settings resource of the system.
func bootSettings(_ *testServer, c client) client { return &bootSettingsPatch{c} }

type bootSettingsPatch struct{ client }

func (p *bootSettingsPatch) boot(target, mode string) error {
	_, s, err := system(p)
	if err != nil {
		return err
	}
	_, err = p.raw("PATCH", link(s, "@Redfish.Settings", "SettingsObject"), map[string]any{"Boot": map[string]any{
		"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": mode,
	}})
	return err
}
