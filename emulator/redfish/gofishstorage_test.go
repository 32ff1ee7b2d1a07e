package redfish

import (
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"
)

// TestGofishManagesStorage calls gofish's methods for storage.
func TestGofishManagesStorage(t *testing.T) {
	h, s := raiding(t)
	post(t, s, volumes, `{"RAIDType":"RAID5","CapacityBytes":1000000000,"Links":{"Drives":`+drivesOf(0, 1, 2)+`}}`, 201)
	h.pass(time.Hour)
	server := httptest.NewTLSServer(s)
	defer server.Close()
	c, err := gofish.ConnectContext(t.Context(), gofish.ClientConfig{
		Endpoint: server.URL, Username: "admin", Password: "adm-secret-1", HTTPClient: server.Client(), BasicAuth: true,
	})
	must(t, err)
	read := func() (*schemas.Storage, *schemas.Volume) {
		systems, err := c.Service.Systems()
		must(t, err)
		all, err := systems[0].Storage()
		must(t, err)
		i := slices.IndexFunc(all, func(s *schemas.Storage) bool { return s.ID == "1" })
		made, err := all[i].Volumes()
		must(t, err)
		if len(made) != 1 {
			return all[i], nil
		}
		return all[i], made[0]
	}
	sub, v := read()
	if v.RAIDType != schemas.RAID5RAIDType || v.CapacityBytes == nil || *v.CapacityBytes < 1e9 {
		t.Errorf("volume = %+v", v)
	}
	drives, err := v.Drives()
	must(t, err)
	if len(drives) != 3 {
		t.Errorf("the volume has %d drives", len(drives))
	}
	do := func(what string, task *schemas.TaskMonitorInfo, err error) {
		t.Helper()
		if err != nil || task == nil || task.TaskMonitor == "" {
			t.Fatalf("%s = %+v, %v", what, task, err)
		}
		h.pass(1000 * time.Hour)
	}
	task, err := v.CheckConsistency()
	do("CheckConsistency()", task, err)
	task, err = v.Initialize(schemas.ForegroundInitializeMethod, schemas.SlowInitializeType)
	do("Initialize()", task, err)
	_, v = read() // gofish sends the ETag that it has read: read the present one
	v.DisplayName = "renamed"
	must(t, v.Update())
	if _, v = read(); v.DisplayName != "renamed" {
		t.Errorf("DisplayName = %s", v.DisplayName)
	}
	all, err := sub.Drives()
	must(t, err)
	i := slices.IndexFunc(all, func(d *schemas.Drive) bool { return d.ID == "Disk.5" })
	task, err = all[i].SecureErase(0, schemas.BlockEraseDataSanitizationType)
	do("SecureErase()", task, err)
	all, err = sub.Drives()
	must(t, err)
	i = slices.IndexFunc(all, func(d *schemas.Drive) bool { return d.ID == "Disk.5" })
	all[i].HotspareType = schemas.GlobalHotspareType
	all[i].LocationIndicatorActive = true
	must(t, all[i].Update())
	m, err := all[i].Metrics()
	must(t, err)
	if m.PowerOnHours == nil || *m.PowerOnHours <= 0 {
		t.Errorf("metrics = %+v", m)
	}
	if d, _ := h.Machine().Storage.Drive("Disk.5"); !d.Locate || d.Spare == "" {
		t.Errorf("drive = %+v", d)
	}
	if _, err := sub.ResetToDefaults(schemas.ResetAllResetToDefaultsType); err != nil {
		t.Error(err)
	}
	if _, v := read(); v != nil {
		t.Errorf("volume after a reset = %+v", v)
	}
}
