package redfish

import (
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// TestGofishConfiguresBIOSAndUpdatesFirmware calls gofish's methods for BIOS settings and updates.
func TestGofishConfiguresBIOSAndUpdatesFirmware(t *testing.T) {
	b := newUpdate(t)
	server := httptest.NewTLSServer(b.s)
	defer server.Close()
	c, err := gofish.ConnectContext(t.Context(), gofish.ClientConfig{
		Endpoint: server.URL, Username: "admin", Password: "adm-secret-1", HTTPClient: server.Client(), BasicAuth: true, // sessions would expire
	})
	must(t, err)
	systems, err := c.Service.Systems()
	must(t, err)
	bios, err := systems[0].Bios()
	must(t, err)

	registries, err := c.Service.Registries()
	must(t, err)
	if !slices.ContainsFunc(registries, func(r *schemas.MessageRegistryFile) bool {
		return r.ID == bios.AttributeRegistry && len(r.Location) == 1
	}) {
		t.Errorf("no registry is %s", bios.AttributeRegistry)
	}
	if times := bios.AllowedAttributeUpdateApplyTimes(); len(times) != 4 {
		t.Errorf("AllowedAttributeUpdateApplyTimes() = %v", times)
	}
	must(t, bios.UpdateBiosAttributes(schemas.SettingsAttributes{"BootMode": "LegacyBios", "NumLock": "On"}))
	must(t, bios.UpdateBiosAttributesApplyAt(schemas.SettingsAttributes{"AssetTag": "A7"}, schemas.ImmediateSettingsApplyTime))
	if err := bios.UpdateBiosAttributes(schemas.SettingsAttributes{"Colour": "red"}); err == nil {
		t.Error("an unknown attribute passed")
	}
	b.restart()
	bios, err = systems[0].Bios()
	must(t, err)
	if bios.Attributes.String("BootMode") != "LegacyBios" || bios.Attributes.String("AssetTag") != "A7" {
		t.Errorf("Attributes = %v", bios.Attributes)
	}
	_, err = bios.ResetBios()
	must(t, err)
	_, err = bios.ChangePassword("secret-1", "", "AdminPassword")
	must(t, err)
	active, err := bios.ActiveSoftwareImage()
	must(t, err)
	images, err := bios.SoftwareImages()
	must(t, err)
	if active.Version != "2.3.1" || len(images) != 2 {
		t.Errorf("ActiveSoftwareImage() is %s, SoftwareImages() are %d", active.Version, len(images))
	}

	updates, err := c.Service.UpdateService()
	must(t, err)
	task, err := updates.SimpleUpdate(&schemas.UpdateServiceSimpleUpdateParameters{
		ImageURI: "http://images.test/bios.img", Targets: []string{resource.FirmwareURI("BIOS")}, Stage: true,
	})
	must(t, err)
	if task == nil || task.Task == nil {
		t.Fatalf("SimpleUpdate() = %+v, want a task", task)
	}
	b.h.pass(time.Hour)
	b.task(task.Task.ODataID, "Completed")
	inventory, err := updates.FirmwareInventory()
	must(t, err)
	if want := len(b.h.Machine().Components()); len(inventory) != want {
		t.Errorf("FirmwareInventory() has %d components, want %d", len(inventory), want)
	}
	software, err := updates.SoftwareInventory()
	must(t, err)
	i := slices.IndexFunc(software, func(s *schemas.SoftwareInventory) bool { return s.ID == "BIOS.Staged" })
	if i < 0 || software[i].Version != "2.4.0" {
		t.Fatalf("SoftwareInventory() = %+v, want what was staged", software)
	}
	_, err = software[i].Activate(nil)
	must(t, err)
	_, err = updates.StartUpdate()
	must(t, err)
	b.h.pass(time.Minute)
	b.restart()
	active, err = bios.ActiveSoftwareImage()
	must(t, err)
	if active.Version != "2.4.0" {
		t.Errorf("the BIOS runs %s after it was activated", active.Version)
	}
	related, err := active.RelatedItem()
	must(t, err)
	if len(related) != 1 || related[0].ODataID != sys {
		t.Errorf("RelatedItem() = %+v, want the system", related)
	}
}
