package redfish

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// TestGofishOperatesSystem uses gofish as a provisioning client does.
func TestGofishOperatesSystem(t *testing.T) {
	for _, basic := range []bool{false, true} {
		h := newHost(t)
		server := httptest.NewTLSServer(newService(t, h))
		defer server.Close()
		c, err := gofish.ConnectContext(t.Context(), gofish.ClientConfig{
			Endpoint: server.URL, Username: "admin", Password: "adm-secret-1", HTTPClient: server.Client(), BasicAuth: basic,
		})
		must(t, err)
		systems, err := c.Service.Systems()
		must(t, err)
		if len(systems) != 1 {
			t.Fatalf("Systems() = %d of them, want 1", len(systems))
		}
		system := systems[0]
		if system.PowerState != schemas.OffPowerState || system.SerialNumber != h.Machine().Identity.Serial {
			t.Errorf("PowerState %s, SerialNumber %s", system.PowerState, system.SerialNumber)
		}

		nics, err := system.EthernetInterfaces()
		must(t, err)
		// gofish reads members in parallel and returns them as they come.
		macs := resource.Map(nics, func(n *schemas.EthernetInterface) string { return n.MACAddress })
		slices.Sort(macs)
		if want := resource.Map(h.Machine().Identity.NICs, func(n machine.NIC) string { return n.MAC }); !slices.Equal(macs, want) {
			t.Errorf("EthernetInterfaces() have %q, want %q", macs, want)
		}
		subsystems, err := system.Storage()
		must(t, err)
		drives, err := subsystems[0].Drives()
		must(t, err)
		volumes, err := subsystems[0].Volumes()
		must(t, err)
		controllers, err := subsystems[0].Controllers()
		must(t, err)
		if len(drives) != 2 || len(volumes) != 0 || len(controllers) != 1 {
			t.Errorf("%d drives, %d volumes, %d controllers", len(drives), len(volumes), len(controllers))
		}

		managers, err := c.Service.Managers()
		must(t, err)
		ofManager, err := managers[0].VirtualMedia()
		must(t, err)
		media, err := system.VirtualMedia()
		must(t, err)
		byID := func(a, b *schemas.VirtualMedia) int { return strings.Compare(a.ODataID, b.ODataID) } // gofish reads them in parallel
		slices.SortFunc(media, byID)
		slices.SortFunc(ofManager, byID)
		if len(media) != 2 || len(ofManager) != 2 || ofManager[0].ODataID != media[0].ODataID {
			t.Fatalf("VirtualMedia() of the system %d, of the manager %d", len(media), len(ofManager))
		}
		yes := true
		_, err = media[0].InsertMedia(&schemas.VirtualMediaInsertMediaParameters{Image: "http://images.test/a.iso", Inserted: &yes, WriteProtected: &yes})
		must(t, err)
		media, err = system.VirtualMedia()
		must(t, err)
		slices.SortFunc(media, byID)
		if media[0].Image != "http://images.test/a.iso" || media[0].Inserted == nil || !*media[0].Inserted {
			t.Errorf("after InsertMedia: %+v", media[0])
		}
		if _, err = media[0].InsertMedia(&schemas.VirtualMediaInsertMediaParameters{Image: "http://images.test/b.iso"}); err == nil {
			t.Error("a second InsertMedia passed")
		}

		must(t, system.SetBoot(&schemas.Boot{
			BootSourceOverrideEnabled: schemas.OnceBootSourceOverrideEnabled, BootSourceOverrideTarget: schemas.CdBootSource,
			BootSourceOverrideMode: schemas.UEFIBootSourceOverrideMode,
		}))
		_, err = system.Reset(schemas.OnResetType)
		must(t, err)
		h.pass(10 * time.Minute)
		systems, err = c.Service.Systems()
		must(t, err)
		system = systems[0]
		if system.PowerState != schemas.OnPowerState || system.Boot.BootSourceOverrideEnabled != schemas.DisabledBootSourceOverrideEnabled {
			t.Errorf("after Reset On: PowerState %s, override %s", system.PowerState, system.Boot.BootSourceOverrideEnabled)
		}
		_, err = media[0].EjectMedia()
		must(t, err)
		_, err = system.Reset(schemas.ForceOffResetType)
		must(t, err)

		accounts, err := c.Service.AccountService()
		must(t, err)
		users, err := accounts.Accounts()
		must(t, err)
		racks, err := c.Service.Chassis()
		must(t, err)
		if len(users) != 4 || len(racks) != 1 {
			t.Errorf("%d accounts, %d chassis", len(users), len(racks))
		}
		c.Logout()
		if n := len(h.BMC().Sessions); n != 0 {
			t.Errorf("%d sessions are open after Logout", n)
		}
	}
}

// TestGofishSubscribesToEvents uses gofish as a monitoring client does.
func TestGofishSubscribesToEvents(t *testing.T) {
	h := newHost(t)
	server := httptest.NewTLSServer(newService(t, h))
	defer server.Close()
	c, err := gofish.ConnectContext(t.Context(), gofish.ClientConfig{
		Endpoint: server.URL, Username: "admin", Password: "adm-secret-1", HTTPClient: server.Client(),
	})
	must(t, err)
	defer c.Logout()
	events, err := c.Service.EventService()
	must(t, err)
	uri, err := events.CreateEventSubscriptionInstance("https://hooks.test/a", []string{"ResourceEvent"}, []string{"ComputerSystem"},
		map[string]string{"X-Key": "k"}, schemas.RedfishEventDestinationProtocol, "mine", schemas.SuspendRetriesDeliveryRetryPolicy, nil)
	must(t, err)
	all, err := events.Subscriptions()
	must(t, err)
	if len(all) != 1 || all[0].ODataID != uri || all[0].Context != "mine" || all[0].DeliveryRetryPolicy != schemas.SuspendRetriesDeliveryRetryPolicy {
		t.Fatalf("subscriptions %+v, want %s", all, uri)
	}
	must(t, events.DeleteEventSubscription(uri))
	if n := len(h.BMC().Subscribers.List); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}
